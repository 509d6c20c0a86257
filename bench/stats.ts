/** Measured value over several rounds. */
export interface Spread {
  median: number
  min: number
  max: number
  /** Half the interquartile range divided by the median: 0.05 means that rounds differ by 5%. */
  noise: number
}

/** Throws if there are no values, because a missing measurement must not be reported as 0. */
export function spreadOf(values: readonly number[]): Spread {
  if (values.length === 0) throw new Error('no values to summarise')
  const sorted = [...values].sort((a, b) => a - b)
  const median = quantile(sorted, 0.5)
  const range = quantile(sorted, 0.75) - quantile(sorted, 0.25)
  return {
    median,
    min: quantile(sorted, 0),
    max: quantile(sorted, 1),
    noise: median === 0 ? 0 : range / 2 / median,
  }
}

/** Returns the quantile of ascending values, interpolated. `sorted` must not be empty. */
export function quantile(sorted: readonly number[], share: number): number {
  const at = share * (sorted.length - 1)
  const below = sorted[Math.floor(at)] ?? Number.NaN
  const above = sorted[Math.ceil(at)] ?? Number.NaN
  return below + (above - below) * (at - Math.floor(at))
}

/**
 * Returns the ratio of two values that were measured in the same rounds, so that slow phases of the machine cancel out.
 * Throws if the rounds do not match.
 */
export function pairedRatio(
  numerators: readonly number[],
  denominators: readonly number[],
): Spread {
  if (numerators.length !== denominators.length) throw new Error('the rounds do not match')
  return spreadOf(numerators.map((value, round) => value / (denominators[round] ?? Number.NaN)))
}
