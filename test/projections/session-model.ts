import fc from 'fast-check'
import { afterAll } from 'vitest'
import { applyNewEvents } from '../../infra/event-store/apply-batch.ts'
import { buildLock, findLiveBuild, searchPath } from '../../infra/event-store/builds.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { derivedId } from '../../infra/ids.ts'
import { type Tx, transaction } from '../../infra/postgres/pool.ts'
import { attributionKind } from '../../projections/sessions/decision-schemas.ts'
import {
  emptyFields,
  type FilterName,
  inLowerCase,
} from '../../projections/sessions/filter-fields.ts'
import type { SessionFilters } from '../../projections/sessions/filters.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { createSessionPruner } from '../../projections/sessions/prune.ts'
import type {
  AgentStatus,
  AttributionLabel,
  Environment,
  SessionScored,
  Verdict,
} from '../../schemas/events.ts'
import { visitorErased } from '../support/erased.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { sessionScored, visitorLink } from '../support/session-scored.ts'
import { recordedSession } from './read-model.ts'
import { nowhere } from './world-events.ts'

/** The searchable members of a session's newest decision. */
export interface ModelSession {
  n: number
  time: number
  verdict: Verdict
  score: number
  country: string | null
  asn: number | null
  network: 'unknown' | 'other' | 'vpn'
  signals: string[]
  /** `kind:value`. */
  labels: string[]
  host: string
  path: string
  browser: string | null
  os: string
  ip: string
  agent: { status: AgentStatus; provider: string | null }
  key: number
  visitor: number | null
  handedOff: boolean
  user: number | null
  /** True if the decisions, and with them the facts, have expired. */
  isEnded: boolean
}

const oneOf = <T>(...values: T[]) => fc.constantFrom(...values)

/** Few values per member, so that many sessions share them. */
export const facts = fc.record({
  verdict: oneOf<Verdict>('human', 'human', 'bot', 'inconclusive'),
  score: fc.integer({ min: 0, max: 100 }),
  country: oneOf('DE', 'FR', null),
  asn: oneOf(64_500, 4_200_000_000, null),
  network: oneOf<ModelSession['network']>('unknown', 'other', 'vpn'),
  signals: fc.uniqueArray(oneOf('webdriver_detected', 'canvas_noise', 'lone_click')),
  labels: fc.uniqueArray(oneOf('tool:playwright', 'actor:automation', 'evasion:stealth')),
  host: oneOf('shop.example', 'xn--bcher-kva.example'),
  path: oneOf('/', '/log_in', '/b%C3%BCcher'),
  browser: oneOf('Chrome', 'Samsung Internet', 'Über App', null),
  os: oneOf('iOS', 'Windows'),
  ip: oneOf('203.0.113.9', '203.0.113.200', '2001:db8::1'),
  agent: oneOf<ModelSession['agent']>(
    { status: 'none', provider: null },
    { status: 'verified', provider: 'google' },
    { status: 'declared', provider: 'openai' },
  ),
  key: fc.integer({ min: 1, max: 2 }),
  visitor: oneOf(1, 2, null),
  handedOff: fc.boolean(),
})
export type ModelFacts = typeof facts extends fc.Arbitrary<infer T> ? T : never

export const seed = Date.now() % 2 ** 31
/** Facts shared by sessions that differ only in what a test overrides. */
export const [common] = fc.sample(facts, { numRuns: 1, seed }) as [ModelFacts]

export const keyId = (n: number) => derivedId('key', String(n))
export const visitorId = (n: number) => derivedId('vid', String(n))

