import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { verdictOrder } from '../sessions/buckets.ts'
import { Chart } from '../sessions/chart.tsx'
import { filterTitles, valueText } from '../sessions/fields.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { useCounts } from '../shared/counts.ts'
import { formatNumber, share } from '../shared/format.ts'
import { Panel } from '../shared/parts.tsx'
import { intervalOf, now, spanOf, type TimeSpan } from '../shared/span.ts'
import { SpanChoice } from '../shared/span-choice.tsx'
import { VerdictBadge } from '../shared/verdict.tsx'
import { Loaded } from '../shell/states.tsx'
import { earlier, handOffsOf } from './compare.ts'
import { sessionsHref, timesOf } from './links.ts'
import './overview.css'
import { GettingStarted } from './getting-started.tsx'
import { Unusual } from './unusual.tsx'

/** Verdicts over time, and what bots have in common. */
export function OverviewPage({ query }: { query: URLSearchParams }) {
  const span = spanOf(query, now.value)
  return (
    <>
      <div class="title">
        <h1>Overview</h1>
        <SpanChoice span={span} />
      </div>
      <GettingStarted />
      <OverTime span={span} />
      <Unusual span={span} />
      <div class="columns">
        <Top field="signal" title="Why (signals of bots)" {...{ span }} only={{ verdict: 'bot' }} />
        <Top field="asn" title="Networks of bots" {...{ span }} only={{ verdict: 'bot' }} />
        <Top field="country" title="Countries" {...{ span }} only={{}} />
        <Top field="page_host" title="Pages" {...{ span }} only={{}} />
        <Top field="agent_provider" and="agent_status" title="Agents" {...{ span }} only={{}} />
        <NotHandedOff span={span} />
      </div>
    </>
  )
}

function OverTime({ span }: { span: TimeSpan }) {
  const parameters = new URLSearchParams({
    ...timesOf(span),
    interval: intervalOf(span).name,
    group_by: 'verdict',
  })
  const answer = useCounts(parameters)
  const before = earlier(span)
  const then = useCounts(new URLSearchParams({ ...timesOf(before), group_by: 'verdict' }))
  return (
    <Loaded answer={answer}>
      {({ data }) => (
        <>
          <ul class="totals">
            {verdictOrder.map((verdict) => (
              <li key={verdict}>
                <a href={sessionsHref(span, { verdict })}>
                  <VerdictBadge verdict={verdict} />
                  <b>{formatNumber(sumOf(data, verdict))}</b>
                  <span>{share(sumOf(data, verdict), data.sessions)}</span>
                </a>
                {then.data && (
                  <a class="before" href={sessionsHref(before, { verdict })}>
                    {formatNumber(sumOf(then.data.data, verdict))} before
                  </a>
                )}
              </li>
            ))}
          </ul>
          <Chart counts={data} span={span} />
          <ApiRequest paths={[`/v1/sessions/aggregates?${parameters}`]} />
        </>
      )}
    </Loaded>
  )
}

const sumOf = ({ groups }: SessionAggregates, verdict: string): number =>
  groups
    .filter(({ values }) => values.verdict === verdict)
    .reduce((sum, { sessions }) => sum + sessions, 0)

interface TopProps {
  field: GroupField
  /** Another field to tell them apart by. */
  and?: GroupField
  title: string
  span: TimeSpan
  only: Record<string, string>
}

function Top({ field, and, title, span, only }: TopProps) {
  const fields = and ? [field, and] : [field]
  const parameters = new URLSearchParams({
    ...timesOf(span),
    ...only,
    group_by: fields.join(),
    top: and ? '20' : '6',
  })
  const answer = useCounts(parameters)
  return (
    <Panel title={title}>
      <Loaded answer={answer}>
        {({ data: { groups } }) => (
          <TopList
            label={filterTitles[field]}
            entries={groups
              .filter(({ values }) => values[field])
              .map(({ values, sessions }) => {
                const named = Object.fromEntries(fields.map((one) => [one, values[one] ?? '']))
                return {
                  text: fields.map((one) => valueText(one, values[one] ?? '')).join(' · '),
                  href: sessionsHref(span, { ...only, ...named }),
                  count: formatNumber(sessions),
                }
              })}
          />
        )}
      </Loaded>
    </Panel>
  )
}

function NotHandedOff({ span }: { span: TimeSpan }) {
  const group_by = 'page_host,handed_off'
  const answer = useCounts(new URLSearchParams({ ...timesOf(span), group_by, top: '100' }))
  return (
    <Panel title="Hand-offs that never came">
      <Loaded answer={answer}>
        {({ data }) => (
          <TopList
            entries={handOffsOf(data)
              .slice(0, 6)
              .map(({ host, sessions, missing }) => ({
                text: host,
                href: sessionsHref(span, { page_host: host, handed_off: 'false' }),
                count: `${formatNumber(missing)} (${share(missing, sessions)})`,
              }))}
          />
        )}
      </Loaded>
    </Panel>
  )
}

interface TopEntry {
  text: string
  /** Of the sessions that are counted. */
  href: string
  count: string
}

function TopList({ label, entries }: { label?: string; entries: TopEntry[] }) {
  if (entries.length === 0) return <p class="hint">None within this time.</p>
  return (
    <ul class="top-list" aria-label={label}>
      {entries.map(({ text, href, count }) => (
        <li key={text}>
          <a href={href}>
            <span>{text}</span>
            <span class="number">{count}</span>
          </a>
        </li>
      ))}
    </ul>
  )
}
