import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { applyNew } from '../../infra/event-store/apply-batch.ts'
import { liveBuild, useSchema } from '../../infra/event-store/builds.ts'
import { createCodec } from '../../infra/event-store/codec.ts'
import type { DomainEvent, RecordedEvent } from '../../infra/event-store/event.ts'
import { transaction } from '../../infra/postgres/pool.ts'
import { listSessions } from '../../projections/sessions/list-sessions.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import {
  findDecisions,
  findSession,
  findVisitor,
  listVisitors,
} from '../../projections/sessions/queries.ts'
import { listSessionEvents } from '../../projections/sessions/session-events.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { testCause } from '../support/projections.ts'
import { metaOf, sessionScored, visitorLink } from '../support/session-scored.ts'

const scope = { organizationId: 'org_00000000000000000000000001', environment: 'live' } as const
const codec = createCodec()
let database: TestDatabase
let offset = 0

beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database?.drop())
beforeEach(async () => {
  const build = await liveBuild(database.pool, 'sessions')
  const tables = sessionsProjection.tables.map((table) => `${build?.schema}.${table}`)
  await database.pool.query(`truncate ${tables.join(', ')}`)
})

const id = (prefix: string, n: number) => `${prefix}_${String(n).padStart(26, '0')}`

function recorded(event: DomainEvent): RecordedEvent {
  const meta =
    'environment' in event.data && 'event_id' in event.data ? metaOf(event.data) : undefined
  if (!meta) throw new Error('not an event of a session')
  return {
    ...event,
    meta,
    value: codec.encode(event, testCause),
    position: { topic: 'tidegate.sessions.v1', partition: 0, offset: offset++ },
  }
}

function scored(overrides: Parameters<typeof sessionScored>[0] = {}): RecordedEvent {
  return recorded({ type: 'SessionScored', data: sessionScored(overrides) })
}

async function apply(...events: RecordedEvent[]): Promise<void> {
  await transaction(database.pool, async (tx) => {
    const build = await liveBuild(tx, 'sessions')
    if (!build) throw new Error('no live build')
    await tx.query(useSchema(build))
    await applyNew(tx, sessionsProjection, events)
  })
}

function user(sessionId: string, eventId: string, clientUserId: string | null): RecordedEvent {
  const base = {
    session_id: sessionId,
    organization_id: scope.organizationId,
    environment: 'live',
    event_id: eventId,
  } as const
  return clientUserId === null
    ? recorded({ type: 'ClientUserCleared', data: { ...base, cleared_at: 1 } })
    : recorded({
        type: 'ClientUserAttached',
        data: { ...base, client_user_id: clientUserId, attached_at: 1 },
      })
}

test('a session shows its latest decision, its visitor and the earlier decisions, newest first', async () => {
  const sid = id('sid', 1)
  await apply(
    scored({ event_id: id('evt', 1), risk_score: 50, verdict: 'inconclusive' }),
    scored({ event_id: id('evt', 2), risk_score: 60, verdict: 'inconclusive' }),
    scored({
      event_id: id('evt', 3),
      risk_score: 90,
      verdict: 'bot',
      is_provisional: false,
      evaluated_at: 5,
    }),
  )
  const session = await findSession(database.pool, scope, sid)
  expect(session).toMatchObject({
    id: sid,
    created_at: 1_760_000_000_000,
    client_user_id: null,
    decision: { event_id: id('evt', 3), verdict: 'bot', is_provisional: false },
    visitor: { id: id('vid', 1), confidence: 93, method: 'continuity', basis: 'deterministic' },
    lifecycle: { first_seen_at: 5, last_seen_at: 1_760_000_001_000, seen_count: 1 },
  })
  expect(session?.detail.client_telemetry).toEqual(sessionScored().client_telemetry)
  expect(session?.detail.device).toEqual(sessionScored().device)
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
  const first = { event_id: id('evt', 1), risk_score: 10 }
  await apply(scored(first), scored({ event_id: id('evt', 2), risk_score: 20 }), scored(first))
  await apply(scored(first))
  const session = await findSession(database.pool, scope, id('sid', 1))
  expect(session?.decision.risk_score).toBe(20)
  expect(session?.previous_decisions).toHaveLength(1)
})