const everyValue = fc.record({
  verdict: some<Verdict>('human', 'bot', 'inconclusive'),
  signal: some('webdriver_detected', 'canvas_noise', 'nothing_has_it'),
  attribution: some('playwright', 'tool:playwright', 'tool:stealth', 'stealth'),
  country: some('DE', 'FR', 'AQ'),
  asn: some(64_500, 4_200_000_000),
  network: some<'unknown' | 'vpn' | 'tor'>('unknown', 'vpn', 'tor'),
  ip: some('203.0.113.9', '203.0.113.0/25', '2001:db8::/32'),
  page_host: some('shop.example', 'xn--bcher-kva.example'),
  page_path: some('/', '/log_in', '/nowhere'),
  visitor_id: some(visitorId(1), visitorId(3)),
  client_user_id: some('user 1', 'user 2'),
  key_id: some(keyId(1), keyId(2)),
  browser: some('chrome', 'samsung internet', 'Über app'),
  os: some('ios', 'windows'),
  mark: some<'none' | 'bot'>('none', 'bot'),
  agent_status: some<AgentStatus>('none', 'verified', 'spoofed'),
  agent_provider: some('google', 'openai', 'nobody'),
} satisfies Record<FilterName, unknown>)

const everyBound = fc.record({
  since: fc.integer({ min: 1, max: 8 }),
  until: fc.integer({ min: 2, max: 1010 }),
  score_min: fc.integer({ min: 0, max: 60 }),
  score_max: fc.integer({ min: 40, max: 100 }),
  handed_off: some(true, false),
})

const without = some(...emptyFields)

/** Few filters at once, so that sessions match them. */
export const filters: fc.Arbitrary<SessionFilters> = fc
  .record({
    some: fewOf(
      fc.tuple(everyValue, everyBound).map(([values, bounds]) => ({ ...bounds, ...values })),
      3,
    ),
    not: fewOf(
      fc.tuple(everyValue, without).map(([values, without]) => ({ ...values, without })),
      2,
    ),
    without,
    parts: fc.constantFrom<string[]>(
      ['some'],
      ['some'],
      ['not'],
      ['without'],
      ['some', 'not'],
      ['some', 'without'],
    ),
    isOfSame: fc.boolean(),
  })
  .map(({ some, not, without, parts, isOfSame }) => {
    const empty = isOfSame ? emptyFields.filter((field) => some[field] !== undefined) : without
    return {
      ...(parts.includes('some') && some),
      ...(parts.includes('not') && { not }),
      ...(parts.includes('without') && empty.length > 0 && { without: empty }),
    }
  })

function some<T>(...values: T[]): fc.Arbitrary<T[]> {
  return fc.uniqueArray(fc.constantFrom(...values), { minLength: 1, maxLength: 2 })
}

function fewOf<T extends object>(all: fc.Arbitrary<T>, most: number): fc.Arbitrary<Partial<T>> {
  const places = fc.uniqueArray(fc.nat(20), { minLength: 1, maxLength: most })
  return fc.tuple(all, places).map(([every, places]) => {
    const few: Partial<T> = {}
    let place = 0
    for (const name in every) if (places.includes(place++)) few[name] = every[name]
    return few
  })
}

const prefixes: Record<string, string> = {
  '203.0.113.0/25': '203.0.113.9',
  '2001:db8::/32': '2001:db8::1',
}

const present = <T>(value: T | null): T[] => (value === null ? [] : [value])

/** Returns a session's values of a field; empty if it has none. */
export const valuesOf: Record<FilterName, (session: ModelSession) => (string | number)[]> = {
  verdict: ({ verdict }) => [verdict],
  signal: ({ signals }) => signals,
  attribution: ({ labels }) => labels.flatMap((label) => [label, label.split(':')[1] ?? '']),
  agent_status: ({ agent }) => [agent.status],
  agent_provider: ({ agent }) => present(agent.provider),
  country: ({ country }) => present(country),
  asn: ({ asn }) => present(asn),
  network: ({ network }) => [network],
  ip: ({ ip }) => [ip, ...Object.keys(prefixes).filter((prefix) => prefixes[prefix] === ip)],
  page_host: ({ host }) => [host],
  page_path: ({ path }) => [path],
  visitor_id: ({ visitor }) => present(visitor).map(visitorId),
  client_user_id: ({ user }) => present(user).map((n) => `user ${n}`),
  key_id: ({ key }) => [keyId(key)],
  browser: ({ browser }) => present(browser).map(inLowerCase),
  os: ({ os }) => [inLowerCase(os)],
  mark: () => ['none'],
}

