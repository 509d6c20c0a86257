import { type Signal, useSignal } from '@preact/signals'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { goTo, hrefOf, hrefWith, place } from '../shared/address.ts'
import { amount, formatNumber } from '../shared/format.ts'
import { Head } from '../shared/head.tsx'
import {
  type ChartInterval,
  intervalOf,
  isoTime,
  now,
  type TimeSpan,
  timeParameters,
} from '../shared/span.ts'
import { VerdictBadge } from '../shared/verdict.tsx'
import {
  type Bucket,
  bucketsOf,
  isUnfinished,
  sumOf,
  timesOfBuckets,
  verdictOrder,
} from './buckets.ts'
import './chart.css'
import { Plot } from './plot.tsx'
import { rememberZoom, zoomedOut } from './zoom.ts'

/** Sessions over time, stacked by verdict. Dragging over it narrows the time. */
export function Chart({ counts, span }: { counts: SessionAggregates; span: TimeSpan }) {
  const interval = intervalOf(span)
  const buckets = bucketsOf(counts, span, interval)
  const countedTo = Math.min(span.until, Date.now())
  const last = buckets.at(-1)
  const endsUnfinished = last !== undefined && isUnfinished(last, interval, countedTo)
  const pointed = useSignal<number | null>(null)
  const narrow = (since: number, until: number) => {
    const zoom = { since, until, last: undefined }
    rememberZoom(zoom, span)
    goTo(hrefWith(timeParameters(zoom)))
  }
  return (
    <figure class="chart">
      <Plot {...{ buckets, span, interval, endsUnfinished, pointed, narrow }} />
      <figcaption>
        <Pointed {...{ buckets, interval, pointed }} />
        <Notes {...{ buckets, interval }} countedTo={endsUnfinished ? countedTo : null} />
        <AsTable {...{ buckets, interval }} />
        {!span.last && <a href={hrefWith(timeParameters(zoomedOut(span, now.value)))}>Zoom out</a>}
      </figcaption>
    </figure>
  )
}

/** The numbers below the pointer. Nothing else reads where it is, so that moving it draws one line anew. */
function Pointed({
  buckets,
  interval,
  pointed,
}: {
  buckets: Bucket[]
  interval: ChartInterval
  pointed: Signal<number | null>
}) {
  const bucket = pointed.value === null ? undefined : buckets[pointed.value]
  if (!bucket) return <p class="pointed">Point at a bar to read it, or drag to narrow the time.</p>
  return (
    <p class="pointed">
      {timesOfBuckets(interval).range(bucket)}:
      {verdictOrder.map((verdict) => (
        <span key={verdict}>
          <VerdictBadge verdict={verdict} /> {formatNumber(bucket.sessions[verdict])}
        </span>
      ))}
      <span>
        together <b>{formatNumber(sumOf(bucket))}</b>
      </span>
    </p>
  )
}

interface NotesProps {
  buckets: Bucket[]
  interval: ChartInterval
  /** Of the last bar; null where that is whole. */
  countedTo: number | null
}

function Notes({ buckets, interval, countedTo }: NotesProps) {
  const ended = buckets.filter((bucket) => bucket.ended > 0)
  const lastEnded = ended.at(-1)
  const exactly = timesOfBuckets({ name: 'minute', length: 60_000 }).exact
  return (
    <>
      {interval.name === 'day' && <p>Days are UTC.</p>}
      {countedTo !== null && (
        <p>The last bar is not a whole one: it is counted until {exactly(countedTo)}.</p>
      )}
      {lastEnded && (
        <p>
          Not drawn:{' '}
          {amount(
            'session',
            ended.reduce((sum, bucket) => sum + bucket.ended, 0),
          )}{' '}
          until {exactly(lastEnded.until)}, because what the filters ask has ended by retention.
        </p>
      )}
    </>
  )
}

// Its hundreds of links are made once they are wanted.
function AsTable(shown: { buckets: Bucket[]; interval: ChartInterval }) {
  const isOpen = useSignal(false)
  return (
    <details onToggle={({ currentTarget: { open } }) => (isOpen.value = open)}>
      <summary>As a table</summary>
      {isOpen.value && <Table {...shown} />}
    </details>
  )
}

function Table({ buckets, interval }: { buckets: Bucket[]; interval: ChartInterval }) {
  const { exact } = timesOfBuckets(interval)
  return (
    <div class="scroll">
      <table>
        <Head columns={['From', ...verdictOrder]} numbers={verdictOrder} />
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

/** The sessions of a bar, with the filters of the page. */
function hrefOfBucket({ since, until }: Bucket, verdict?: string): string {
  const query = new URLSearchParams(place.value?.query)
  for (const name of ['last', 'open']) query.delete(name)
  query.set('since', isoTime(since))
  query.set('until', isoTime(until))
  if (verdict) query.set('verdict', verdict)
  return hrefOf({ page: 'sessions', query })
}
