import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { SessionAggregates } from '../../../readback/schemas/aggregates.ts'
import { hrefWith, navigate } from '../shared/address.ts'
import { useCounts } from '../shared/counts.ts'
import { formatNumber, formatPercent } from '../shared/format.ts'
import type { TimeSpan } from '../shared/span.ts'
import { TableHead } from '../shared/table-head.tsx'
import { Loaded } from '../shell/loaded.tsx'
import {
  canBeEmpty,
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

/** Session counts by value of a field, split by verdict. */
export function GroupTable({ field, query, span }: GroupTableProps) {
  const parameters = requestParameters(query, span)
  parameters.delete('search')
  parameters.set('group_by', field)
  parameters.set('top', '25')
  const totals = useCounts(parameters)
  const { data: bots } = useCounts(withoutVerdicts(parameters, 'human', 'inconclusive'))
  const { data: inconclusives } = useCounts(withoutVerdicts(parameters, 'human', 'bot'))
  const numbers = ['Sessions', 'Share', ...verdicts]
  const filters = parseFilters(query)
  return (
    <Loaded response={totals}>
      {({ data }) => (
        <div class="scroll">
          <table class="groups">
            <TableHead
              columns={[filterTitles[field], ...numbers, 'Split']}
              numericColumns={numbers}
            />
            <tbody>
              {data.groups.map(({ kind, values, sessions }) => {
                const value = values[field] ?? null
                const canFilter = kind === 'value' && (value !== null || canBeEmpty(field))
                const only = withOnlyFilter(filters, { field, value, isNot: false })
                const text = valueText(field, value)
                const bot = bots && sessionsOf(bots.data, field, value)
                const inconclusive = inconclusives && sessionsOf(inconclusives.data, field, value)
                const isSplit = bot !== undefined && inconclusive !== undefined
                const counts = [
                  bot,
                  inconclusive,
                  isSplit ? sessions - bot - inconclusive : undefined,
                ]
                return (
                  <tr key={`${kind}${value}`}>
                    <td class="clip" title={text}>
                      {canFilter ? <a href={hrefOfFilters(only)}>{text}</a> : kind}
                    </td>
                    <td class="number">{formatNumber(sessions)}</td>
                    <td class="number">{formatPercent(sessions, data.sessions)}</td>
                    {counts.map((count, i) => (
                      <td key={verdicts[i]} class="number">
                        {kind === 'value' && count !== undefined && formatNumber(count)}
                      </td>
                    ))}
                    <td>
                      <span class="split" aria-hidden="true">
                        {counts.map((count = 0, i) => (
                          <span
                            key={verdicts[i]}
                            style={{ flexGrow: count, background: `var(--${verdicts[i]})` }}
                          />
                        ))}
                      </span>
                    </td>
                  </tr>
                )
              })}
            </tbody>
          </table>
        </div>
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
