import './overview.css'
import { Chart } from '../sessions/chart.tsx'
import { type Field, filterTitles } from '../sessions/fields.ts'
import { hrefOf } from '../shared/address.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { useCounts } from '../shared/counts.ts'
import { formatNumber, inWords, share } from '../shared/format.ts'
import { intervalOf, isoTime, now, spanOf, type TimeSpan } from '../shared/span.ts'
import { SpanChoice } from '../shared/span-choice.tsx'
import { type Counts, verdictOrder } from '../shared/types.ts'
import { VerdictBadge } from '../shared/verdict.tsx'
import { Loaded } from '../shell/states.tsx'
import { GettingStarted } from './getting-started.tsx'

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
      <div class="columns">
        <Top field="signal" title="Why (signals of bots)" {...{ span }} only={{ verdict: 'bot' }} />
        <Top field="asn" title="Networks of bots" {...{ span }} only={{ verdict: 'bot' }} />
        <Top field="country" title="Countries" {...{ span }} only={{}} />
        <Top field="page_host" title="Pages" {...{ span }} only={{}} />
        <Top field="agent_provider" title="Agents" {...{ span }} only={{}} />
        <Top field="handed_off" title="Handed off" {...{ span }} only={{}} />
      </div>
    </>
  )
}

const timesOf = ({ since, until }: TimeSpan) => ({ since: isoTime(since), until: isoTime(until) })
/** Of a link to the list: relative where the address is. */
const spanQuery = (span: TimeSpan) => (span.last ? { last: span.last } : timesOf(span))

function OverTime({ span }: { span: TimeSpan }) {
  const parameters = new URLSearchParams({
    ...timesOf(span),
    interval: intervalOf(span).name,
    group_by: 'verdict',
  })
  const answer = useCounts(parameters)
  return (
    <Loaded answer={answer}>
      {({ data }) => (
        <>
          <ul class="totals">
            {verdictOrder.map((verdict) => (
              <li key={verdict}>
                <a
                  href={hrefOf({
                    page: 'sessions',
                    query: new URLSearchParams({ ...spanQuery(span), verdict }),
                  })}
                >
                  <VerdictBadge verdict={verdict} />
                  <b>{formatNumber(sumOf(data, verdict))}</b>
                  <span>{share(sumOf(data, verdict), data.sessions)}</span>
                </a>
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

const sumOf = ({ groups }: Counts, verdict: string): number =>
  groups.filter(({ values }) => values.verdict === verdict).reduce((sum, { sessions }) => sum + sessions, 0)

interface TopProps {
  field: Field
  title: string
  span: TimeSpan
  only: Record<string, string>
}

function Top({ field, title, span, only }: TopProps) {
  const parameters = new URLSearchParams({ ...timesOf(span), ...only, group_by: field, top: '6' })
  const answer = useCounts(parameters)
  return (
    <section class="part">
      <h2>{title}</h2>
      <Loaded answer={answer}>
        {({ data: { groups } }) => {
          const named = groups.filter(({ values }) => values[field])
          if (named.length === 0) return <p class="hint">None within this time.</p>
          return (
            <ul class="top-list" aria-label={filterTitles[field]}>
              {named.map(({ values, sessions }) => {
                const value = values[field] ?? ''
                const query = new URLSearchParams({ ...spanQuery(span), ...only, [field]: value })
                return (
                  <li key={value}>
                    <a href={hrefOf({ page: 'sessions', query })}>
                      <span>{inWords(value)}</span>
                      <span class="number">{formatNumber(sessions)}</span>
                    </a>
                  </li>
                )
              })}
            </ul>
          )
        }}
      </Loaded>
    </section>
  )
}
