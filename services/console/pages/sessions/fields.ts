import type { GroupField } from '../../../../projections/sessions/count-groups.ts'
import type { FilterName } from '../../../../projections/sessions/filter-fields.ts'
import { inWords } from '../shared/format.ts'
import { isoTime, type TimeSpan } from '../shared/span.ts'

/** What sessions can be filtered by, in the order in which it is offered. `group_by` counts all but the last ones. */
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
  agent_provider: 'Agent’s operator',
  mark: 'Mark',
  handed_off: 'Handed off',
  key_id: 'Key',
  client_user_id: 'User',
  visitor_id: 'Visitor',
  ip: 'Address',
  score_min: 'Score at least',
  score_max: 'Score at most',
} as const satisfies Record<FilterName | 'handed_off' | 'score_min' | 'score_max', string>
export type Field = keyof typeof filterTitles

export const isField = (name: string): name is Field => Object.hasOwn(filterTitles, name)

export const fieldNames = Object.keys(filterTitles).filter(isField)

const ungrouped: readonly Field[] = ['client_user_id', 'visitor_id', 'ip', 'score_min', 'score_max']
export const isGrouped = (field: Field): field is GroupField => !ungrouped.includes(field)

const onlyPositive: readonly Field[] = ['handed_off', 'score_min', 'score_max']
export const canBeNot = (field: Field): boolean => !onlyPositive.includes(field)

const filled: readonly Field[] = ['verdict', 'mark', ...onlyPositive]
/** Whether there are sessions without a value of the field. */
export const mayBeEmpty = (field: Field): boolean => !filled.includes(field)

/** What stands for no value. The status of an agent can be `none`, which is a value. */
export const emptyText = (field: Field): string => (field === 'agent_status' ? 'unknown' : 'none')

/** A value as people read it: `AS64500`, `webdriver detected`. */
export const valueText = (field: Field, value: string): string =>
  field === 'asn' ? `AS${value}` : inWords(value)

/** One filter of an address. */
export interface ChosenFilter {
  field: Field
  /** null = no value. */
  value: string | null
  isNot: boolean
}

// As the API names them: `country`, `country[not]`, `without` and `without[not]`.
const negated = '[not]'
const withNegated = (name: string) => [name, `${name}${negated}`]
const filterNames = [
  ...fieldNames.flatMap((field) => (canBeNot(field) ? withNegated(field) : [field])),
  ...withNegated('without'),
]

/** The filters of an address, as the API takes them, without times. */
export function filtersIn(query: URLSearchParams): URLSearchParams {
  const entries = filterNames.flatMap((name) => query.getAll(name).map((value) => [name, value]))
  const search = query.get('search')
  return new URLSearchParams(search ? [...entries, ['search', search]] : entries)
}

/** The filters of an address, by field. */
export function chosenIn(query: URLSearchParams): ChosenFilter[] {
  const chosen = filterNames.flatMap((name) =>
    query.getAll(name).map((text) => chosenBy(name, text)),
  )
  return chosen.filter((one) => one !== undefined)
}

function chosenBy(name: string, text: string): ChosenFilter | undefined {
  const isNot = name.endsWith(negated)
  const field = isNot ? name.slice(0, -negated.length) : name
  if (field === 'without') return isField(text) ? { field: text, value: null, isNot } : undefined
  return isField(field) ? { field, value: text, isNot } : undefined
}

function parameterOf({ field, value, isNot }: ChosenFilter): [string, string] {
  const [name, text] = value === null ? ['without', field] : [field, value]
  return [isNot ? `${name}${negated}` : name, text]
}

/** The filters as the API takes them. */
export const parametersOf = (chosen: readonly ChosenFilter[]): URLSearchParams =>
  new URLSearchParams(chosen.map(parameterOf))

/** What `hrefWith` changes so that the address has these filters and no others. */
export function changesTo(chosen: readonly ChosenFilter[]): Record<string, string[] | null> {
  const parameters = parametersOf(chosen)
  return Object.fromEntries(
    filterNames.map((name) => [name, parameters.has(name) ? parameters.getAll(name) : null]),
  )
}

const isSame = (one: ChosenFilter, other: ChosenFilter) =>
  one.field === other.field && one.value === other.value

/** Without the value, whether it was one that is or that is not. */
export const removed = (chosen: readonly ChosenFilter[], gone: ChosenFilter): ChosenFilter[] =>
  chosen.filter((one) => !isSame(one, gone))

/** With one more. What was said of the same value no longer holds. */
export const added = (chosen: readonly ChosenFilter[], next: ChosenFilter): ChosenFilter[] => [
  ...removed(chosen, next),
  next,
]

/** With one in the place of all others of its field. */
export const only = (chosen: readonly ChosenFilter[], next: ChosenFilter): ChosenFilter[] => [
  ...chosen.filter(({ field }) => field !== next.field),
  next,
]

/** With the opposite of one, in its place. */
export const turned = (chosen: readonly ChosenFilter[], old: ChosenFilter): ChosenFilter[] =>
  chosen.map((one) => (isSame(one, old) ? { ...old, isNot: !old.isNot } : one))

/** The parameters of a request for what the address asks for. */
export function requestParameters(
  query: URLSearchParams,
  { since, until }: TimeSpan,
): URLSearchParams {
  return new URLSearchParams([
    ...filtersIn(query),
    ['since', isoTime(since)],
    ['until', isoTime(until)],
  ])
}
