import type { AgentStatus, AttributionKind, MarkLabel, Verdict } from '../../schemas/events.ts'
import { userTextId } from './apply-visitors.ts'
import type { NetworkKind } from './facts.ts'
import type { DataScope } from './scope.ts'
import { signalCode } from './signal-codes.ts'

/** What sessions have one of, by field. */
export interface FilterValues {
  verdict: Verdict[]
  signal: string[]
  /** `kind:value`, or the value of any kind. */
  attribution: string[]
  agent_status: AgentStatus[]
  agent_provider: string[]
  country: string[]
  asn: number[]
  network: NetworkKind[]
  /** Addresses and CIDRs. */
  ip: string[]
  page_host: string[]
  visitor_id: string[]
  client_user_id: string[]
  key_id: string[]
  /** As `inLowerCase` has it, as `os` is. */
  browser: string[]
  os: string[]
  mark: (MarkLabel | 'none')[]
}
export type FilterField = keyof FilterValues

/** Fields of which sessions may have no value. */
export const emptyFields = [
  ...(['signal', 'attribution', 'agent_status', 'agent_provider', 'country', 'asn', 'network'] as const),
  ...(['ip', 'page_host', 'visitor_id', 'client_user_id', 'key_id', 'browser', 'os'] as const),
] as const satisfies FilterField[]
export type EmptyField = (typeof emptyFields)[number]

type SomeValues = { [Field in FilterField]?: FilterValues[Field] | undefined }