const lastingFields: FilterName[] = ['verdict', 'visitor_id', 'client_user_id', 'key_id', 'mark']
const fields = Object.keys(valuesOf).filter((name): name is FilterName =>
  Object.hasOwn(valuesOf, name),
)
const factFields = fields.filter((field) => !lastingFields.includes(field))

/** Returns the values that the filters accept; null stands for no value. */
function asked({ without = [], ...filters }: SessionFilters, field: FilterName) {
  const values: (string | number)[] | undefined = filters[field]
  const isEmpty = without.some((one) => one === field)
  return values || isEmpty ? [...(values ?? []), ...(isEmpty ? [null] : [])] : undefined
}

function matchesField(session: ModelSession, filters: SessionFilters, field: FilterName): boolean {
  const has = valuesOf[field](session)
  const hasOne = (values: (string | number | null)[]) =>
    values.some((value) => (value === null ? has.length === 0 : has.includes(value)))
  const values = asked(filters, field)
  const others = asked(filters.not ?? {}, field)
  return (!values || hasOne(values)) && !(others && hasOne(others))
}

export const matches = (session: ModelSession, filters: SessionFilters): boolean =>
  matchesLasting(session, filters) &&
  (!needsFacts(filters) || (!session.isEnded && matchesFacts(session, filters)))

export function matchesLasting(session: ModelSession, filters: SessionFilters): boolean {
  const { since = 0, until = Infinity, score_min = 0, score_max = 100 } = filters
  return (
    session.time >= since &&
    session.time < until &&
    session.score >= score_min &&
    session.score <= score_max &&
    lastingFields.every((field) => matchesField(session, filters, field))
  )
}

export const needsFacts = (filters: SessionFilters): boolean =>
  filters.handed_off !== undefined ||
  factFields.some((field) => asked(filters, field) ?? asked(filters.not ?? {}, field))

const matchesFacts = (session: ModelSession, filters: SessionFilters): boolean =>
  (filters.handed_off?.includes(session.handedOff) ?? true) &&
  factFields.every((field) => matchesField(session, filters, field))

type ModelEvent = Extract<DomainEvent, { type: 'SessionScored' | 'ClientUserAttached' }>

interface Begun {
  time: number
  facts: ModelFacts
  user?: number | null
}

/** Creates a database for the test file, and models that differ by name or environment. */
export async function useModels() {
  const database = await createTestDatabase()
  afterAll(() => database.drop())
  return {
    database,
    model: (name: unknown, environment?: Environment) =>
      createModel(database, `${seed} ${name}`, environment),
  }
}

