import { type Signal, useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { currentPage, hrefOf, hrefWith, navigate } from '../shared/address.ts'
import { DataTable } from '../shared/data-table.tsx'
import { formatNumber, pluralize } from '../shared/format.ts'
import {
  intervalOf,
  now,
  type TimeSpan,
  timeParameters,
  timesOf,
  widenSpan,
} from '../shared/span.ts'
import { VerdictBadge } from '../shared/values.tsx'
import {
  type Bucket,
  bucketsOf,
  bucketTimeFormats,
  type ChartData,
  seriesOf,
  sumOf,
} from './buckets.ts'
import './chart.css'
import { Plot } from './plot.tsx'

interface ChartProps {
  counts: SessionAggregates
  span: TimeSpan
  /** Field that the counts are grouped by. */
  field?: GroupField
  /** Pixels. */
  height?: number
  /** Shown at the left of the legend. */
  children?: ComponentChildren
}

/** The period before zooming in, by the period zoomed to. */
const outerSpans = new Map<string, TimeSpan>()
const keyOf = ({ since, until }: TimeSpan) => `${since} ${until}`

/** Sessions over time, stacked by a field. Dragging zooms in. */
export function Chart({ counts, span, field = 'verdict', height = 120, children }: ChartProps) {
  const interval = intervalOf(span)
  const series = seriesOf(counts.groups, field)
  const buckets = bucketsOf(counts.groups, { span, interval, field })
  const data = { buckets, series, interval }
  const expired = buckets.reduce((sum, bucket) => sum + bucket.expired, 0)
  const outer = outerSpans.get(keyOf(span)) ?? widenSpan(span, now.value)
  const hovered = useSignal<number | null>(null)
  const isTableOpen = useSignal(false)
  const onSelect = (since: number, until: number) => {
    const zoom = { since, until, last: undefined }
    outerSpans.set(keyOf(zoom), span)
    navigate(hrefWith(timeParameters(zoom)))
  }
  return (
    <figure class="chart panel">
      <figcaption class="row">
        {children}
        <Legend {...{ ...data, hovered }} />
        {interval.name === 'day' && <span>Days in UTC</span>}
        {!span.last && <a href={hrefWith(timeParameters(outer))}>Zoom out</a>}
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
      <Plot {...{ ...data, height, span, hovered, onSelect }} />
      {expired > 0 && <p class="hint">Not shown: {pluralize('expired session', expired)}</p>}
      {isTableOpen.value && <Table {...{ ...data, field }} />}
    </figure>
  )
}

/** The layers with their totals, or the counts of the bucket under the pointer. Rerenders alone when it moves. */
function Legend({
  buckets,
  series,
  interval,
  hovered,
}: ChartData & { hovered: Signal<number | null> }) {
  const bucket = hovered.value === null ? undefined : buckets[hovered.value]
  const shown = bucket ? [bucket] : buckets
  return (
    <p class="row legend">
      {bucket && (
        <span>
          {bucketTimeFormats(interval).range(bucket)}
          {bucket.isPartial && ' (partial)'}: <b>{formatNumber(sumOf(bucket))}</b>
        </span>
      )}
      {series.map(({ verdict, title, color }, i) => (
        <span key={color}>
          {verdict ? (
            <VerdictBadge verdict={verdict} />
          ) : (
            <span style={{ '--color': `var(${color})` }}>{title}</span>
          )}{' '}
          {formatNumber(sumOf({ counts: shown.map(({ counts }) => counts[i] ?? 0) }))}
        </span>
      ))}
    </p>
  )
}

function Table({ buckets, series, interval, field }: ChartData & { field: GroupField }) {
  const { exact } = bucketTimeFormats(interval)
  const columnOf = ({ value, title }: (typeof series)[number], i: number) => {
    const cell = (bucket: Bucket) => {
      const count = formatNumber(bucket.counts[i] ?? 0)
      return value ? <a href={hrefOfBucket(bucket, { [field]: value })}>{count}</a> : count
    }
    return [title, { class: 'number', cell }] as const
  }
  return (
    <DataTable
      label="Sessions over time"
      rows={buckets}
      keyOf={({ at }) => `${at}`}
      columns={[
        ['Start', (bucket) => <a href={hrefOfBucket(bucket)}>{exact(bucket.since)}</a>],
        ...series.map(columnOf),
      ]}
    />
  )
}

/** Returns the URL of a bucket's sessions, with the page's filters. */
function hrefOfBucket(bucket: Bucket, filters: Record<string, string> = {}): string {
  const query = new URLSearchParams(currentPage.value?.query)
  for (const name of ['last', 'open', 'split']) query.delete(name)
  for (const [name, value] of Object.entries({ ...timesOf(bucket), ...filters }))
    query.set(name, value)
  return hrefOf({ page: 'sessions', query })
}
