/** A line without axes that starts at 0. Decorative: the numbers stand beside it. */
export function Sparkline({ values }: { values: readonly number[] }) {
  const highest = Math.max(1, ...values)
  const points = values.map((value, i) => `${i},${1 - value / highest}`).join(' ')
  const last = Math.max(1, values.length - 1)
  return (
    <svg class="sparkline" viewBox={`0 0 ${last} 1`} preserveAspectRatio="none" aria-hidden="true">
      <polygon points={`0,1 ${points} ${last},1`} />
      <polyline points={points} />
    </svg>
  )
}
