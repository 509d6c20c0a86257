import { type Signal, signal, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import type { Verdict } from '../../../../schemas/events.ts'
import { formatNumber } from '../shared/format.ts'
import type { ChartInterval, TimeSpan } from '../shared/span.ts'
import { type Bucket, ticksOf, timesOfBuckets, verdictOrder } from './buckets.ts'

export interface PlotProps {
  buckets: Bucket[]
  span: TimeSpan
  interval: ChartInterval
  /** Whether the last bucket is drawn as one that is counted in part. */
  endsUnfinished: boolean
  /** The place of the bucket below the pointer. */
  pointed: Signal<number | null>
  /** Called with what was dragged over. */
  narrow: (since: number, until: number) => void
}

const dark = window.matchMedia('(prefers-color-scheme: dark)')
const isDark = signal(dark.matches)
dark.addEventListener('change', () => {
  isDark.value = dark.matches
})

/** Bars, stacked by verdict. It is for the eye: the table says the same. */
export function Plot(props: PlotProps) {
  const { buckets, span, endsUnfinished } = props
  const holder = useRef<HTMLDivElement>(null)
  const isMissing = useSignal(false)
  const drawn = JSON.stringify([buckets, span, endsUnfinished, isDark.value])
  useEffect(() => {
    const shown = { ended: false, plot: undefined as uPlot | undefined }
    const draw = async () => {
      // It is gone where the server was updated since, or where the page is being left.
      const loaded = await import('uplot').catch(() => undefined)
      isMissing.value = !loaded
      if (!loaded || shown.ended || !holder.current) return
      shown.plot = new loaded.default(
        optionsOf(loaded.default, holder.current.clientWidth, props),
        stacked(buckets, endsUnfinished),
        holder.current,
      )
    }
    void draw()
    const resized = new ResizeObserver(([entry]) => {
      if (entry) shown.plot?.setSize({ width: entry.contentRect.width, height })
    })
    if (holder.current) resized.observe(holder.current)
    return () => {
      shown.ended = true
      resized.disconnect()
      shown.plot?.destroy()
    }
  }, [drawn])
  return (
    <>
      <div class="plot" ref={holder} aria-hidden="true" hidden={isMissing.value} />
      {isMissing.value && (
        <p>
          The chart could not be loaded. Its table says the same; load the page anew to try again.
        </p>
      )}
    </>
  )
}

const height = 150
const labelWidth = 80
const axisGap = 9
const digitWidth = 7
// The highest one first, because it is drawn below those that it stands on.
const drawnOrder = verdictOrder.toReversed()

// The plotter does not stack by itself. What is unfinished is a series of its own for each verdict.
function stacked(buckets: Bucket[], endsUnfinished: boolean): uPlot.AlignedData {
  const finished = buckets.length - (endsUnfinished ? 1 : 0)
  const sums = drawnOrder.map((last) => {
    const below = verdictOrder.slice(0, verdictOrder.indexOf(last) + 1)
    return buckets.map(({ sessions }) => below.reduce((sum, one) => sum + sessions[one], 0))
  })
  return [
    buckets.map(({ at }) => at / 1000),
    ...sums.map((sum) => sum.map((value, i) => (i < finished ? value : null))),
    ...sums.map((sum) => sum.map((value, i) => (i < finished ? null : value))),
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
  const { buckets, interval, pointed } = props
  const begin = buckets[0]?.at ?? 0
  const bars = Plotter.paths.bars?.({ size: [0.85, 60], align: 1 })
  const shared = { points: { show: false }, ...(bars && { paths: bars }) }
  const finished = (verdict: Verdict) => ({ ...shared, fill: color(colors[verdict]), width: 0 })
  const unfinished = (verdict: Verdict) => ({
    ...shared,
    fill: hatched(color(colors[verdict])),
    stroke: color(colors[verdict]),
    width: 1,
    dash: [4, 3],
  })
  const { tick } = timesOfBuckets(interval)
  const axis = {
    stroke: color('--muted'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
  }
  const splits = (plot: uPlot) =>
    ticksOf(buckets, interval, { most: Math.max(1, Math.floor(plot.width / labelWidth)) })
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
      // Of whole intervals, so that a day which has just begun is seen.
      x: { range: () => [begin / 1000, (begin + buckets.length * interval.length) / 1000] },
      y: { range: (_, __, most) => [0, Math.max(most, 1)] },
    },
    series: [{}, ...drawnOrder.map(finished), ...drawnOrder.map(unfinished)],
    hooks: {
      setSelect: [(plot) => select(plot, props)],
      setCursor: [(plot) => point(plot, props)],
      destroy: [
        () => {
          pointed.value = null
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
    // The ground covers the bar of the verdict above, which is drawn first.
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

function point(plot: uPlot, { buckets, interval, pointed }: PlotProps): void {
  const { left = -1 } = plot.cursor
  const first = buckets[0]?.at ?? 0
  const place = Math.floor((plot.posToVal(left, 'x') * 1000 - first) / interval.length)
  pointed.value = left >= 0 && buckets[place] ? place : null
}

const minute = 60_000

// In whole minutes, as the fields of time have them.
function select(plot: uPlot, { span, narrow }: PlotProps): void {
  const { left, width } = plot.select
  if (width < 4) return
  const minuteAt = (x: number) => (plot.posToVal(x, 'x') * 1000) / minute
  const since = Math.max(span.since, Math.floor(minuteAt(left)) * minute)
  const until = Math.min(span.until, Math.ceil(minuteAt(left + width)) * minute)
  if (since < until) narrow(since, until)
}
