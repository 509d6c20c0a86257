import { expect, test } from 'vitest'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { listSessions } from '../../projections/sessions/list-sessions.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import {
  findDecisions,
  findSession,
  findVisitor,
  listVisitors,
} from '../../projections/sessions/queries.ts'
import { listSessionEvents } from '../../projections/sessions/session-events.ts'
import type { SessionScored } from '../../schemas/events.ts'
import { sessionScored, visitorLink } from '../support/session-scored.ts'
import { recordedSession, useReadModel } from './read-model.ts'
import { id } from './world-events.ts'

const model = await useReadModel(sessionsProjection, recordedSession)
const scope = { organizationId: id('org', 1), environment: 'live' } as const

/** Returns decision `n`, by default of session `n`. */
function scored(
  n: number,
  { session = n, ...overrides }: Partial<SessionScored> & { session?: number } = {},
): DomainEvent {
  const ids = { event_id: id('evt', n), session_id: id('sid', session) }
  return { type: 'SessionScored', data: sessionScored({ ...ids, ...overrides }) }
}

function user(session: number, eventId: string, client_user_id: string | null): DomainEvent {
  const about = {
    session_id: id('sid', session),
    organization_id: scope.organizationId,
    environment: scope.environment,
    event_id: eventId,
  }
  return client_user_id === null
    ? { type: 'ClientUserCleared', data: { ...about, cleared_at: 1 } }
    : { type: 'ClientUserAttached', data: { ...about, client_user_id, attached_at: 1 } }
}

const visitorOf = (n: number) => visitorLink({ id: id('vid', n) })
const requestWith = (some: object) => ({ ...sessionScored().request, ...some })
const find = (session = 1) => findSession(model.pool, scope, id('sid', session))

type Listed = Parameters<typeof listSessions>[2]
const list = (options: Partial<Listed> = {}) =>
  listSessions(model.pool, scope, { limit: 10, ...options })
async function found(options: Partial<Listed>): Promise<string[]> {
  return (await list(options)).rows.map((row) => row.id)
}
const search = async (text: string) => (await found({ search: text })).toSorted()
const sids = (...numbers: number[]) => numbers.map((n) => id('sid', n))

test('a session has its latest decision, its visitor and the earlier decisions, newest first', async () => {
  await model.given(
    scored(1, { session: 1, risk_score: 50, verdict: 'inconclusive' }),
    scored(2, { session: 1, risk_score: 60, verdict: 'inconclusive' }),
    scored(3, { session: 1, verdict: 'bot', is_provisional: false, evaluated_at: 5 }),
  )
  const session = await find()
  expect(session).toMatchObject({
    id: id('sid', 1),
    created_at: 1_760_000_000_000,
    client_user_id: null,
    decision: { event_id: id('evt', 3), verdict: 'bot', is_provisional: false },
    visitor: { id: id('vid', 1), confidence: 93, method: 'continuity', basis: 'deterministic' },
    lifecycle: { first_seen_at: 5, last_seen_at: 1_760_000_001_000, seen_count: 1 },
    detail: {
      client_telemetry: sessionScored().client_telemetry,
      device: sessionScored().device,
    },
  })
  expect(session?.previous_decisions).toEqual([
    {
      event_id: id('evt', 2),
      verdict: 'inconclusive',
      risk_score: 60,
      phase: 'snapshot',
      is_provisional: true,
      evaluated_at: 1_760_000_001_000,
    },
    expect.objectContaining({ event_id: id('evt', 1), risk_score: 50 }),
  ])
})

test('a repeated decision changes nothing, even after a newer one', async () => {
  const first = scored(1, { risk_score: 10 })
  await model.given(first, scored(2, { session: 1, risk_score: 20 }), first)
  await model.given(first)
  const session = await find()
  expect(session?.decision.risk_score).toBe(20)
  expect(session?.previous_decisions).toHaveLength(1)
})

test('a session shows its 100 newest decisions, however they were batched, and each is found by its id', async () => {
  const made = (session: number) =>
    Array.from({ length: 230 }, (_, i) => scored(1000 * session + i, { session }))
  for (const event of made(2)) await model.given(event)
  await model.given(...made(3).slice(0, 120))
  await model.given(...made(3).slice(120))
  for (const session of [2, 3])
    expect((await find(session))?.previous_decisions.map(({ event_id }) => event_id)).toEqual(
      Array.from({ length: 100 }, (_, i) => id('evt', 1000 * session + 228 - i)),
    )
  expect(await search(id('evt', 3001))).toEqual(sids(3))
  expect(await search('0000003001')).toEqual(sids(3))
})

test('a search finds rare texts behind many newer sessions, and pages through frequent ones', async () => {
  const request = requestWith({ url: 'https://rare.example/needle' })
  const many = Array.from({ length: 700 }, (_, i) => scored(i, { evaluated_at: 1000 + i }))
  await model.given(scored(900, { evaluated_at: 1, request }), ...many)
  expect(await search('needle')).toEqual(sids(900))
  const page = { search: 'chrome/141', limit: 3 }
  expect(await found(page)).toEqual(sids(699, 698, 697))
  const next = await list({ ...page, after: { value: 1697, id: id('sid', 697) } })
  expect(next.rows.map((row) => row.id)).toEqual(sids(696, 695, 694))
  expect(next.hasMore).toBe(true)
})

