import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import { filterTitles, valueText } from '../sessions/fields.ts'
import { useCounts } from '../shared/counts.ts'
import { formatNumber } from '../shared/format.ts'
import { Panel } from '../shared/panel.tsx'
import type { TimeSpan } from '../shared/span.ts'
import { Loaded } from '../shell/loaded.tsx'
import { findRises, lastDay, previousPeriod } from './compare.ts'
import { sessionsHref, timesOf } from './links.ts'

/** Values with far more sessions than in the same hours of the day before. */
export function UnusualActivity({ span }: { span: TimeSpan }) {
  const day = lastDay(span)
  return (
    <Panel title="Unusual activity">
      <p class="hint">At least 50 sessions, and 3× those in the same hours of the day before</p>
      <div class="unusual">
        {(['signal', 'country', 'asn', 'page_path'] as const).map((field) => (
          <Rises key={field} field={field} span={day} />
        ))}
      </div>
    </Panel>
  )
}

const useCountsBy = (field: GroupField, span: TimeSpan) =>
  useCounts(new URLSearchParams({ ...timesOf(span), group_by: field, top: '100' }))

function Rises({ field, span }: { field: GroupField; span: TimeSpan }) {
  const dayBefore = previousPeriod(span)
  const currentCounts = useCountsBy(field, span)
  const previousCounts = useCountsBy(field, dayBefore)
  return (
    <div>
      <h3>{filterTitles[field]}</h3>
      <Loaded response={currentCounts}>
        {({ data }) => (
          <Loaded response={previousCounts}>
            {({ data: previous }) => {
              if (!data.is_complete || !previous.is_complete)
                return <p class="hint">Too many sessions to compare</p>
              const rises = findRises(field, data, previous)
              if (rises.length === 0) return <p class="hint">Nothing unusual</p>
              return (
                <ul class="rises">
                  {rises.map(({ value, sessions, previousSessions }) => (
                    <li key={value}>
                      <a href={sessionsHref(span, { [field]: value })}>
                        {valueText(field, value)} <b>{formatNumber(sessions)}</b>
                      </a>{' '}
                      <a class="hint" href={sessionsHref(dayBefore, { [field]: value })}>
                        was {formatNumber(previousSessions)}
                      </a>
                    </li>
                  ))}
                </ul>
              )
            }}
          </Loaded>
        )}
      </Loaded>
    </div>
  )
}
