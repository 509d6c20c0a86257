import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { bucketsOf, sumOf } from '../sessions/buckets.ts'
import { hrefOf } from '../shared/address.ts'
import { useCounts } from '../shared/counts.ts'
import { formatNumber, formatPercent } from '../shared/format.ts'
import { intervalOf, type TimeSpan } from '../shared/span.ts'
import { Sparkline } from '../shared/sparkline.tsx'
import { type Amount, changeOf, previousPeriod, sumSessions } from './compare.ts'
import { groupingBy, sessionsHref, timesOf } from './links.ts'

/** Key numbers of the period, each with its change from the previous period. */
export function Stats({ counts, span }: { counts: SessionAggregates; span: TimeSpan }) {
  const earlier = previousPeriod(span)
  const byVerdict = new URLSearchParams({ ...timesOf(earlier), group_by: 'verdict' })
  const previous = useCounts(byVerdict).data?.data
  // The list of abandoned hosts has the same request.
  const byHandOff = groupingBy('page_host,handed_off', '100')
  const handOffs = useCounts(new URLSearchParams({ ...timesOf(span), ...byHandOff })).data?.data
  const previousHandOffs = useCounts(new URLSearchParams({ ...timesOf(earlier), ...byHandOff }))
    .data?.data
  const buckets = bucketsOf(counts.groups, { span, interval: intervalOf(span), field: 'verdict' })
  const sharesOf = (i: number) =>
    buckets.map((bar) => (100 * (bar.counts[i] ?? 0)) / Math.max(1, sumOf(bar)))
  const share = (filters: Record<string, string>, now?: SessionAggregates, before = previous) => ({
    href: sessionsHref(span, filters),
    now: now && shareOf(now, filters),
    before: before && shareOf(before, filters),
  })
  return (
    <div class="stats">
      <Stat
        title="Sessions"
        href={sessionsHref(span, {})}
        now={{ part: counts.sessions }}
        before={previous && { part: previous.sessions }}
        values={buckets.map(sumOf)}
      />
      <Stat title="Bots" {...share({ verdict: 'bot' }, counts)} values={sharesOf(2)} />
      <Stat
        title="Inconclusive"
        {...share({ verdict: 'inconclusive' }, counts)}
        values={sharesOf(1)}
      />
      <Stat
        title="Visitors"
        href={hrefOf({ page: 'visitors' })}
        now={{ part: counts.visitors }}
        before={previous && { part: previous.visitors }}
      />
      <Stat title="Hand-off rate" {...share({ handed_off: 'true' }, handOffs, previousHandOffs)} />
    </div>
  )
}

const shareOf = ({ groups, sessions }: SessionAggregates, filters: Record<string, string>) => ({
  part: sumSessions(groups, filters),
  whole: sessions,
})

interface StatProps {
  title: string
  href: string
  /** undefined = not loaded. */
  now: Amount | undefined
  before: Amount | undefined
  values?: number[]
}

function Stat({ title, href, now, before, values }: StatProps) {
  const change = now && before && changeOf(now, before)
  return (
    <a class="stat" href={href}>
      <span>{title}</span>
      <b>{now ? format(now) : '–'}</b>
      {values && <Sparkline values={values} />}
      {change && (
        <span class="delta" title={`Previous period: ${format(before)}`}>
          <span aria-hidden="true">{change.text}</span>
          <span class="hidden">{change.words} in the previous period</span>
        </span>
      )}
    </a>
  )
}

function format({ part, whole }: Amount): string {
  if (part === null) return '–'
  return whole === undefined ? formatNumber(part) : formatPercent(part, whole)
}
