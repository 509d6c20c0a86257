import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { verdictOrder } from '../sessions/buckets.ts'
import { Chart } from '../sessions/chart.tsx'
import { filterTitles, valueText } from '../sessions/fields.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { useCounts } from '../shared/counts.ts'
import { formatNumber, formatPercent } from '../shared/format.ts'
import { Panel } from '../shared/panel.tsx'
import { intervalOf, now, spanOf, type TimeSpan } from '../shared/span.ts'
import { SpanChoice } from '../shared/span-choice.tsx'
import { VerdictBadge } from '../shared/verdict.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { missingHandOffs, previousPeriod } from './compare.ts'
import { sessionsHref, timesOf } from './links.ts'
import './overview.css'
import { GettingStarted } from './getting-started.tsx'
import { UnusualActivity } from './unusual.tsx'

export function OverviewPage({ query }: { query: URLSearchParams }) {
  const span = spanOf(query, now.value)
  return (
    <>
      <div class="title">
        <h1>Overview</h1>
        <SpanChoice span={span} />
      </div>
      <GettingStarted />
      <VerdictsOverTime span={span} />
      <UnusualActivity span={span} />
      <div class="columns">
        <TopValues
          field="signal"
          title="Top bot signals"
          {...{ span }}
          filters={{ verdict: 'bot' }}
        />
        <TopValues
          field="asn"
          title="Top bot networks (ASN)"
          {...{ span }}
          filters={{ verdict: 'bot' }}
        />
        <TopValues field="country" title="Countries" {...{ span }} filters={{}} />
        <TopValues field="page_path" title="Paths" {...{ span }} filters={{}} />
        <TopValues
          field="agent_provider"
          secondField="agent_status"
          title="Agents"
          {...{ span }}
          filters={{}}
        />
        <NotHandedOff span={span} />
      </div>
    </>
  )
}

function VerdictsOverTime({ span }: { span: TimeSpan }) {
  const parameters = new URLSearchParams({
    ...timesOf(span),
    interval: intervalOf(span).name,
    group_by: 'verdict',
  })
  const response = useCounts(parameters)
  const previousSpan = previousPeriod(span)
  const previous = useCounts(new URLSearchParams({ ...timesOf(previousSpan), group_by: 'verdict' }))
  return (
    <Loaded response={response}>
      {({ data }) => (
        <>
          <ul class="totals">
            {verdictOrder.map((verdict) => (
              <li key={verdict}>
                <a href={sessionsHref(span, { verdict })}>
                  <VerdictBadge verdict={verdict} />
                  <b>{formatNumber(sumOf(data, verdict))}</b>
                  <span>{formatPercent(sumOf(data, verdict), data.sessions)}</span>
                </a>
                {previous.data && (
                  <a class="before" href={sessionsHref(previousSpan, { verdict })}>
                    was {formatNumber(sumOf(previous.data.data, verdict))}
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
  secondField?: GroupField
  title: string
  span: TimeSpan
  filters: Record<string, string>
}

function TopValues({ field, secondField, title, span, filters }: TopProps) {
  const fields = secondField ? [field, secondField] : [field]
  const parameters = new URLSearchParams({
    ...timesOf(span),
    ...filters,
    group_by: fields.join(),
    top: secondField ? '20' : '6',
  })
  const response = useCounts(parameters)
  return (
    <Panel title={title}>
      <Loaded response={response}>
        {({ data: { groups } }) => (
          <TopList
            label={filterTitles[field]}
            entries={groups
              .filter(({ values }) => values[field])
              .map(({ values, sessions }) => {
                const groupFilters = Object.fromEntries(
                  fields.map((name) => [name, values[name] ?? '']),
                )
                return {
                  text: fields.map((name) => valueText(name, values[name] ?? '')).join(' · '),
                  href: sessionsHref(span, { ...filters, ...groupFilters }),
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
  const response = useCounts(new URLSearchParams({ ...timesOf(span), group_by, top: '100' }))
  return (
    <Panel title="Abandoned before submit">
      <Loaded response={response}>
        {({ data }) => (
          <TopList
            entries={missingHandOffs(data)
              .slice(0, 6)
              .map(({ host, sessions, missing }) => ({
                text: host,
                href: sessionsHref(span, { page_host: host, handed_off: 'false' }),
                count: `${formatNumber(missing)} (${formatPercent(missing, sessions)})`,
              }))}
          />
        )}
      </Loaded>
    </Panel>
  )
}

interface TopEntry {
  text: string
  /** URL of the counted sessions. */
  href: string
  count: string
}

function TopList({ label, entries }: { label?: string; entries: TopEntry[] }) {
  if (entries.length === 0) return <p class="hint">No data in this period</p>
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
