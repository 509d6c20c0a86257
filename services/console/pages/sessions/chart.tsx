import { useEffect, useRef } from 'preact/hooks'
import type uPlot from 'uplot'
import 'uplot/dist/uPlot.min.css'
import { goTo, hrefWith } from '../shared/address.ts'
import { exact, formatNumber } from '../shared/format.ts'
import { Head } from '../shared/head.tsx'
import { intervalOf, isoTime, lengths, type TimeSpan } from '../shared/span.ts'
import { type Counts, type VerdictName, verdictOrder } from '../shared/types.ts'

interface Bucket {
  at: number
  sessions: Record<VerdictName, number>
}

/** An interval without sessions is a zero and no gap. */
export function bucketsOf({ groups }: Counts, span: TimeSpan): Bucket[] {
  const { length } = intervalOf(span)
  const first = Math.floor(span.since / length) * length
  const count = Math.ceil((span.until - first) / length)
  const buckets = Array.from({ length: count }, (_, i) => ({
    at: first + i * length,
    sessions: { human: 0, inconclusive: 0, bot: 0 },
  }))
  for (const { start, values, sessions } of groups) {
    const bucket = start && buckets[Math.round((Date.parse(start) - first) / length)]
    const verdict = verdictOrder.find((one) => one === values.verdict)
    if (bucket && verdict) bucket.sessions[verdict] += sessions
  }
  return buckets
}

/** Sessions over time, stacked by verdict. Dragging over it narrows the time. */
export function Chart({ counts, span }: { counts: Counts; span: TimeSpan }) {
  const buckets = bucketsOf(counts, span)
  return (
    <figure class="chart">
      <Plot buckets={buckets} span={span} />
      <figcaption>
        <details>
          <summary>As a table</summary>
          <Table buckets={buckets} />
        </details>
        {!span.last && <a href={hrefWith({ since: null, until: null })}>Zoom out</a>}
      </figcaption>
    </figure>
  )
}

const colors: Record<VerdictName, string> = { human: '--human', inconclusive: '--inconclusive', bot: '--bot' }
const color = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

function Plot({ buckets, span }: { buckets: Bucket[]; span: TimeSpan }) {
  const holder = useRef<HTMLDivElement>(null)
  const data = JSON.stringify(buckets)
  useEffect(() => {
    const shown = { ended: false, plot: undefined as uPlot | undefined }
    const draw = async () => {
      const { default: Plotter } = await import('uplot')
      if (shown.ended || !holder.current) return
      shown.plot = new Plotter(
        optionsOf(Plotter, { span, width: holder.current.clientWidth }),
        stacked(buckets),
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
  }, [data])
  return <div class="plot" ref={holder} aria-hidden="true" />
}

const height = 150

// It does not stack by itself: a series is drawn over those that it stands on, the highest one first.
function stacked(buckets: Bucket[]): uPlot.AlignedData {
  const sums = (last: VerdictName) =>
    buckets.map(({ sessions }) =>
      verdictOrder.slice(0, verdictOrder.indexOf(last) + 1).reduce((sum, one) => sum + sessions[one], 0),
    )
  return [buckets.map(({ at }) => at / 1000), sums('bot'), sums('inconclusive'), sums('human')]
}

function optionsOf(Plotter: typeof uPlot, { span, width }: { span: TimeSpan; width: number }): uPlot.Options {
  const bars = Plotter.paths.bars?.({ size: [0.85, 60], align: 1 })
  const series = (verdict: VerdictName): uPlot.Series => ({
    label: verdict,
    fill: color(colors[verdict]),
    width: 0,
    points: { show: false },
    ...(bars && { paths: bars }),
  })
  const labels = new Intl.DateTimeFormat('en-GB', timeLabel(span))
  const axis = {
    stroke: color('--muted'),
    grid: { stroke: color('--line'), width: 1 },
    ticks: { show: false },
  }
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: true, y: false, setScale: false } },
    axes: [
      { ...axis, values: (_, ticks) => ticks.map((tick) => labels.format(tick * 1000)) },
      {
        ...axis,
        size: 44,
        values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? formatNumber(tick) : '')),
      },
    ],
    scales: {
      x: { range: () => [span.since / 1000, span.until / 1000] },
      y: { range: (_, __, most) => [0, Math.max(most, 1)] },
    },
    series: [{}, series('bot'), series('inconclusive'), series('human')],
    hooks: { setSelect: [narrow] },
  }
}

const timeLabel = ({ since, until }: TimeSpan): Intl.DateTimeFormatOptions =>
  until - since > 2 * lengths['24h']
    ? { day: 'numeric', month: 'short' }
    : { hour: '2-digit', minute: '2-digit' }

function narrow(plot: uPlot): void {
  const { left, width } = plot.select
  if (width < 4) return
  const [since, until] = [left, left + width].map((x) => isoTime(Math.round(plot.posToVal(x, 'x')) * 1000))
  if (since && until) goTo(hrefWith({ since, until, last: null }))
}

function Table({ buckets }: { buckets: Bucket[] }) {
  return (
    <div class="scroll">
      <table>
        <Head columns={['From', ...verdictOrder]} numbers={verdictOrder} />
        <tbody>
          {buckets.map(({ at, sessions }) => (
            <tr key={at}>
              <td>{exact(isoTime(at))}</td>
              {verdictOrder.map((verdict) => (
                <td class="number" key={verdict}>
                  {formatNumber(sessions[verdict])}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