interface Chosen extends SomeValues {
  /** Fields of which sessions have no value. It is one more value of each: the values of the field may hold instead. */
  without?: EmptyField[] | undefined
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

/** Whether one is of what is null once decisions have ended. */
export const hasFacts = (filters: SessionFilters): boolean => factConditions(filters, () => '').length > 0

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
  !isPerson(filters) &&
  personFields.some(
    (field) => filters.not?.[field] || [filters, filters.not].some((one) => one?.without?.includes(field)),
  )

/** Factor by which the labels that a filter looks for slow down each row. */
export const signalWeight = (filters: SessionFilters): number =>
  1 +
  [filters, filters.not].flatMap((one) => [...(one?.signal ?? []), ...(one?.attribution ?? [])]).length / 5

const personFields = ['visitor_id', 'client_user_id'] as const

/** Adds a parameter to the statement, and returns its name. */
export type Bind = (value: unknown) => string

/** Conditions on the session `s` within its scope. */
export function conditionsOf(scope: DataScope, filters: SessionFilters, bind: Bind): string[] {
  return [
    ...timeConditions(filters, bind),
    ...lastingConditions(scope, filters, bind),
    ...factConditions(filters, bind),
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
  const member = membersOf(filters)
  return [
    ...member('verdict', (verdicts) => anyOf('s.verdict', verdicts, bind)),
    ...where(filters.score_min, (score) => `s.risk_score >= ${bind(score)}`),
    ...where(filters.score_max, (score) => `s.risk_score <= ${bind(score)}`),
    ...member('visitor_id', (ids) => anyOf('s.visitor_id', ids, bind)),
    ...member('client_user_id', (ids) => ofUsers(scope, ids, bind)),
    ...member('key_id', (ids) => anyOf('s.key_id', ids, bind)),
    ...member('mark', (marks) => anyOf("coalesce(s.mark, 'none')", marks, bind)),
  ]
}

/** Of what is null once the session's decisions have ended: no such session meets one, not even one of what it is not. */
export function factConditions(filters: SessionFilters, bind: Bind): string[] {
  const member = membersOf(filters)
  const conditions = [
    ...member('agent_status', (statuses) => anyOf('s.agent_status', statuses, bind)),
    ...member('agent_provider', (names) => anyOf('s.agent_provider', names, bind)),
    ...member('country', (codes) => anyOf('s.country', codes, bind)),
    ...member('asn', (numbers) => `s.asn = ${oneOf(numbers, 'bigint', bind)}`),
    ...member('network', (kinds) => anyOf('s.network', kinds, bind)),
    ...member('page_host', (hosts) => anyOf('s.page_host', hosts, bind)),
    ...member('browser', (names) => anyOf(lowerCase('s.browser'), names, bind)),
    ...member('os', (names) => anyOf(lowerCase('s.os'), names, bind)),
    ...where(filters.handed_off, (values) => handedOff(values)),
    ...member('ip', (networks) => `s.ip_address <<= ${oneOf(networks, 'inet', bind)}`),
    ...member('attribution', (values) => labelled(values.flatMap(ofAnyKind), bind)),
    ...member('signal', (slugs) => withSignals(slugs, bind)),
  ]
  return conditions.length > 0 ? [hasDecisions, ...conditions] : conditions
}

const hasDecisions = 's.scoring_version is not null'

/** Of a member, by the condition that the session has one of the values. */
function membersOf({ not = {}, without, ...filters }: SessionFilters) {
  const some: SomeValues = filters
  const others: SomeValues = not
  return <Field extends FilterField>(field: Field, hasOne: (values: FilterValues[Field]) => string) => {
    const empty = (fields: EmptyField[] = []) => (fields.some((one) => one === field) ? [isEmpty(field)] : [])
    const either = [...where(some[field], hasOne), ...empty(without)]
    const none = [...where(others[field], hasOne), ...empty(not.without)]
    return [
      ...(either.length > 1 ? [`(${either.join(' or ')})`] : either),
      ...none.map((condition) => `(${condition}) is not true`),
    ]
  }
}

function isEmpty(field: FilterField): string {
  if (field === 'signal') return `s.signal_codes = ''`
  if (field === 'attribution') return `coalesce(s.attribution, '{}') = '{}'`
  return `s.${field === 'ip' ? 'ip_address' : field} is null`
}

/** A name to search for, in whatever case it was written. */
export const inLowerCase = (name: string): string => name.replace(/[A-Z]+/g, (some) => some.toLowerCase())

// Of the letters A to Z alone, which takes half as long and is the same in every database.
const lowerCase = (sql: string) => `lower(${sql} collate "C")`

function where<T>(value: T | undefined, condition: (value: T) => string): string[] {
  return value === undefined ? [] : [condition(value)]
}

function anyOf(sql: string, values: string[], bind: Bind): string {
  return `${sql} = ${oneOf(values, 'text', bind)}`
}

// With one value Postgres walks an index in its order, and compares each row in less time.
const oneOf = (values: unknown[], type: string, bind: Bind) =>
  values.length === 1 ? `${bind(values[0])}::${type}` : `any(${bind(values)}::${type}[])`

// Most sessions have no label, which is seen at once.
const labelled = (labels: string[], bind: Bind) =>
  `s.attribution <> '{}' and s.attribution && ${bind(labels)}::text[]`

const withSignals = (slugs: string[], bind: Bind) =>
  `(${slugs.map((slug) => `strpos(s.signal_codes, ${bind(signalCode(slug))}) > 0`).join(' or ')})`

// The text's id has the scope in it and finds the rows. Upper case is lost there.
function ofUsers(scope: DataScope, ids: string[], bind: Bind): string {
  const texts = ids.map((id) => userTextId(scope, id))
  const found = texts.length === 1 ? `= ${bind(texts[0])}` : `= any(${bind(texts)}::bytea[])`
  return `s.user_text ${found} and ${anyOf('s.client_user_id', ids, bind)}`
}

function handedOff(values: boolean[]): string {
  if (new Set(values).size > 1) return hasDecisions
  return values[0] ? 's.handed_off_at is not null' : 's.handed_off_at is null'
}

export const attributionKinds = [
  ...(['actor', 'provider', 'tool', 'product', 'organization', 'purpose'] as const),
  ...(['environment', 'trust', 'evasion'] as const),
] satisfies AttributionKind[]

export const markFilters = ['human', 'bot', 'fraud', 'legitimate', 'none'] as const satisfies (
  | MarkLabel
  | 'none'
)[]

const ofAnyKind = (value: string): string[] =>
  value.includes(':') ? [value] : attributionKinds.map((kind) => `${kind}:${value}`)
