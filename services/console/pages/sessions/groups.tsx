import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import { hrefWith, navigate } from '../shared/address.ts'
import { useCounts } from '../shared/counts.ts'
import { formatNumber, formatPercent } from '../shared/format.ts'
import type { TimeSpan } from '../shared/span.ts'
import { TableHead } from '../shared/table-head.tsx'
import { Loaded } from '../shell/loaded.tsx'
import {
  canBeEmpty,
  fieldNames,
  filterChanges,
  filterTitles,
  isGrouped,
  parseFilters,
  requestParameters,
  valueText,
  withOnlyFilter,
} from './fields.ts'

/** Returns the field that the URL groups by. */
export const groupFieldIn = (query: URLSearchParams): GroupField | undefined =>
  fieldNames.filter(isGrouped).find((name) => name === query.get('group'))

export function GroupChoice({ query }: { query: URLSearchParams }) {
  return (
    <label>
      Group by
      <select
        value={groupFieldIn(query) ?? ''}
        onChange={({ currentTarget: { value } }) => navigate(hrefWith({ group: value || null }))}
      >
        <option value="">none</option>
        {fieldNames.filter(isGrouped).map((name) => (
          <option key={name} value={name}>
            {filterTitles[name]}
          </option>
        ))}
      </select>
    </label>
  )
}

/** Session counts by value of a field. */
export function GroupTable({
  field,
  query,
  span,
}: {
  field: GroupField
  query: URLSearchParams
  span: TimeSpan
}) {
  const parameters = requestParameters(query, span)
  parameters.delete('search')
  parameters.set('group_by', field)
  parameters.set('top', '25')
  const response = useCounts(parameters)
  return (
    <Loaded response={response}>
      {({ data }) => (
        <table class="groups">
          <TableHead
            columns={[filterTitles[field], 'Sessions', 'Share']}
            numericColumns={['Sessions', 'Share']}
          />
          <tbody>
            {data.groups.map(({ kind, values, sessions }) => {
              const value = values[field] ?? null
              const isFilterable = kind === 'value' && (value !== null || canBeEmpty(field))
              const href = () =>
                hrefWith(
                  filterChanges(
                    withOnlyFilter(parseFilters(query), { field, value, isNot: false }),
                  ),
                )
              return (
                <tr key={`${kind}${value}`}>
                  <td>{isFilterable ? <a href={href()}>{valueText(field, value)}</a> : kind}</td>
                  <td class="number">{formatNumber(sessions)}</td>
                  <td class="number">{formatPercent(sessions, data.sessions)}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      )}
    </Loaded>
  )
}
