import { type Signal, useSignal } from '@preact/signals'
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

/** Sessions over time, stacked by verdict. Dragging zooms in. */
export function Chart({ counts, span }: { counts: SessionAggregates; span: TimeSpan }) {
  const interval = intervalOf(span)
  const buckets = bucketsOf(counts, span, interval)
  const countedTo = Math.min(span.until, Date.now())
  const last = buckets.at(-1)
  const isLastPartial = last !== undefined && isPartialBucket(last, interval, countedTo)
  const hovered = useSignal<number | null>(null)
  const onSelect = (since: number, until: number) => {
    const zoom = { since, until, last: undefined }
    rememberZoom(zoom, span)
    navigate(hrefWith(timeParameters(zoom)))
  }
  return (
    <figure class="chart">
      <Plot {...{ buckets, span, interval, isLastPartial, hovered, onSelect }} />
      <figcaption>
        <HoveredBucket {...{ buckets, interval, hovered }} />
        <Notes {...{ buckets, interval }} countedTo={isLastPartial ? countedTo : null} />
        <AsTable {...{ buckets, interval }} />
        {!span.last && <a href={hrefWith(timeParameters(zoomedOut(span, now.value)))}>Zoom out</a>}
      </figcaption>
    </figure>
  )
}

/** Counts of the bucket under the pointer. Only this component rerenders when the pointer moves. */
function HoveredBucket({
  buckets,
  interval,
  hovered,
}: {
  buckets: Bucket[]
  interval: ChartInterval
  hovered: Signal<number | null>
}) {
  const bucket = hovered.value === null ? undefined : buckets[hovered.value]
  if (!bucket) return <p class="pointed" />
  return (
    <p class="pointed">
      {bucketTimeFormats(interval).range(bucket)}:
      {verdictOrder.map((verdict) => (
        <span key={verdict}>
          <VerdictBadge verdict={verdict} /> {formatNumber(bucket.sessions[verdict])}
        </span>
      ))}
      <span>
        total <b>{formatNumber(sumOf(bucket))}</b>
      </span>
    </p>
  )
}

interface NotesProps {
  buckets: Bucket[]
  interval: ChartInterval
  /** Time up to which the last bar is counted; null if it is complete. */
  countedTo: number | null
}

function Notes({ buckets, interval, countedTo }: NotesProps) {
  const expired = buckets.filter((bucket) => bucket.expired > 0)
  const lastExpired = expired.at(-1)
  const exactTime = bucketTimeFormats({ name: 'minute', length: 60_000 }).exact
  return (
    <>
      {interval.name === 'day' && <p>Days in UTC</p>}
      {countedTo !== null && <p>Last bar is partial (until {exactTime(countedTo)})</p>}
      {lastExpired && (
        <p>
          Not shown:{' '}
          {pluralize(
            'session',
            expired.reduce((sum, bucket) => sum + bucket.expired, 0),
          )}{' '}
          before {exactTime(lastExpired.until)} (filtered data deleted by retention)
        </p>
      )}
    </>
  )
}

// Renders the table only when opened, because it has hundreds of links.
function AsTable(props: { buckets: Bucket[]; interval: ChartInterval }) {
  const isOpen = useSignal(false)
  return (
    <details onToggle={({ currentTarget: { open } }) => (isOpen.value = open)}>
      <summary>As a table</summary>
      {isOpen.value && <Table {...props} />}
    </details>
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
