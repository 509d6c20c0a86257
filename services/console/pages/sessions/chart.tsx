import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { currentPage, hrefOf, hrefWith, navigate } from '../shared/address.ts'
import { formatNumber, pluralize } from '../shared/format.ts'
import {
  type ChartInterval,
  intervalOf,
  isoTime,
  now,
  type TimeSpan,
  timeParameters,
} from '../shared/span.ts'
import { TableHead } from '../shared/table-head.tsx'
import { VerdictBadge } from '../shared/verdict.tsx'
import {
  type Bucket,
  bucketsOf,
  bucketTimeFormats,
  isPartialBucket,
  sumOf,
  verdictOrder,
} from './buckets.ts'
import './chart.css'
import { Plot } from './plot.tsx'
import { rememberZoom, zoomedOut } from './zoom.ts'

interface ChartProps {
  counts: SessionAggregates
  span: TimeSpan
  /** Shown at the left of the legend. */
  children?: ComponentChildren
}

/** Sessions over time, stacked by verdict. Dragging zooms in. */
export function Chart({ counts, span, children }: ChartProps) {
  const interval = intervalOf(span)
  const buckets = bucketsOf(counts, span, interval)
  const countedTo = Math.min(span.until, Date.now())
  const last = buckets.at(-1)
  const isLastPartial = last !== undefined && isPartialBucket(last, interval, countedTo)
  const hovered = useSignal<number | null>(null)
  const isTableOpen = useSignal(false)
  const onSelect = (since: number, until: number) => {
    const zoom = { since, until, last: undefined }
    rememberZoom(zoom, span)
    navigate(hrefWith(timeParameters(zoom)))
  }
  return (
    <figure class="chart">
      <figcaption>
        {children}
        <Legend {...{ buckets, interval, hovered, isLastPartial }} />
        {interval.name === 'day' && <span>Days in UTC</span>}
        {!span.last && <a href={hrefWith(timeParameters(zoomedOut(span, now.value)))}>Zoom out</a>}
        <button
          type="button"
          class="plain"
          aria-expanded={isTableOpen.value}
          onClick={() => {
            isTableOpen.value = !isTableOpen.value
          }}
        >
          As a table
        </button>
      </figcaption>
      <Plot {...{ buckets, span, interval, isLastPartial, hovered, onSelect }} />
      <ExpiredNote buckets={buckets} />
      {isTableOpen.value && <Table {...{ buckets, interval }} />}
    </figure>
  )
}

interface LegendProps {
  buckets: Bucket[]
  interval: ChartInterval
  hovered: Signal<number | null>
  isLastPartial: boolean
}

/** The verdicts, with the counts of the bucket under the pointer. Rerenders alone when the pointer moves. */
function Legend({ buckets, interval, hovered, isLastPartial }: LegendProps) {
  const bucket = hovered.value === null ? undefined : buckets[hovered.value]
  const isPartial = isLastPartial && bucket !== undefined && bucket === buckets.at(-1)
  return (
    <p class="legend">
      {bucket && (
        <span>
          {bucketTimeFormats(interval).range(bucket)}
          {isPartial && ' (partial)'}: <b>{formatNumber(sumOf(bucket))}</b>
        </span>
      )}
      {verdictOrder.map((verdict) => (
        <span key={verdict}>
          <VerdictBadge verdict={verdict} /> {bucket && formatNumber(bucket.sessions[verdict])}
        </span>
      ))}
    </p>
  )
}

function ExpiredNote({ buckets }: { buckets: Bucket[] }) {
  const expired = buckets.filter((bucket) => bucket.expired > 0)
  const last = expired.at(-1)
  if (!last) return null
  const sessions = expired.reduce((sum, bucket) => sum + bucket.expired, 0)
  const { exact } = bucketTimeFormats({ name: 'minute', length: 60_000 })
  return (
    <p class="hint">
      Not shown: {pluralize('session', sessions)} before {exact(last.until)} (filtered data deleted
      by retention)
    </p>
  )
}

function Table({ buckets, interval }: { buckets: Bucket[]; interval: ChartInterval }) {
  const { exact } = bucketTimeFormats(interval)
  return (
    <div class="scroll">
      <table>
        <TableHead columns={['Start', ...verdictOrder]} numericColumns={verdictOrder} />
        <tbody>
          {buckets.map((bucket) => (
            <tr key={bucket.at}>
              <td>
                <a href={hrefOfBucket(bucket)}>{exact(bucket.since)}</a>
              </td>
              {verdictOrder.map((verdict) => (
                <td class="number" key={verdict}>
                  <a href={hrefOfBucket(bucket, verdict)}>
                    {formatNumber(bucket.sessions[verdict])}
                  </a>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** Returns the URL of a bucket's sessions, with the page's filters. */
function hrefOfBucket({ since, until }: Bucket, verdict?: string): string {
  const query = new URLSearchParams(currentPage.value?.query)
  for (const name of ['last', 'open']) query.delete(name)
  query.set('since', isoTime(since))
  query.set('until', isoTime(until))
  if (verdict) query.set('verdict', verdict)
  return hrefOf({ page: 'sessions', query })
}