test('of very many decisions a session shows the newest 100, however they came, and each is found by its id', async () => {
  const made = (session: number) =>
    Array.from({ length: 230 }, (_, i) =>
      scored({ event_id: id('evt', 1000 * session + i), session_id: id('sid', session) }),
    )
  await apply(...made(1))
  const [second, third] = [made(2), made(3)]
  for (const event of second) await apply(event)
  await apply(...third.slice(0, 120))
  await apply(...third.slice(120))
  const shown = await findSession(database.pool, scope, id('sid', 2))
  expect(shown?.previous_decisions.map(({ event_id }) => event_id)).toEqual(
    Array.from({ length: 100 }, (_, i) => id('evt', 2000 + 228 - i)),
  )
  const { rows: found } = await listSessions(database.pool, scope, {
    limit: 5,
    search: id('evt', 3001),
  })
  expect(found.map((session) => session.id)).toEqual([id('sid', 3)])
  const byPart = await listSessions(database.pool, scope, { limit: 5, search: '0000003001' })
  expect(byPart.rows.map((session) => session.id)).toEqual([id('sid', 3)])
})

test('a search finds what few sessions have, however many newer ones there are, and pages through what many have', async () => {
  const many = Array.from({ length: 700 }, (_, i) =>
    scored({ event_id: id('evt', i), session_id: id('sid', i), evaluated_at: 1000 + i }),
  )
  const request = { ...sessionScored().request, url: 'https://rare.example/needle' }
  await apply(
    scored({ event_id: id('evt', 900), session_id: id('sid', 900), evaluated_at: 1, request }),
    ...many,
  )
  const search = (text: string, after?: { evaluatedAt: number; id: string }) =>
    listSessions(database.pool, scope, { limit: 3, search: text, after })
  expect((await search('needle')).rows.map((row) => row.id)).toEqual([id('sid', 900)])
  const first = await search('chrome/141')
  expect(first.rows.map((row) => row.id)).toEqual([699, 698, 697].map((n) => id('sid', n)))
  const next = await search('chrome/141', { evaluatedAt: 1697, id: id('sid', 697) })
  expect([next.rows.map((row) => row.id), next.hasMore]).toEqual([
    [696, 695, 694].map((n) => id('sid', n)),
    true,
  ])
})

test('what several sessions say alike is stored once', async () => {
  const texts = async () =>
    (await database.pool.query(`select text from read.search_texts order by text`)).rows.map(
      ({ text }) => text,
    )
  await apply(scored(), user(id('sid', 1), 'a', 'Ada'))
  const before = await texts()
  await apply(
    scored({ event_id: id('evt', 2) }),
    scored({ event_id: id('evt', 3), session_id: id('sid', 3), visitor: null }),
    user(id('sid', 3), 'b', 'ADA'),
  )
  expect(await texts()).toEqual(before)
  expect(before).toHaveLength(4)
  const { rows } = await listSessions(database.pool, scope, { limit: 3, search: 'ada' })
  expect(rows.map((row) => row.id).toSorted()).toEqual([id('sid', 1), id('sid', 3)])
})

test('a part of an id finds its session', async () => {
  const visitor = visitorLink({ id: 'vid_0000000000000000000abcdefg' })
  await apply(
    scored({
      event_id: 'evt_00000000000000000needle123',
      session_id: 'sid_0000000000000000000hay4567',
    }),
    scored({ event_id: id('evt', 2), session_id: id('sid', 2), visitor }),
  )
  const search = async (text: string) =>
    (await listSessions(database.pool, scope, { limit: 3, search: text })).rows.map((row) => row.id)
  for (const part of ['0NEED', 'd_0000000000000000000hay', 'hay4567'])
    expect(await search(part)).toEqual(['sid_0000000000000000000hay4567'])
  expect(await search('0abcdefg')).toEqual([id('sid', 2)])
  expect(await search('4567hay')).toEqual([])
})

test('what a session tells first is told by its first decision that knows it, however they came', async () => {
  const decisions = (session: number) => [
    scored({
      event_id: id('evt', 10 * session + 1),
      session_id: id('sid', session),
      visitor: null,
    }),
    scored({
      event_id: id('evt', 10 * session + 2),
      session_id: id('sid', session),
      evaluated_at: 20,
    }),
    scored({
      event_id: id('evt', 10 * session + 3),
      session_id: id('sid', session),
      is_provisional: false,
      evaluated_at: 30,
    }),
    scored({
      event_id: id('evt', 10 * session + 4),
      session_id: id('sid', session),
      is_provisional: false,
      evaluated_at: 40,
    }),
  ]
  await apply(...decisions(1))
  for (const event of decisions(2)) await apply(event)
  const types = ['session.fingerprint.calculated', 'session.result.persisted'] as const
  const told = await listSessionEvents(database.pool, scope, { since: 0, limit: 10, types })
  const seen = told.map(
    ({ type, session_id, event_id, at }) => `${at} ${session_id} ${type} ${event_id}`,
  )
  const expected = [1, 2].flatMap((n) => [
    `20 ${id('sid', n)} session.fingerprint.calculated ${id('evt', 10 * n + 2)}`,
    `30 ${id('sid', n)} session.result.persisted ${id('evt', 10 * n + 3)}`,
  ])
  expect(seen.toSorted()).toEqual(expected.toSorted())
  expect(
    (await listSessionEvents(database.pool, scope, { since: 25, limit: 10, types })).length,
  ).toBe(2)
})

