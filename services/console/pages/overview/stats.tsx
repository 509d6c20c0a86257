import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { bucketsOf, sumOf } from '../sessions/buckets.ts'
import { useCounts } from '../shared/counts.ts'
import { formatNumber, formatPercent } from '../shared/format.ts'
import { intervalOf, type TimeSpan, timesOf } from '../shared/span.ts'
import { Sparkline } from '../shared/sparkline.tsx'
import { type Amount, changeOf, previousPeriod, sumSessions } from './compare.ts'
import { countedSpan, groupingBy, sessionsHref } from './links.ts'

/** Key numbers of the period, each with its change from the previous period. */
export function Stats({ counts, span }: { counts: SessionAggregates; span: TimeSpan }) {
  const earlier = previousPeriod(span)
  const byVerdict = new URLSearchParams({ ...timesOf(earlier), group_by: 'verdict' })
  const previous = useCounts(byVerdict).data?.data
  const byHandOff = groupingBy('handed_off', '2')
  const handOffs = useCounts(new URLSearchParams({ ...timesOf(span), ...byHandOff })).data?.data
  const previousHandOffs = useCounts(new URLSearchParams({ ...timesOf(earlier), ...byHandOff }))
    .data?.data
  const buckets = bucketsOf(counts.groups, { span, interval: intervalOf(span), field: 'verdict' })
  const sharesOf = (i: number) =>
    buckets.map((bar) => (100 * (bar.counts[i] ?? 0)) / Math.max(1, sumOf(bar)))
  const total = ({ sessions }: SessionAggregates) => ({ part: sessions })
  const byTitle: Record<string, Omit<StatProps, 'title' | 'span'>> = {
    Sessions: { counts, previous, amountOf: total, filters: {}, values: buckets.map(sumOf) },
    Bots: { counts, previous, ...share({ verdict: 'bot' }), values: sharesOf(2) },
    Inconclusive: { counts, previous, ...share({ verdict: 'inconclusive' }), values: sharesOf(1) },
    Visitors: { counts, previous, amountOf: ({ visitors }) => ({ part: visitors }) },
    'Hand-off rate': {
      counts: handOffs,
      previous: previousHandOffs,
      ...share({ handed_off: 'true' }),
    },
  }
  return (
    <div class="stats">
      {Object.entries(byTitle).map(([title, stat]) => (
        <Stat key={title} title={title} span={span} {...stat} />
      ))}
    </div>
  )
}

const share = (filters: Record<string, string>) => ({
  filters,
  amountOf: ({ groups, sessions }: SessionAggregates): Amount => ({
    part: sumSessions(groups, filters),
    whole: sessions,
  }),
})

interface StatProps {
  title: string
  span: TimeSpan
  /** undefined = not loaded. */
  counts: SessionAggregates | undefined
  previous: SessionAggregates | undefined
  amountOf: (counts: SessionAggregates) => Amount
  /** Filters of the linked sessions. Default: no link. */
  filters?: Record<string, string>
  values?: number[]
}

function Stat({ title, span, counts, previous, amountOf, filters, values }: StatProps) {
  const now = counts && amountOf(counts)
  const before = counts?.is_complete && previous?.is_complete ? amountOf(previous) : undefined
  const change = now && before && changeOf(now, before)
  const content = (
    <>
      <span>{title}</span>
      <b>{now ? format(now) : '–'}</b>
      {values && <Sparkline values={values} />}
      {change && (
        <span class="delta" title={`Previous period: ${format(before)}`}>
          <span aria-hidden="true">{change.text}</span>
          <span class="hidden">{change.words} in the previous period</span>
        </span>
      )}
      {counts?.is_complete === false && <span class="delta">newest only</span>}
    </>
  )
  if (!filters) return <div class="stat">{content}</div>
  return (
    <a class="stat" href={sessionsHref(counts ? countedSpan(span, counts) : span, filters)}>
      {content}
    </a>
  )
}

function format({ part, whole }: Amount): string {
  if (part === null) return '–'
  return whole === undefined ? formatNumber(part) : formatPercent(part, whole)
}
