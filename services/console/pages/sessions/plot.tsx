import { type Signal, signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { Verdict } from '../../../../schemas/events.ts'
import { formatNumber } from '../shared/format.ts'
import type { ChartInterval, TimeSpan } from '../shared/span.ts'
import { type Bucket, bucketTimeFormats, ticksOf, verdictOrder } from './buckets.ts'

export interface PlotProps {
  buckets: Bucket[]
  span: TimeSpan
  interval: ChartInterval
  /** True if the last bucket is hatched as partial. */
  isLastPartial: boolean
  /** Index of the bucket under the pointer. */
  hovered: Signal<number | null>
  /** Called with the selected period. */
  onSelect: (since: number, until: number) => void
}

const darkScheme = window.matchMedia('(prefers-color-scheme: dark)')
const isDark = signal(darkScheme.matches)
darkScheme.addEventListener('change', () => {
  isDark.value = darkScheme.matches
})

/** Stacked bars by verdict, hidden from screen readers: the table has the same data. */
export function Plot(props: PlotProps) {
  const { buckets, span, isLastPartial } = props
  const container = useRef<HTMLDivElement>(null)
  const loadFailed = useSignal(false)
  const drawingKey = JSON.stringify([buckets, span, isLastPartial, isDark.value])
  useEffect(() => {
    const state = { isUnmounted: false, plot: undefined as uPlot | undefined }
    const draw = async () => {
      // The import fails if the server was updated after the page loaded, or while the page unloads.
      const module = await import('uplot').catch(() => undefined)
      loadFailed.value = !module
      if (!module || state.isUnmounted || !container.current) return
      state.plot = new module.default(
        optionsOf(module.default, container.current.clientWidth, props),
        stackedData(buckets, isLastPartial),
        container.current,
      )
    }
    void draw()
    const resizeObserver = new ResizeObserver(([entry]) => {
      if (entry) state.plot?.setSize({ width: entry.contentRect.width, height })
    })
    if (container.current) resizeObserver.observe(container.current)
    return () => {
      state.isUnmounted = true
      resizeObserver.disconnect()
      state.plot?.destroy()
    }
  }, [drawingKey])
  return (
    <>
      <div class="plot" ref={container} aria-hidden="true" hidden={loadFailed.value} />
      {loadFailed.value && <p>The chart could not be loaded. Reload the page, or use the table.</p>}
    </>
  )
}

const height = 120
const labelWidth = 80
const axisGap = 9
const digitWidth = 7
// Top of the stack first, because later bars are drawn over it.
const drawOrder = verdictOrder.toReversed()

// uPlot does not stack, so returns cumulative sums. The partial bucket is in a separate series per verdict.
function stackedData(buckets: Bucket[], isLastPartial: boolean): uPlot.AlignedData {
  const completeCount = buckets.length - (isLastPartial ? 1 : 0)
  const sums = drawOrder.map((last) => {
    const below = verdictOrder.slice(0, verdictOrder.indexOf(last) + 1)
    return buckets.map(({ sessions }) => below.reduce((sum, verdict) => sum + sessions[verdict], 0))
  })
  return [
    buckets.map(({ at }) => at / 1000),
    ...sums.map((sum) => sum.map((value, i) => (i < completeCount ? value : null))),
    ...sums.map((sum) => sum.map((value, i) => (i < completeCount ? null : value))),
  ]
}

const colors: Record<Verdict, string> = {
  human: '--human',
  inconclusive: '--inconclusive',
  bot: '--bot',
}
const color = (name: string) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim()

function optionsOf(Plotter: typeof uPlot, width: number, props: PlotProps): uPlot.Options {
  const { buckets, interval, hovered } = props
  const begin = buckets[0]?.at ?? 0
  const bars = Plotter.paths.bars?.({ size: [0.85, 60], align: 1 })
  const shared = { points: { show: false }, ...(bars && { paths: bars }) }
  const complete = (verdict: Verdict) => ({ ...shared, fill: color(colors[verdict]), width: 0 })
  const partial = (verdict: Verdict) => ({
    ...shared,
    fill: hatched(color(colors[verdict])),
    stroke: color(colors[verdict]),
    width: 1,
    dash: [4, 3],
  })
  const { tick } = bucketTimeFormats(interval)
  const axis = {
    stroke: color('--muted'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
  }
  const splits = (plot: uPlot) =>
    ticksOf(buckets, interval, { max: Math.max(1, Math.floor(plot.width / labelWidth)) })
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
    axes: [
      {
        ...axis,
        splits: (plot) => splits(plot).map((at) => at / 1000),
        size: 30,
        values: (_, ticks) => ticks.map((at) => tick(at * 1000)),
      },
      {
        ...axis,
        size: (_, labels) =>
          axisGap + digitWidth * Math.max(5, ...(labels ?? []).map(({ length }) => length)),
        values: (_, ticks) => ticks.map((at) => (Number.isInteger(at) ? formatNumber(at) : '')),
      },
    ],
    scales: {
      // Shows the last interval in full, so that the bar of a day that has just begun is visible.
      x: { range: () => [begin / 1000, (begin + buckets.length * interval.length) / 1000] },
      y: { range: (_, __, max) => [0, Math.max(max, 1)] },
    },
    series: [{}, ...drawOrder.map(complete), ...drawOrder.map(partial)],
    hooks: {
      setSelect: [(plot) => reportSelection(plot, props)],
      setCursor: [(plot) => updateHovered(plot, props)],
      destroy: [
        () => {
          hovered.value = null
        },
      ],
    },
  }
}

function hatched(stroke: string): () => CanvasPattern | string {
  return () => {
    const tile = Object.assign(document.createElement('canvas'), { width: 8, height: 8 })
    const context = tile.getContext('2d')
    if (!context) return stroke
    // The background hides the bar of the verdict above, which was drawn earlier.
    context.fillStyle = color('--panel')
    context.fillRect(0, 0, 8, 8)
    context.strokeStyle = stroke
    context.lineWidth = 2
    for (const x of [-8, 0, 8]) {
      context.moveTo(x, 8)
      context.lineTo(x + 8, 0)
    }
    context.stroke()
    return context.createPattern(tile, 'repeat') ?? stroke
  }
}

function updateHovered(plot: uPlot, { buckets, interval, hovered }: PlotProps): void {
  const { left = -1 } = plot.cursor
  const first = buckets[0]?.at ?? 0
  const index = Math.floor((plot.posToVal(left, 'x') * 1000 - first) / interval.length)
  hovered.value = left >= 0 && buckets[index] ? index : null
}

const minute = 60_000

// Rounds to minutes, like the fields for a custom range.
function reportSelection(plot: uPlot, { span, onSelect }: PlotProps): void {
  const { left, width } = plot.select
  if (width < 4) return
  const minuteAt = (x: number) => (plot.posToVal(x, 'x') * 1000) / minute
  const since = Math.max(span.since, Math.floor(minuteAt(left)) * minute)
  const until = Math.min(span.until, Math.ceil(minuteAt(left + width)) * minute)
  if (since < until) onSelect(since, until)
}