test('client user ids are attached, replaced and cleared in the order of the log; a repeat does nothing', async () => {
  const sid = id('sid', 1)
  const current = async () => (await findSession(database.pool, scope, sid))?.client_user_id
  await apply(scored(), user(sid, 'a', 'Ada'), user(sid, 'b', 'Bob'))
  expect(await current()).toBe('Bob')
  await apply(user(sid, 'a', 'Ada'))
  expect(await current()).toBe('Bob')
  await apply(user(sid, 'c', null), user(sid, 'b', 'Bob'))
  expect(await current()).toBeNull()
  await apply(user(sid, 'd', 'Dora'), scored({ event_id: id('evt', 2) }))
  expect(await current()).toBe('Dora')
})

test('nothing outside the scope is found', async () => {
  await apply(scored())
  for (const other of [
    { ...scope, environment: 'test' } as const,
    { ...scope, organizationId: id('org', 2) },
  ]) {
    expect(await findSession(database.pool, other, id('sid', 1))).toBeUndefined()
    expect(await findVisitor(database.pool, other, id('vid', 1))).toBeUndefined()
    expect(
      (await listSessions(database.pool, other, { limit: 5, search: id('evt', 1) })).rows,
    ).toEqual([])
    expect((await listVisitors(database.pool, other, { limit: 5 })).rows).toEqual([])
  }
})

test('sessions page by latest decision, newest first, ties by id', async () => {
  const times = [30, 10, 20, 20, 20]
  await apply(
    ...times.map((at, i) =>
      scored({ event_id: id('evt', i), session_id: id('sid', i), evaluated_at: at }),
    ),
  )
  const seen: string[] = []
  let after: { evaluatedAt: number; id: string } | undefined
  for (let more = true; more; ) {
    const page = await listSessions(database.pool, scope, { limit: 2, after })
    seen.push(...page.rows.map((row) => row.id))
    const last = page.rows.at(-1)
    after = last && { evaluatedAt: last.latest_decision.evaluated_at, id: last.id }
    more = page.hasMore
  }
  expect(seen).toEqual([0, 4, 3, 2, 1].map((n) => id('sid', n)))
})

test('sessions are searched by whole ids in any case, and by parts of what they show', async () => {
  const legacy = '0123456789abcdef0123456789abcdef'
  const request = {
    ...sessionScored().request,
    url: 'https://Example.com/50%_off?q=\0',
    ip_address: '198.51.100.7',
  }
  await apply(
    scored(),
    scored({
      event_id: id('evt', 2),
      session_id: id('sid', 2),
      request,
      visitor: visitorLink({ id: id('vid', 2) }),
    }),
    scored({
      event_id: id('evt', 3),
      session_id: id('sid', 2),
      request,
      visitor: visitorLink({ id: id('vid', 2) }),
      verdict: 'bot',
    }),
    scored({ event_id: legacy, session_id: id('sid', 3), visitor: null }),
    user(id('sid', 1), 'u1', 'Customer ÄÖ 17'),
  )
  const find = async (search: string) =>
    (await listSessions(database.pool, scope, { limit: 10, search })).rows
      .map((row) => row.id)
      .toSorted()
  expect(await find(id('SID', 2))).toEqual([id('sid', 2)])
  expect(await find(id('EVT', 2))).toEqual([id('sid', 2)])
  expect(await find(id('evt', 3))).toEqual([id('sid', 2)])
  expect(await find(id('vid', 2))).toEqual([id('sid', 2)])
  expect(await find('vid_0000')).toEqual([])
  expect(await find(legacy.toUpperCase())).toEqual([id('sid', 3)])
  expect(await find('50%_OFF')).toEqual([id('sid', 2)])
  expect(await find('50_%off')).toEqual([])
  expect(await find('198.51.100')).toEqual([id('sid', 2)])
  expect(await find('äö 17')).toEqual([id('sid', 1)])
  expect(await find('chrome/141')).toHaveLength(3)
  expect(await find('a\0b')).toEqual([])
  const bots = await listSessions(database.pool, scope, {
    limit: 10,
    filters: { verdict: ['bot'] },
  })
  expect(bots.rows.map((row) => row.id)).toEqual([id('sid', 2)])
})

