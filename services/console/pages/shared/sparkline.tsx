interface SparklineProps {
  values: readonly number[]
  /** Values to compare with, as a dashed line instead of the area. */
  expected?: readonly number[]
}

/** A line without axes that starts at 0. Decorative: the numbers stand beside it. */
export function Sparkline({ values, expected }: SparklineProps) {
  const highest = Math.max(1, ...values, ...(expected ?? []))
  const last = Math.max(1, values.length - 1)
  const pointsOf = (line: readonly number[]) =>
    line.map((value, i) => `${i},${1 - value / highest}`).join(' ')
  return (
    <svg class="sparkline" viewBox={`0 0 ${last} 1`} preserveAspectRatio="none" aria-hidden="true">
      {expected ? (
        <polyline class="baseline" points={pointsOf(expected)} />
      ) : (
        <polygon points={`0,1 ${pointsOf(values)} ${last},1`} />
      )}
      <polyline points={pointsOf(values)} />
    </svg>
  )
}
