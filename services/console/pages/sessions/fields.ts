import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { FilterName } from '../../../../projections/sessions/filter-fields.ts'
import { inWords } from '../shared/format.ts'
import { signalName } from '../shared/signal-names.ts'
import { type TimeSpan, timesOf } from '../shared/span.ts'

/** Titles of the filter fields, in display order. */
export const filterTitles = {
  verdict: 'Verdict',
  signal: 'Signal',
  attribution: 'Attribution',
  country: 'Country',
  asn: 'ASN',
  network: 'Network',
  page_path: 'Path',
  page_host: 'Host',
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

const notNegatable: readonly Field[] = ['handed_off', 'score_min', 'score_max']
export const canNegate = (field: Field): boolean => !notNegatable.includes(field)

const neverEmpty: readonly Field[] = ['verdict', 'mark', ...notNegatable]
/** Returns true if sessions may have no value of the field. */
export const canBeEmpty = (field: Field): boolean => !neverEmpty.includes(field)

/** Returns the text for "no value". For the agent status, `none` is a value of its own. */
export const emptyText = (field: Field): string => (field === 'agent_status' ? 'unknown' : 'none')

/** Returns the display text of a value, such as `AS64500`; null = no value. Ids, hosts and paths are not changed. */
export function valueText(field: Field, value: string | null): string {
  if (value === null) return emptyText(field)
  switch (field) {
    case 'asn':
      return `AS${value}`
    case 'signal':
      return signalName(value)
    case 'network':
    case 'mark':
      return inWords(value)
    default:
      return value
  }
}

export interface UrlFilter {
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

export function parseFilters(query: URLSearchParams): UrlFilter[] {
  const filters = filterNames.flatMap((name) =>
    query.getAll(name).map((text) => parseFilter(name, text)),
  )
  return filters.filter((filter) => filter !== undefined)
}

function parseFilter(name: string, text: string): UrlFilter | undefined {
  const isNot = name.endsWith(negated)
  const field = isNot ? name.slice(0, -negated.length) : name
  if (field === 'without') return isField(text) ? { field: text, value: null, isNot } : undefined
  return isField(field) ? { field, value: text, isNot } : undefined
}

function parameterOf({ field, value, isNot }: UrlFilter): [string, string] {
  const [name, text] = value === null ? ['without', field] : [field, value]
  return [isNot ? `${name}${negated}` : name, text]
}

export const parametersOf = (filters: readonly UrlFilter[]): URLSearchParams =>
  new URLSearchParams(filters.map(parameterOf))

/** Returns parameters for `hrefWith` that replace all filters of the URL. */
export function filterChanges(filters: readonly UrlFilter[]): Record<string, string[] | null> {
  const parameters = parametersOf(filters)
  return Object.fromEntries(
    filterNames.map((name) => [name, parameters.has(name) ? parameters.getAll(name) : null]),
  )
}

const isSameValue = (a: UrlFilter, b: UrlFilter) => a.field === b.field && a.value === b.value

/** Removes a filter, negated or not. */
export const withoutFilter = (filters: readonly UrlFilter[], old: UrlFilter): UrlFilter[] =>
  filters.filter((filter) => !isSameValue(filter, old))

/** Adds a filter, or replaces the one with the same field and value. */
export const withFilter = (filters: readonly UrlFilter[], next: UrlFilter): UrlFilter[] => [
  ...withoutFilter(filters, next),
  next,
]

/** Replaces all filters of the same field. */
export const withOnlyFilter = (filters: readonly UrlFilter[], next: UrlFilter): UrlFilter[] => [
  ...filters.filter(({ field }) => field !== next.field),
  next,
]

/** Turns a filter from "is" into "is not", or back, without moving it. */
export const withNegation = (filters: readonly UrlFilter[], old: UrlFilter): UrlFilter[] =>
  filters.map((filter) => (isSameValue(filter, old) ? { ...old, isNot: !old.isNot } : filter))

export const requestParameters = (query: URLSearchParams, span: TimeSpan): URLSearchParams =>
  new URLSearchParams([...filterParameters(query), ...Object.entries(timesOf(span))])
