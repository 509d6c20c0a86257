import type { AgentStatus, AttributionKind, MarkLabel, Verdict } from '../../schemas/events.ts'
import { userTextId } from './apply-visitors.ts'
import type { NetworkKind } from './facts.ts'
import type { DataScope } from './scope.ts'
import { signalCode } from './signal-codes.ts'

/** What sessions are searched for. Of several values of a member either may hold; all members must. */
export interface SessionFilters {
  /** Epoch milliseconds of the newest decision; included. */
  since?: number | undefined
  /** Excluded. */
  until?: number | undefined
  score_min?: number | undefined
  score_max?: number | undefined
  verdict?: Verdict[] | undefined
  signal?: string[] | undefined
  /** `kind:value`, or the value of any kind. */
  attribution?: string[] | undefined
  agent_status?: AgentStatus[] | undefined
  agent_provider?: string[] | undefined
  country?: string[] | undefined
  asn?: number[] | undefined
  network?: NetworkKind[] | undefined
  /** Addresses and CIDRs. */
  ip?: string[] | undefined
  page_host?: string[] | undefined
  visitor_id?: string[] | undefined
  client_user_id?: string[] | undefined
  key_id?: string[] | undefined
  /** As `inLowerCase` has it, as `os` is. */
  browser?: string[] | undefined
  os?: string[] | undefined
  handed_off?: boolean[] | undefined
  mark?: (MarkLabel | 'none')[] | undefined
}

/** Whether one is of what is null once decisions have ended. */
export const hasFacts = (filters: SessionFilters): boolean => factConditions(filters, () => '').length > 0

/** Whether an index finds all sessions that meet them. */
export function isExact({ since: _, until: __, verdict: ___, ...others }: SessionFilters): boolean {
  if (others.visitor_id || others.client_user_id) return true
  return Object.values(others).every((value) => value === undefined)
}

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
  return [
    ...where(filters.verdict, (verdicts) => anyOf('s.verdict', verdicts, bind)),
    ...where(filters.score_min, (score) => `s.risk_score >= ${bind(score)}`),
    ...where(filters.score_max, (score) => `s.risk_score <= ${bind(score)}`),
    ...where(filters.visitor_id, (ids) => anyOf('s.visitor_id', ids, bind)),
    ...where(filters.client_user_id, (ids) => ofUsers(scope, ids, bind)),
    ...where(filters.key_id, (ids) => anyOf('s.key_id', ids, bind)),
    ...where(filters.mark, (marks) => anyOf("coalesce(s.mark, 'none')", marks, bind)),
  ]
}

/** Of what is null once the session's decisions have ended: no such session meets one. */
export function factConditions(filters: SessionFilters, bind: Bind): string[] {
  return [
    ...where(filters.agent_status, (statuses) => anyOf('s.agent_status', statuses, bind)),
    ...where(filters.agent_provider, (names) => anyOf('s.agent_provider', names, bind)),
    ...where(filters.country, (codes) => anyOf('s.country', codes, bind)),
    ...where(filters.asn, (numbers) => `s.asn = ${oneOf(numbers, 'bigint', bind)}`),
    ...where(filters.network, (kinds) => anyOf('s.network', kinds, bind)),
    ...where(filters.page_host, (hosts) => anyOf('s.page_host', hosts, bind)),
    ...where(filters.browser, (names) => anyOf(lowerCase('s.browser'), names, bind)),
    ...where(filters.os, (names) => anyOf(lowerCase('s.os'), names, bind)),
    ...where(filters.handed_off, (values) => handedOff(values)),
    ...where(filters.ip, (networks) => `s.ip_address <<= ${oneOf(networks, 'inet', bind)}`),
    ...where(filters.attribution, (values) => labelled(values.flatMap(ofAnyKind), bind)),
    ...where(filters.signal, (slugs) => withSignals(slugs, bind)),
  ]
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
  const known = 's.scoring_version is not null'
  if (new Set(values).size > 1) return known
  return values[0] ? 's.handed_off_at is not null' : `s.handed_off_at is null and ${known}`
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
