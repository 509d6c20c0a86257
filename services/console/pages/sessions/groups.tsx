import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { Verdict } from '../../../../schemas/events.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { hrefWith, navigate } from '../shared/address.ts'
import { useCounts } from '../shared/counts.ts'
import { DataTable } from '../shared/data-table.tsx'
import { formatNumber, formatPercent } from '../shared/format.ts'
import type { TimeSpan } from '../shared/span.ts'
import { Loaded } from '../shell/loaded.tsx'
import {
  fieldNames,
  filterTitles,
  isGrouped,
  parseFilters,
  requestParameters,
  valueText,
  withOnlyFilter,
} from './fields.ts'
import { hrefOfFilters } from './filters.tsx'

/** Returns the field that the URL groups by. */
export const groupFieldIn = (query: URLSearchParams): GroupField | undefined =>
  fieldNames.filter(isGrouped).find((name) => name === query.get('group'))

export function GroupChoice({ query }: { query: URLSearchParams }) {
  return (
    <select
      aria-label="Group by"
      value={groupFieldIn(query) ?? ''}
      onChange={({ currentTarget: { value } }) => navigate(hrefWith({ group: value || null }))}
    >
      <option value="">No grouping</option>
      {fieldNames.filter(isGrouped).map((name) => (
        <option key={name} value={name}>
          By {filterTitles[name].toLowerCase()}
        </option>
      ))}
    </select>
  )
}

interface GroupTableProps {
  field: GroupField
  query: URLSearchParams
  span: TimeSpan
}

const verdicts = ['bot', 'inconclusive', 'human'] as const

type Group = SessionAggregates['groups'][number]
type VerdictCounts = Partial<Record<Verdict, number | undefined>>

/** Session counts by value of a field, split by verdict. */
export function GroupTable({ field, query, span }: GroupTableProps) {
  const parameters = requestParameters(query, span)
  parameters.delete('search')
  parameters.set('group_by', field)
  parameters.set('top', '25')
  const totals = useCounts(parameters)
  const bots = useCounts(withoutVerdicts(parameters, 'human', 'inconclusive'))
  const inconclusives = useCounts(withoutVerdicts(parameters, 'human', 'bot'))
  // Until all are loaded, some are of the previous period or filters.
  const isLoading = [totals, bots, inconclusives].some((response) => response.isLoading)
  const filters = parseFilters(query)
  const countsOf = ({ kind, values, sessions }: Group): VerdictCounts => {
    if (isLoading || kind !== 'value') return {}
    const [bot, inconclusive] = [bots, inconclusives].map(
      ({ data }) => data && sessionsOf(data.data, field, values[field] ?? null),
    )
    if (bot === undefined || inconclusive === undefined) return { bot, inconclusive }
    const human = sessions - bot - inconclusive
    // Too many sessions to count: the counts are of different periods.
    return human < 0 ? {} : { bot, inconclusive, human }
  }
  const columnOf = (verdict: Verdict) => ({
    class: 'number',
    cell: (group: Group) => {
      const count = countsOf(group)[verdict]
      return count !== undefined && formatNumber(count)
    },
  })
  return (
    <Loaded response={totals}>
      {({ data }) => (
        <DataTable
          label="Groups"
          rows={data.groups}
          keyOf={({ kind, values }) => `${kind}${values[field]}`}
          columns={{
            [filterTitles[field]]: {
              class: 'clip',
              cell: ({ kind, values }) => {
                if (kind !== 'value') return kind === 'ended' ? 'expired' : kind
                const value = values[field] ?? null
                const text = valueText(field, value)
                const only = withOnlyFilter(filters, { field, value, isNot: false })
                return (
                  <a href={hrefOfFilters(only)} title={text}>
                    {text}
                  </a>
                )
              },
            },
            Sessions: { class: 'number', cell: ({ sessions }) => formatNumber(sessions) },
            Share: {
              class: 'number',
              cell: ({ sessions }) => formatPercent(sessions, data.sessions),
            },
            ...Object.fromEntries(verdicts.map((verdict) => [verdict, columnOf(verdict)])),
            Split: (group) => (
              <span class="split" aria-hidden="true">
                {verdicts.map((verdict) => (
                  <span
                    key={verdict}
                    style={{
                      flexGrow: countsOf(group)[verdict] ?? 0,
                      background: `var(--${verdict})`,
                    }}
                  />
                ))}
              </span>
            ),
          }}
        />
      )}
    </Loaded>
  )
}

// Other verdicts are excluded, because a filter for one would widen that of the URL.
const withoutVerdicts = (parameters: URLSearchParams, ...excluded: string[]) =>
  new URLSearchParams([
    ...[...parameters].map(([name, value]) => [name, name === 'top' ? '100' : value]),
    ...excluded.map((verdict) => ['verdict[not]', verdict]),
  ])

/** Returns the sessions with the value; undefined if they may be among the "other" group. */
function sessionsOf(
  { groups }: SessionAggregates,
  field: GroupField,
  value: string | null,
): number | undefined {
  const hasOther = groups.some(({ kind }) => kind === 'other')
  const group = groups.find(
    ({ kind, values }) => kind === 'value' && (values[field] ?? null) === value,
  )
  return group?.sessions ?? (hasOther ? undefined : 0)
}
