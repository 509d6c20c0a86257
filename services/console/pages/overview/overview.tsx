import { useState } from 'preact/hooks'
import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import { OpenAlerts } from '../sessions/alerts.tsx'
import { seriesCount } from '../sessions/buckets.ts'
import { Chart } from '../sessions/chart.tsx'
import { currentPage, hrefWith, navigate } from '../shared/address.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { useCounts } from '../shared/counts.ts'
import { person } from '../shared/person.ts'
import { intervalOf, now, spanOf, type TimeSpan, timesOf } from '../shared/span.ts'
import { SpanChoice } from '../shared/span-choice.tsx'
import { Loaded } from '../shell/loaded.tsx'
import { Anomalies } from './anomalies.tsx'
import { GettingStarted } from './getting-started.tsx'
import { groupingBy } from './links.ts'
import './overview.css'
import { Stats } from './stats.tsx'
import { TopLists } from './top-lists.tsx'

const splits: [GroupField, string][] = [
  ['verdict', 'verdict'],
  ['page_path', 'path'],
  ['country', 'country'],
  ['asn', 'network'],
  ['attribution', 'attribution'],
  ['agent_provider', 'agent'],
]

const countsOverTime = (span: TimeSpan, field: GroupField) =>
  new URLSearchParams({
    ...timesOf(span),
    interval: intervalOf(span).name,
    ...(field === 'verdict' ? { group_by: field } : groupingBy(field, seriesCount(field))),
  })

export function OverviewPage({ query }: { query: URLSearchParams }) {
  const span = spanOf(query, now.value)
  const setup = `tidegate.setup.${person.value?.organization.id}.${currentPage.value?.environment}`
  const [isSetUp, setSetUp] = useState(localStorage.getItem(setup) !== null)
  const finishSetup = () => {
    localStorage.setItem(setup, 'done')
    setSetUp(true)
  }
  const numbers = <Numbers {...{ query, span }} />
  return (
    <>
      <div class="title">
        <h1>Overview</h1>
        <SpanChoice span={span} />
      </div>
      <OpenAlerts />
      {isSetUp ? numbers : <GettingStarted finish={finishSetup}>{numbers}</GettingStarted>}
    </>
  )
}

interface NumbersProps {
  query: URLSearchParams
  span: TimeSpan
}

function Numbers({ query, span }: NumbersProps) {
  const counts = useCounts(countsOverTime(span, 'verdict'))
  const [field] = splits.find(([name]) => name === query.get('split')) ?? ['verdict' as const]
  return (
    <>
      <Loaded response={counts}>{({ data }) => <Stats counts={data} span={span} />}</Loaded>
      <div class="trends">
        <SplitChart {...{ field, span }} />
        <Anomalies span={span} />
      </div>
      {counts.data && <TopLists span={span} byVerdict={counts.data.data} />}
      <ApiRequest paths={[`/v1/sessions/aggregates?${countsOverTime(span, field)}`]} />
    </>
  )
}

function SplitChart({ field, span }: { field: GroupField; span: TimeSpan }) {
  const parameters = countsOverTime(span, field)
  const split = (value: string) => navigate(hrefWith({ split: value === 'verdict' ? null : value }))
  const response = useCounts(parameters)
  // While another field or interval loads, the response is of the previous one.
  const loaded = new URLSearchParams(response.path.split('?')[1])
  const isCurrent = ['group_by', 'interval'].every(
    (name) => loaded.get(name) === parameters.get(name),
  )
  return (
    <section aria-label="Sessions over time">
      <Loaded response={response} lines={8}>
        {({ data }) => (
          <Chart
            counts={isCurrent ? data : { ...data, groups: [] }}
            {...{ span, field }}
            height={230}
          >
            <label>
              Sessions by{' '}
              <select value={field} onChange={({ currentTarget }) => split(currentTarget.value)}>
                {splits.map(([name, title]) => (
                  <option key={name} value={name}>
                    {title}
                  </option>
                ))}
              </select>
            </label>
          </Chart>
        )}
      </Loaded>
    </section>
  )
}
