import {
  type Bind,
  type FilterName,
  type FilterValues,
  filterFields,
  filterNames,
} from './filter-fields.ts'
import type { DataScope } from './scope.ts'

interface Chosen extends FilterValues {
  /** Fields of which sessions have no value. It is one more value of each: the values of the field may hold instead. */
  without?: FilterName[] | undefined
}

/** What sessions are searched for. Of several values of a member either may hold; all members must. */
export interface SessionFilters extends Chosen {
  /** Epoch milliseconds of the newest decision; included. */
  since?: number | undefined
  /** Excluded. */
  until?: number | undefined
  score_min?: number | undefined
  score_max?: number | undefined
  handed_off?: boolean[] | undefined
  /** None of it may hold. A session without a value has none of the values. */
  not?: Chosen | undefined
}

const lastingFields = filterNames.filter((name) => filterFields[name].isLasting)
// Signals and attributions are last, because they take longest.
const factFields = filterNames.filter((name) => !filterFields[name].isLasting).reverse()

const isAsked = (filters: SessionFilters, name: FilterName): boolean =>
  [filters, filters.not].some((chosen) => chosen?.[name] || chosen?.without?.includes(name))

/** Whether one is of what is null once decisions have ended. */
export const hasFacts = (filters: SessionFilters): boolean =>
  filters.handed_off !== undefined || factFields.some((name) => isAsked(filters, name))

/** Whether they are of more than times and verdicts. */
export function isNarrow({
  since: _,
  until: __,
  verdict: ___,
  not = {},
  ...others
}: SessionFilters): boolean {
  return [...Object.values(others), ...Object.values(not)].some((value) => value !== undefined)
}

/** Whether an index finds all sessions that meet them. */
export const isExact = (filters: SessionFilters): boolean => isPerson(filters) || !isNarrow(filters)

/** Whether they are of one visitor or user, or few, whose sessions an index has. */
export const isPerson = ({ without = [], ...filters }: SessionFilters): boolean =>
  personFields.some((field) => filters[field] !== undefined && !without.includes(field))

/** Whether they are of what no index has, so that rows are read. */
export const needsRows = (filters: SessionFilters): boolean =>
  !isPerson(filters) && personFields.some((name) => isAsked(filters, name))

/** Factor by which the labels that a filter looks for slow down each row. */
export const signalWeight = (filters: SessionFilters): number =>
  1 +
  [filters, filters.not].flatMap((one) => [...(one?.signal ?? []), ...(one?.attribution ?? [])])
    .length /
    5

const personFields = ['visitor_id', 'client_user_id'] as const

/** Conditions on the session `s` within its scope. */
export function conditionsOf(scope: DataScope, filters: SessionFilters, bind: Bind): string[] {
  return [
    ...timeConditions(filters, bind),
    ...lastingConditions(scope, filters, bind),
    ...factConditions(scope, filters, bind),
  ]
}

export function timeConditions({ since, until }: SessionFilters, bind: Bind): string[] {
  return [
    ...where(since, (at) => `s.evaluated_at >= ${bind(at)}`),
    ...where(until, (at) => `s.evaluated_at < ${bind(at)}`),
  ]
}

/** Of what a session's row has as long as it is there. */
export function lastingConditions(scope: DataScope, filters: SessionFilters, bind: Bind): string[] {
  return [
    ...where(filters.score_min, (score) => `s.risk_score >= ${bind(score)}`),
    ...where(filters.score_max, (score) => `s.risk_score <= ${bind(score)}`),
    ...lastingFields.flatMap((name) => fieldConditions(name, scope, filters, bind)),
  ]
}

/** Of what is null once the session's decisions have ended: no such session meets one, not even one of what it is not. */
export function factConditions(scope: DataScope, filters: SessionFilters, bind: Bind): string[] {
  const conditions = [
    ...where(filters.handed_off, handedOff),
    ...factFields.flatMap((name) => fieldConditions(name, scope, filters, bind)),
  ]
  return conditions.length > 0 ? [hasDecisions, ...conditions] : conditions
}

const hasDecisions = 's.scoring_version is not null'

function fieldConditions<Name extends FilterName>(
  name: Name,
  scope: DataScope,
  filters: SessionFilters,
  bind: Bind,
): string[] {
  const { hasOne, isEmpty } = filterFields[name]
  const conditionsOf = ({ [name]: values }: FilterValues, without: FilterName[] = []) => [
    ...(values ? [hasOne(values, bind, scope)] : []),
    ...(isEmpty && without.includes(name) ? [isEmpty] : []),
  ]
  const either = conditionsOf(filters, filters.without)
  return [
    ...(either.length > 1 ? [`(${either.join(' or ')})`] : either),
    ...conditionsOf(filters.not ?? {}, filters.not?.without).map(
      (condition) => `(${condition}) is not true`,
    ),
  ]
}

function handedOff(values: boolean[]): string {
  if (new Set(values).size > 1) return hasDecisions
  return values[0] ? 's.handed_off_at is not null' : 's.handed_off_at is null'
}

function where<T>(value: T | undefined, condition: (value: T) => string): string[] {
  return value === undefined ? [] : [condition(value)]
}