test('part of an id finds the session', async () => {
  const hay = 'sid_0000000000000000000hay4567'
  await model.given(
    scored(1, { event_id: 'evt_00000000000000000needle123', session_id: hay }),
    scored(2, { visitor: visitorLink({ id: 'vid_0000000000000000000abcdefg' }) }),
  )
  for (const part of ['0NEED', 'd_0000000000000000000hay', 'hay4567'])
    expect(await search(part)).toEqual([hay])
  expect(await search('0abcdefg')).toEqual(sids(2))
  expect(await search('4567hay')).toEqual([])
})

test('the first decision with a visitor, and the first final one, raise the webhook events, however they were batched', async () => {
  const decisions = (session: number) => [
    scored(10 * session + 1, { session, visitor: null }),
    scored(10 * session + 2, { session, evaluated_at: 20 }),
    scored(10 * session + 3, { session, is_provisional: false, evaluated_at: 30 }),
    scored(10 * session + 4, { session, is_provisional: false, evaluated_at: 40 }),
  ]
  await model.given(...decisions(1))
  for (const event of decisions(2)) await model.given(event)
  const types = ['session.fingerprint.calculated', 'session.result.persisted'] as const
  const told = async (since: number) =>
    (await listSessionEvents(model.pool, scope, { since, limit: 10, types })).map(
      ({ type, session_id, event_id, at }) => `${at} ${type} ${session_id} ${event_id}`,
    )
  const results = [1, 2].map((n) => `30 ${types[1]} ${id('sid', n)} ${id('evt', 10 * n + 3)}`)
  const fingerprints = [1, 2].map((n) => `20 ${types[0]} ${id('sid', n)} ${id('evt', 10 * n + 2)}`)
  expect((await told(0)).toSorted()).toEqual([...fingerprints, ...results])
  expect((await told(25)).toSorted()).toEqual(results)
})

test('client user ids are attached, replaced and cleared in log order; a repeated event changes nothing', async () => {
  const current = async () => (await find())?.client_user_id
  await model.given(scored(1), user(1, 'a', 'Ada'), user(1, 'b', 'Bob'))
  expect(await current()).toBe('Bob')
  await model.given(user(1, 'a', 'Ada'))
  expect(await current()).toBe('Bob')
  await model.given(user(1, 'c', null), user(1, 'b', 'Bob'))
  expect(await current()).toBeNull()
  await model.given(user(1, 'd', 'Dora'), scored(2, { session: 1 }))
  expect(await current()).toBe('Dora')
})

test.each([
  { ...scope, environment: 'test' as const },
  { ...scope, organizationId: id('org', 2) },
])('nothing is found in another scope: %j', async (other) => {
  await model.given(scored(1))
  const { pool } = model
  expect(await findSession(pool, other, id('sid', 1))).toBeUndefined()
  expect(await findVisitor(pool, other, id('vid', 1))).toBeUndefined()
  expect((await listSessions(pool, other, { limit: 5, search: id('evt', 1) })).rows).toEqual([])
  expect((await listVisitors(pool, other, { limit: 5 })).rows).toEqual([])
})

test('sessions are found by full ids in any case, and by parts of their texts', async () => {
  const legacy = '0123456789abcdef0123456789abcdef'
  const url = 'https://Example.com/50%_off?q=\0'
  const shown = {
    session: 2,
    request: requestWith({ url, ip_address: '198.51.100.7' }),
    visitor: visitorOf(2),
  }
  await model.given(
    scored(1),
    scored(2, shown),
    scored(3, { ...shown, verdict: 'bot' }),
    scored(4, { session: 3, event_id: legacy, visitor: null }),
    user(1, 'u1', 'Customer ÄÖ 17'),
  )
  for (const text of [
    id('SID', 2),
    id('EVT', 2),
    id('evt', 3),
    id('vid', 2),
    '50%_OFF',
    '198.51.100',
  ])
    expect(await search(text), text).toEqual(sids(2))
  for (const text of ['vid_0000', '50_%off', 'a\0b']) expect(await search(text), text).toEqual([])
  expect(await search(legacy.toUpperCase())).toEqual(sids(3))
  expect(await search('äö 17')).toEqual(sids(1))
  expect(await search('chrome/141')).toEqual(sids(1, 2, 3))
})

test('a search matches composed and decomposed letters, and values are stored as sent', async () => {
  const composed = 'Zo\u00eb \u1e69'
  const decomposed = 'Zoe\u0308 s\u0307\u0323'
  const by = (text: string) => ({ request: requestWith({ user_agent: `App/${text}` }) })
  await model.given(
    scored(1, by(composed)),
    scored(2, { ...by(decomposed), visitor: visitorOf(2) }),
    user(1, 'u1', decomposed),
    user(2, 'u2', composed),
  )
  for (const text of [composed, decomposed, composed.toUpperCase(), `App/${decomposed}`]) {
    expect(await search(text)).toEqual(sids(1, 2))
    // Fewer sessions than a page, so that the indexes are searched, too.
    expect(await found({ search: text, limit: 1 })).toHaveLength(1)
  }
  for (const text of [composed, decomposed]) {
    const { rows } = await listVisitors(model.pool, scope, { limit: 10, search: text })
    expect(rows.map((row) => row.id).toSorted()).toEqual([id('vid', 1), id('vid', 2)])
    const exact = (await list({ filters: { client_user_id: [text] } })).rows
    expect(exact.map(({ client_user_id }) => client_user_id)).toEqual([text])
  }
})