test('a search finds composed and decomposed letters alike, and values stay as they were sent', async () => {
  const composed = 'Zo\u00eb \u1e69'
  const decomposed = 'Zoe\u0308 s\u0307\u0323'
  const agent = (text: string) => ({
    request: { ...sessionScored().request, user_agent: `App/${text}` },
  })
  await apply(
    scored(agent(composed)),
    scored({
      ...agent(decomposed),
      event_id: id('evt', 2),
      session_id: id('sid', 2),
      visitor: visitorLink({ id: id('vid', 2) }),
    }),
    user(id('sid', 1), 'u1', decomposed),
    user(id('sid', 2), 'u2', composed),
  )
  const all = [id('sid', 1), id('sid', 2)]
  const rowsOf = async (options: Partial<Parameters<typeof listSessions>[2]>) =>
    (await listSessions(database.pool, scope, { limit: 10, ...options })).rows
  for (const search of [composed, decomposed, composed.toUpperCase(), `App/${decomposed}`]) {
    expect((await rowsOf({ search })).map((row) => row.id).toSorted()).toEqual(all)
    // Few sessions fill no page, so that the indexes are searched, too.
    expect(await rowsOf({ search, limit: 1 })).toHaveLength(1)
  }
  for (const search of [composed, decomposed]) {
    const { rows } = await listVisitors(database.pool, scope, { limit: 10, search })
    expect(rows.map((row) => row.id).toSorted()).toEqual([id('vid', 1), id('vid', 2)])
    const [exact] = await rowsOf({ filters: { client_user_id: [search] } })
    expect(exact?.client_user_id).toBe(search)
    expect(await rowsOf({ filters: { client_user_id: [search] } })).toHaveLength(1)
  }
})

test('a visitor counts distinct sessions and shows its latest evaluation, in whatever order they arrive', async () => {
  const at = (n: number, evaluatedAt: number, sid = n) =>
    scored({
      event_id: id('evt', n),
      session_id: id('sid', sid),
      evaluated_at: evaluatedAt,
      request: { ...sessionScored().request, ip_address: `203.0.113.${n}` },
      visitor: visitorLink({ vector: [n] }),
    })
  await apply(at(3, 300))
  await apply(at(1, 100), at(2, 200, 1), at(4, 300))
  const visitor = await findVisitor(database.pool, scope, id('vid', 1))
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

test('a visitor was last seen when its client was last heard of, not when its silence was judged', async () => {
  const visitor = visitorLink({ id: id('vid', 77) })
  const session = { session_id: id('sid', 77), visitor }
  await apply(
    scored({ ...session, event_id: id('evt', 771), evaluated_at: 105, observed_at: 100 }),
    scored({ ...session, event_id: id('evt', 772), evaluated_at: 1_800_105, observed_at: 102 }),
  )
  expect(await findVisitor(database.pool, scope, id('vid', 77))).toMatchObject({
    first_seen_at: 100,
    last_seen_at: 102,
    seen_count: 1,
  })
})

test('visitors sort by last seen, first seen or count, page, and are searched', async () => {
  const visit = (n: number, vid: number, at: number) =>
    scored({
      event_id: id('evt', n),
      session_id: id('sid', n),
      evaluated_at: at,
      visitor: visitorLink({ id: id('vid', vid) }),
      request: { ...sessionScored().request, ip_address: `198.51.100.${vid}` },
    })
  await apply(
    visit(1, 1, 10),
    visit(2, 1, 90),
    visit(3, 2, 20),
    visit(4, 3, 30),
    visit(5, 3, 40),
    visit(6, 3, 50),
  )
  const ids = async (options: Partial<Parameters<typeof listVisitors>[2]>) =>
    (await listVisitors(database.pool, scope, { limit: 10, ...options })).rows.map((row) =>
      Number(row.id.slice(4)),
    )
  expect(await ids({})).toEqual([1, 3, 2])
  expect(await ids({ sort: 'first_seen' })).toEqual([3, 2, 1])
  expect(await ids({ sort: 'seen_count' })).toEqual([3, 1, 2])
  expect(await ids({ sort: 'seen_count', after: { value: 3, id: id('vid', 3) } })).toEqual([1, 2])
  expect(await ids({ search: id('VID', 2) })).toEqual([2])
  expect(await ids({ search: '51.100.3' })).toEqual([3])
})

test('a hand-off finds all it needs of decisions that exist', async () => {
  await apply(scored())
  const [decision, ...rest] = await findDecisions(database.pool, [id('evt', 1), id('evt', 9)])
  expect(rest).toEqual([])
  expect(decision).toMatchObject({
    event_id: id('evt', 1),
    session_id: id('sid', 1),
    organization_id: scope.organizationId,
    environment: 'live',
    visitor: { id: id('vid', 1), confidence: 93 },
    signals_fired: sessionScored().signals_fired,
    score_breakdown: { environment: 4, behavioral: 3 },
    attribution: null,
  })
})
