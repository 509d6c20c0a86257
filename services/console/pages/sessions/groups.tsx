import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import { goTo, hrefWith } from '../shared/address.ts'
import { useCounts } from '../shared/counts.ts'
import { formatNumber, share } from '../shared/format.ts'
import { Head } from '../shared/head.tsx'
import type { TimeSpan } from '../shared/span.ts'
import { Loaded } from '../shell/states.tsx'
import {
  changesTo,
  chosenIn,
  emptyText,
  fieldNames,
  filterTitles,
  isGrouped,
  mayBeEmpty,
  only,
  requestParameters,
  valueText,
} from './fields.ts'

/** How many sessions have each value of the field that the address groups by. */
export function Groups({ query, span }: { query: URLSearchParams; span: TimeSpan }) {
  const field = fieldNames.filter(isGrouped).find((name) => name === query.get('group'))
  return (
    <div class="groups">
      <label>
        Group by
        <select
          value={field ?? ''}
          onChange={({ currentTarget: { value } }) => goTo(hrefWith({ group: value || null }))}
        >
          <option value="">nothing</option>
          {fieldNames.filter(isGrouped).map((name) => (
            <option key={name} value={name}>
              {filterTitles[name]}
            </option>
          ))}
        </select>
      </label>
      {field && <Counted {...{ field, query, span }} />}
    </div>
  )
}

function Counted({
  field,
  query,
  span,
}: {
  field: GroupField
  query: URLSearchParams
  span: TimeSpan
}) {
  const counted = requestParameters(query, span)
  counted.set('group_by', field)
  counted.set('top', '25')
  const answer = useCounts(counted)
  return (
    <Loaded answer={answer}>
      {({ data }) => (
        <table>
          <Head
            columns={[filterTitles[field], 'Sessions', 'Share']}
            numbers={['Sessions', 'Share']}
          />
          <tbody>
            {data.groups.map(({ kind, values, sessions }) => {
              const value = values[field] ?? null
              const isOne = kind === 'value' && (value !== null || mayBeEmpty(field))
              const href = () =>
                hrefWith(changesTo(only(chosenIn(query), { field, value, isNot: false })))
              return (
                <tr key={`${kind}${value}`}>
                  <td>
                    {isOne ? (
                      <a href={href()}>
                        {value === null ? emptyText(field) : valueText(field, value)}
                      </a>
                    ) : (
                      kind
                    )}
                  </td>
                  <td class="number">{formatNumber(sessions)}</td>
                  <td class="number">{share(sessions, data.sessions)}</td>
                </tr>
              )
            })}
          </tbody>
        </table>
      )}
    </Loaded>
  )
}
