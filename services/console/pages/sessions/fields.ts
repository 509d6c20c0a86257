import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { FilterName } from '../../../../projections/sessions/filter-fields.ts'
import { inWords } from '../shared/format.ts'
import { isoTime, type TimeSpan } from '../shared/span.ts'

/** Filter fields in display order. `group_by` supports all but those in `ungrouped`. */
export const filterTitles = {
  verdict: 'Verdict',
  signal: 'Signal',
  attribution: 'Attribution',
  country: 'Country',
  asn: 'ASN',
  network: 'Network',
  page_host: 'Page',
  browser: 'Browser',
  os: 'System',
  agent_status: 'Agent',
  agent_provider: 'Agent operator',
  mark: 'Label',
  handed_off: 'Sent to back end',
  key_id: 'Key',
  client_user_id: 'User',
  visitor_id: 'Visitor',
  ip: 'IP address',
  score_min: 'Score at least',
  score_max: 'Score at most',
} as const satisfies Record<FilterName | 'handed_off' | 'score_min' | 'score_max', string>
export type Field = keyof typeof filterTitles

export const isField = (name: string): name is Field => Object.hasOwn(filterTitles, name)

export const fieldNames = Object.keys(filterTitles).filter(isField)

const ungrouped: readonly Field[] = ['client_user_id', 'visitor_id', 'ip', 'score_min', 'score_max']
export const isGrouped = (field: Field): field is GroupField => !ungrouped.includes(field)

const positiveOnly: readonly Field[] = ['handed_off', 'score_min', 'score_max']
export const canNegate = (field: Field): boolean => !positiveOnly.includes(field)

const neverEmpty: readonly Field[] = ['verdict', 'mark', ...positiveOnly]
/** Returns true if sessions may have no value of the field. */
export const canBeEmpty = (field: Field): boolean => !neverEmpty.includes(field)

/** Returns the text for "no value". `none` is a value of the agent status. */
export const emptyText = (field: Field): string => (field === 'agent_status' ? 'unknown' : 'none')

/** Formats a value: `AS64500`, `webdriver detected`. */
export const valueText = (field: Field, value: string): string =>
  field === 'asn' ? `AS${value}` : inWords(value)

/** A filter in a URL. */
export interface ChosenFilter {
  field: Field
  /** null = no value. */
  value: string | null
  isNot: boolean
}

// Parameter names of the API: `country`, `country[not]`, `without` and `without[not]`.
const negated = '[not]'
const withNegated = (name: string) => [name, `${name}${negated}`]
const filterNames = [
  ...fieldNames.flatMap((field) => (canNegate(field) ? withNegated(field) : [field])),
  ...withNegated('without'),
]

/** Returns the filter parameters of a URL for the API, without times. */
export function filterParameters(query: URLSearchParams): URLSearchParams {
  const entries = filterNames.flatMap((name) => query.getAll(name).map((value) => [name, value]))
  const search = query.get('search')
  return new URLSearchParams(search ? [...entries, ['search', search]] : entries)
}

/** Returns the filters in a URL. */
export function parseFilters(query: URLSearchParams): ChosenFilter[] {
  const chosen = filterNames.flatMap((name) =>
    query.getAll(name).map((text) => parseFilter(name, text)),
  )
  return chosen.filter((one) => one !== undefined)
}

function parseFilter(name: string, text: string): ChosenFilter | undefined {
  const isNot = name.endsWith(negated)
  const field = isNot ? name.slice(0, -negated.length) : name
  if (field === 'without') return isField(text) ? { field: text, value: null, isNot } : undefined
  return isField(field) ? { field, value: text, isNot } : undefined
}

function parameterOf({ field, value, isNot }: ChosenFilter): [string, string] {
  const [name, text] = value === null ? ['without', field] : [field, value]
  return [isNot ? `${name}${negated}` : name, text]
}

/** Returns the filters as API parameters. */
export const parametersOf = (chosen: readonly ChosenFilter[]): URLSearchParams =>
  new URLSearchParams(chosen.map(parameterOf))

/** Returns the changes for `hrefWith` that replace all filters by these. */
export function filterChanges(chosen: readonly ChosenFilter[]): Record<string, string[] | null> {
  const parameters = parametersOf(chosen)
  return Object.fromEntries(
    filterNames.map((name) => [name, parameters.has(name) ? parameters.getAll(name) : null]),
  )
}

const isSameValue = (one: ChosenFilter, other: ChosenFilter) =>
  one.field === other.field && one.value === other.value

/** Removes a filter, negated or not. */
export const withoutFilter = (chosen: readonly ChosenFilter[], old: ChosenFilter): ChosenFilter[] =>
  chosen.filter((one) => !isSameValue(one, old))

/** Adds a filter. It replaces one of the same value. */
export const withFilter = (chosen: readonly ChosenFilter[], next: ChosenFilter): ChosenFilter[] => [
  ...withoutFilter(chosen, next),
  next,
]

/** Replaces all filters of a field by this one. */
export const withOnlyFilter = (
  chosen: readonly ChosenFilter[],
  next: ChosenFilter,
): ChosenFilter[] => [...chosen.filter(({ field }) => field !== next.field), next]

/** Negates a filter in place. */
export const withNegation = (chosen: readonly ChosenFilter[], old: ChosenFilter): ChosenFilter[] =>
  chosen.map((one) => (isSameValue(one, old) ? { ...old, isNot: !old.isNot } : one))

/** Returns the API parameters for a URL's filters and a period. */
export function requestParameters(
  query: URLSearchParams,
  { since, until }: TimeSpan,
): URLSearchParams {
  return new URLSearchParams([
    ...filterParameters(query),
    ['since', isoTime(since)],
    ['until', isoTime(until)],
  ])
}