/** Creates the sessions of an organization and environment, in Postgres and in memory. */
function createModel(database: TestDatabase, name: string, environment: Environment = 'live') {
  const organizationId = derivedId('org', name)
  const sessions = new Map<number, ModelSession>()
  let events = 0
  const sessionId = (n: number) => derivedId('sid', name, environment, String(n))
  const about = { organization_id: organizationId, environment }

  function inBuild(work: (tx: Tx) => Promise<void>): Promise<void> {
    return transaction(database.pool, async (tx) => {
      const build = await findLiveBuild(tx, 'sessions')
      if (!build) throw new Error('no live build')
      await tx.query('select pg_advisory_xact_lock_shared($1)', [buildLock(build)])
      await tx.query(searchPath(build))
      await work(tx)
    })
  }

  const apply = (events: ModelEvent[], beforeCommit?: () => Promise<void>): Promise<void> =>
    inBuild(async (tx) => {
      await applyNewEvents(tx, sessionsProjection, events.map(recordedSession))
      await beforeCommit?.()
    })

  const newIds = (n: number) => ({
    ...about,
    event_id: derivedId('evt', name, environment, String(++events)),
    session_id: sessionId(n),
  })

  function decided(n: number, time: number, decided: ModelFacts): ModelEvent {
    const known = sessions.get(n)
    const handedOff = decided.handedOff || (known?.handedOff ?? false)
    sessions.set(n, { ...decided, n, time, handedOff, user: known?.user ?? null, isEnded: false })
    const ids = { ...newIds(n), created_at: time, evaluated_at: time }
    return { type: 'SessionScored', data: decisionOf(decided, ids) }
  }

  function attached(n: number, user: number): ModelEvent {
    const known = sessions.get(n)
    if (known) sessions.set(n, { ...known, user })
    const data = { ...newIds(n), client_user_id: `user ${user}`, attached_at: 1 }
    return { type: 'ClientUserAttached', data }
  }

  return {
    scope: { organizationId, environment },
    sessions,
    sessionId,
    inBuild,
    /** Adds the first or another decision of the session. */
    decide: (n: number, time: number, facts: ModelFacts, beforeCommit?: () => Promise<void>) =>
      apply([decided(n, time, facts)], beforeCommit),
    attach: (n: number, user: number) => apply([attached(n, user)]),
    /** Adds decisions and users of sessions 0, 1, 2 and so on in one batch, which is much faster. */
    begin: (there: Begun[]) =>
      apply(
        there.flatMap(({ time, facts, user }, n) => [
          decided(n, time, facts),
          ...(user ? [attached(n, user)] : []),
        ]),
      ),
    /** Expires decisions and sessions from before the cutoffs. */
    async end(decisions_before: number, sessions_before: number): Promise<void> {
      for (const session of sessions.values()) {
        if (session.time < sessions_before) sessions.delete(session.n)
        else if (session.time < decisions_before)
          sessions.set(session.n, { ...session, isEnded: true, handedOff: false })
      }
      const ended = {
        decisions_before,
        sessions_before,
        visitors_before: null,
        webhooks_before: null,
      }
      const prune = createSessionPruner()
      for (let more = true; more; )
        await inBuild(async (tx) => {
          more = await prune(tx, [{ organization_id: organizationId, ...ended }])
        })
    },
    async erase(n: number): Promise<void> {
      sessions.delete(n)
      const erasure = visitorErased([sessionId(n)], about)
      await inBuild(async (tx) => sessionsProjection.erase?.(tx, [erasure]))
    },
  }
}

export type Model = ReturnType<typeof createModel>

function decisionOf(decided: ModelFacts, ids: Partial<SessionScored>): SessionScored {
  const plain = sessionScored(ids)
  const { verdict, country, asn, network, signals, labels, host, path, browser, os, ip } = decided
  return {
    ...plain,
    verdict,
    risk_score: decided.score,
    key_id: keyId(decided.key),
    reason: decided.handedOff ? 'hand_off' : 'changed',
    visitor: decided.visitor === null ? null : visitorLink({ id: visitorId(decided.visitor) }),
    request: { ...plain.request, url: `https://${host}${path}?page`, ip_address: ip },
    browser: { ...plain.browser, name: browser },
    device: { ...plain.device, operating_system: { name: os, version: null } },
    signals_fired: signals.map((signal) => ({ ...firedSignal, signal })),
    attribution: { labels: labels.map(labelOf), behaviors: [] },
    agent: { ...decided.agent, ...unsaid },
    network: {
      ...plain.network,
      status: network === 'unknown' ? 'skipped' : 'ready',
      location: country === null ? null : { ...nowhere, country_code: country },
      routing: { asn: asn === null ? null : String(asn), organization: null },
      anonymity: { ...plain.network.anonymity, vpn: network === 'vpn' },
    },
  }
}

const firedSignal = {
  role: 'risk',
  category: 'environment',
  strength: 'weak',
  channel: 'user_agent',
  signal_score: 4,
} as const

const unsaid = { product: null, purpose: null, method: null, evidence: null }

function labelOf(text: string): AttributionLabel {
  const [kind, value = ''] = text.split(':')
  const known = attributionKind.options.find((one) => one === kind)
  if (!known) throw new Error(`no such kind: ${kind}`)
  return { kind: known, value, label: value, confidence: 90 }
}