test('a visitor has its number of sessions and its latest decision, in whatever order they arrive', async () => {
  const at = (n: number, evaluated_at: number, session = n) =>
    scored(n, {
      session,
      evaluated_at,
      request: requestWith({ ip_address: `203.0.113.${n}` }),
      visitor: visitorLink({ vector: [n] }),
    })
  await model.given(at(3, 300))
  await model.given(at(1, 100), at(2, 200, 1), at(4, 300))
  const visitor = await findVisitor(model.pool, scope, id('vid', 1))
  expect(visitor).toMatchObject({
    first_seen_at: 100,
    last_seen_at: 300,
    seen_count: 3,
    vector: [4],
    latest_request: { ip_address: '203.0.113.4' },
    storage: visitorLink().storage,
    anchors: visitorLink().anchors,
  })
  expect(visitor?.activity.map((row) => row.decision.event_id)).toEqual(
    [4, 3, 2, 1].map((n) => id('evt', n)),
  )
  expect(visitor?.activity[0]).toMatchObject({
    session_id: id('sid', 4),
    request: { ip_address: '203.0.113.4', screen_size: '1440x900' },
    score_breakdown: { environment: 4, behavioral: 3 },
  })
})

test('a visitor was last seen with the last observation, not with the decision after a timeout', async () => {
  await model.given(
    scored(1, { session: 1, evaluated_at: 105, observed_at: 100 }),
    scored(2, { session: 1, evaluated_at: 1_800_105, observed_at: 102 }),
  )
  const seen = { first_seen_at: 100, last_seen_at: 102, seen_count: 1 }
  expect(await findVisitor(model.pool, scope, id('vid', 1))).toMatchObject(seen)
})

test('visitors are sorted by last seen, first seen or count, paged and searched', async () => {
  const visit = (n: number, visitor: number, evaluated_at: number) =>
    scored(n, {
      evaluated_at,
      visitor: visitorOf(visitor),
      request: requestWith({ ip_address: `198.51.100.${visitor}` }),
    })
  await model.given(
    visit(1, 1, 10),
    visit(2, 1, 90),
    visit(3, 2, 20),
    visit(4, 3, 30),
    visit(5, 3, 40),
    visit(6, 3, 50),
  )
  const ids = async (options: Partial<Parameters<typeof listVisitors>[2]>) =>
    (await listVisitors(model.pool, scope, { limit: 10, ...options })).rows.map((row) =>
      Number(row.id.slice(4)),
    )
  expect(await ids({})).toEqual([1, 3, 2])
  expect(await ids({ sort: 'first_seen' })).toEqual([3, 2, 1])
  expect(await ids({ sort: 'seen_count' })).toEqual([3, 1, 2])
  expect(await ids({ sort: 'seen_count', after: { value: 3, id: id('vid', 3) } })).toEqual([1, 2])
  expect(await ids({ search: id('VID', 2) })).toEqual([2])
  expect(await ids({ search: '51.100.3' })).toEqual([3])
})

test('pages by first seen list each visitor once, also with equal times and while visitors return', async () => {
  const see = (n: number, visitor: number, at: number) =>
    scored(n, { evaluated_at: at, observed_at: at, visitor: visitorOf(visitor) })
  await model.given(...[1, 2, 3, 4, 5].map((n) => see(n, n, 10)), see(6, 6, 20))
  const seen: string[] = []
  let after: { value: number; id: string } | undefined
  for (let more = true, n = 10; more; n++) {
    const options = { limit: 2, after, sort: 'first_seen' } as const
    const { rows, hasMore } = await listVisitors(model.pool, scope, options)
    seen.push(...rows.map((row) => row.id))
    const last = rows.at(-1)
    after = last && { value: last.first_seen_at, id: last.id }
    more = hasMore
    await model.given(see(n, 3, n + 90), see(n + 100, n, 30))
  }
  expect(seen).toEqual([6, 5, 4, 3, 2, 1].map((n) => id('vid', n)))
})

test('findDecisions returns existing decisions with the members that a hand-off needs', async () => {
  await model.given(scored(1))
  expect(await findDecisions(model.pool, [id('evt', 1), id('evt', 9)])).toMatchObject([
    {
      event_id: id('evt', 1),
      session_id: id('sid', 1),
      organization_id: scope.organizationId,
      environment: 'live',
      visitor: { id: id('vid', 1), confidence: 93 },
      signals_fired: sessionScored().signals_fired,
      score_breakdown: { environment: 4, behavioral: 3 },
      attribution: null,
    },
  ])
})
