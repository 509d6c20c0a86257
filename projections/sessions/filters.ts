import {
  type Bind,
  type FilterName,
  type FilterValues,
  filterFields,
  filterNames,
} from './filter-fields.ts'
import type { DataScope } from './scope.ts'

interface FieldFilters extends FilterValues {
  /** Fields that must be empty. If the field also has values, a session matches either way. */
  without?: FilterName[] | undefined
}

/** Filters of sessions. Values of a member are ORed; members are ANDed. */
export interface SessionFilters extends FieldFilters {
  /** Time of the newest decision in epoch milliseconds, inclusive. */
  since?: number | undefined
  /** Exclusive. */
  until?: number | undefined
  score_min?: number | undefined
  score_max?: number | undefined
  handed_off?: boolean[] | undefined
  /** Excludes sessions that match any of these. A session without a value in the field is not excluded. */
  not?: FieldFilters | undefined
}

const lastingFields = filterNames.filter((name) => filterFields[name].survivesExpiry)
// Reversed, so that signals and attributions, which take longest, are checked last.
const factFields = filterNames.filter((name) => !filterFields[name].survivesExpiry).reverse()

const usesField = (filters: SessionFilters, name: FilterName): boolean =>
  [filters, filters.not].some((fields) => fields?.[name] || fields?.without?.includes(name))

/** Returns true if a filter uses fields that are cleared when decisions expire. */
export const hasFactFilters = (filters: SessionFilters): boolean =>
  filters.handed_off !== undefined || factFields.some((name) => usesField(filters, name))

/** Returns true if there are filters other than time and verdict. */
export function hasExtraFilters({
  since: _,
  until: __,
  verdict: ___,
  not = {},
  ...others
}: SessionFilters): boolean {
  return [...Object.values(others), ...Object.values(not)].some((value) => value !== undefined)
}

/** Returns true if an index can find all matching sessions. */
export const hasUsableIndex = (filters: SessionFilters): boolean =>
  hasPersonFilter(filters) || !hasExtraFilters(filters)

/** Returns true if the filters name visitors or users, whose sessions an index can find. */
export const hasPersonFilter = ({ without = [], ...filters }: SessionFilters): boolean =>
  personFields.some((field) => filters[field] !== undefined && !without.includes(field))

/** Returns true if the filters use fields that the index lacks, so rows must be read. */
export const readsRows = (filters: SessionFilters): boolean =>
  !hasPersonFilter(filters) && personFields.some((name) => usesField(filters, name))

/** Returns the factor by which filters on signals and attributions slow down the check of a row. */
export const rowCost = (filters: SessionFilters): number =>
  1 +
  [filters, filters.not ?? {}].flatMap(({ signal = [], attribution = [] }) => [
    ...signal,
    ...attribution,
  ]).length /
    5

const personFields = ['visitor_id', 'client_user_id'] as const

/** Returns SQL conditions on the session `s`. */
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

/** Returns SQL conditions on fields that a session keeps as long as it exists. */
export function lastingConditions(scope: DataScope, filters: SessionFilters, bind: Bind): string[] {
  return [
    ...where(filters.score_min, (score) => `s.risk_score >= ${bind(score)}`),
    ...where(filters.score_max, (score) => `s.risk_score <= ${bind(score)}`),
    ...lastingFields.flatMap((name) => fieldConditions(name, scope, filters, bind)),
  ]
}

/** Returns SQL conditions on facts. Sessions whose facts have expired match none, not even a negated one. */
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
  const { matchesAny, emptySql } = filterFields[name]
  const alternatives = ({ [name]: values }: FilterValues, without: FilterName[] = []) => [
    ...(values ? [matchesAny(values, bind, scope)] : []),
    ...(emptySql && without.includes(name) ? [emptySql] : []),
  ]
  const included = alternatives(filters, filters.without)
  return [
    ...(included.length > 1 ? [`(${included.join(' or ')})`] : included),
    ...alternatives(filters.not ?? {}, filters.not?.without).map(
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
