import type { Signal } from '@preact/signals'
import { useRef } from 'preact/hooks'
import { formatNumber } from '../shared/format.ts'
import type { TimeSpan } from '../shared/span.ts'
import { bucketTimeFormats, type ChartData, sumOf, ticksOf } from './buckets.ts'

type PlotPointerEvent = PointerEvent & { currentTarget: HTMLElement }

interface PlotProps extends ChartData {
  /** Pixels. */
  height: number
  span: TimeSpan
  /** Index of the bucket under the pointer. */
  hovered: Signal<number | null>
  /** Called with the selected period. */
  onSelect: (since: number, until: number) => void
}

const minSelection = 0.01

/** Stacked bars, hidden from screen readers: the table has the same data. */
export function Plot({ buckets, series, height, span, interval, hovered, onSelect }: PlotProps) {
  // Parts of the width. CSS shows the selection, so that nothing rerenders while the pointer moves.
  const selection = useRef<[from: number, to: number] | null>(null)
  const first = buckets[0]?.at ?? 0
  const length = buckets.length * interval.length
  const highest = roundUp(Math.max(...buckets.map(sumOf)))
  const { tick } = bucketTimeFormats(interval)
  const followPointer = ({ type, clientX, pointerId, currentTarget }: PlotPointerEvent) => {
    const { left, width } = currentTarget.getBoundingClientRect()
    const position = Math.min(0.9999, Math.max(0, (clientX - left) / width))
    hovered.value = Math.floor(position * buckets.length)
    if (type === 'pointerdown') {
      currentTarget.setPointerCapture(pointerId)
      selection.current = [position, position]
    } else if (selection.current) selection.current[1] = position
    showSelection(currentTarget)
  }
  const showSelection = ({ style }: HTMLElement) => {
    const [start, end] = selection.current ?? [0, 0]
    const [from, to] = [Math.min(start, end), Math.max(start, end)]
    style.setProperty('--from', `${from}`)
    style.setProperty('--to', `${to}`)
    return { from, to }
  }
  const endSelection = ({ type, currentTarget }: PlotPointerEvent) => {
    const { from, to } = showSelection(currentTarget)
    selection.current = null
    showSelection(currentTarget)
    if (type === 'pointercancel' || to - from < minSelection) return
    // Rounds to minutes, like the fields for a custom range.
    const minuteAt = (position: number) => (first + position * length) / 60_000
    onSelect(
      Math.max(span.since, Math.floor(minuteAt(from)) * 60_000),
      Math.min(span.until, Math.ceil(minuteAt(to)) * 60_000),
    )
  }
  return (
    <div class="plot" style={{ height: `${height}px` }} aria-hidden="true">
      <div class="axis">
        {[highest, highest / 2, 0].map((value) => (
          <span key={value}>{Number.isInteger(value) && formatNumber(value)}</span>
        ))}
      </div>
      <div
        class="bars"
        onPointerDown={followPointer}
        onPointerMove={followPointer}
        onPointerUp={endSelection}
        onPointerCancel={endSelection}
        onPointerLeave={() => {
          hovered.value = null
        }}
      >
        {buckets.map(({ at, counts, isPartial }) => (
          <div key={at} class={isPartial ? 'partial' : undefined}>
            {series.map(({ color }, i) => (
              <i
                key={color}
                style={{
                  height: `${(100 * (counts[i] ?? 0)) / highest}%`,
                  '--color': `var(${color})`,
                }}
              />
            ))}
          </div>
        ))}
        {ticksOf(buckets, interval, { max: 8 }).map((at) => (
          <span key={at} style={tickStyle((100 * (at - first)) / length)}>
            {tick(at)}
          </span>
        ))}
      </div>
    </div>
  )
}

/** Returns the next number with a round half. */
function roundUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, value)))
  return power * ([1, 1.2, 1.6, 2, 3, 4, 6, 8].find((factor) => factor * power >= value) ?? 10)
}

// Shifted more toward the end, so that no label sticks out.
const tickStyle = (percent: number) => ({
  left: `${percent}%`,
  transform: `translateX(-${percent}%)`,
})
