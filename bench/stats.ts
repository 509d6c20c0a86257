/** A measured value over several rounds. */
export interface Spread {
  median: number
  min: number
  max: number
  /** Half the distance between the quartiles over the median: how much a round differs from the next, 0.05 = 5 %. */
  noise: number
}

/** Throws when there are no values: a measurement that did not happen must not read as 0. */
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

/** The value below which the share lies, interpolated between neighbours. `sorted` is ascending and not empty. */
export function quantile(sorted: readonly number[], share: number): number {
  const at = share * (sorted.length - 1)
  const below = sorted[Math.floor(at)] ?? Number.NaN
  const above = sorted[Math.ceil(at)] ?? Number.NaN
  return below + (above - below) * (at - Math.floor(at))
}

/**
 * The ratio of two things measured in the same rounds, round by round: a slow minute of the machine slows both
 * sides of a pair and cancels out. Throws when the rounds do not match.
 */
export function pairedRatio(
  numerators: readonly number[],
  denominators: readonly number[],
): Spread {
  if (numerators.length !== denominators.length) throw new Error('the rounds do not match')
  return spreadOf(numerators.map((value, round) => value / (denominators[round] ?? Number.NaN)))
}
