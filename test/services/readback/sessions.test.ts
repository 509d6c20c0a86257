import { describe, expect, test } from 'vitest'
import { readRecords } from '../../../infra/log/read-topic.ts'
import { sessionDetailSchema } from '../../../services/readback/schemas/sessions.ts'
import { sessionScored, visitorLink } from '../../support/session-scored.ts'
import { expectError, expectRefused, id, numbersIn, useReadback } from './support.ts'

const start = 1_760_000_000_000

const readback = await useReadback()
const other = await readback.organization()
const { request } = sessionScored()
await readback.score(
  {
    session_id: id('sid', 1),
    event_id: id('evt', 11),
    visitor: visitorLink({ id: id('vid', 1) }),
    verdict: 'inconclusive',
    risk_score: 41,
    evaluated_at: start + 1000,
  },
  {
    session_id: id('sid', 2),
    event_id: id('evt', 21),
    visitor: visitorLink({ id: id('vid', 2) }),
    evaluated_at: start + 2000,
    reason: 'hand_off',
    request: {
      ...request,
      url: 'https://shop.example/Checkout?step=100%25',
      user_agent: 'SpecialAgent/7.0',
      ip_address: '198.51.100.77',
    },
  },
  {
    session_id: id('sid', 3),
    event_id: id('evt', 31),
    visitor: null,
    evaluated_at: start + 3000,
    request: {
      ...request,
      url: 'https://xn--bcher-kva.example/gr%C3%B6%C3%9Fe',
      user_agent: 'Browser/1',
      ip_address: '203.0.113.3',
    },
  },
  {
    session_id: id('sid', 1),
    event_id: id('evt', 12),
    visitor: visitorLink({ id: id('vid', 1) }),
    verdict: 'bot',
    evaluated_at: start + 5000,
  },
  { session_id: id('sid', 4), event_id: id('evt', 41), environment: 'test' },
  {
    session_id: id('sid', 5),
    event_id: id('evt', 51),
    organization_id: other.organizationId,
  },
)

const list = (query = '', key?: string) =>
  readback.send({ url: `/v1/sessions${query}`, ...(key && { key }) })
const get = (session: number | string, key?: string) => {
  const sessionId = typeof session === 'string' ? session : id('sid', session)
  return readback.send({ url: `/v1/sessions/${sessionId}`, ...(key && { key }) })
}

describe('GET /v1/sessions', () => {
  test('lists sessions of the organization and environment of the key, newest decision first', async () => {
    expect(numbersIn(await list())).toEqual([1, 3, 2])
    expect(numbersIn(await list('?cursor='))).toEqual([1, 3, 2])
    expect(numbersIn(await list('', readback.testKey))).toEqual([4])
    expect(numbersIn(await list('', other.key))).toEqual([5])
  })

  test('returns how a session was matched to its visitor if requested', async () => {
    const plain = await list()
    const { body } = await list('?include=resolution')
    const resolution = { method: 'continuity', basis: 'deterministic' }
    expect(body.data).toMatchObject([
      { visitor_fingerprint: { resolution } },
      { visitor_fingerprint: null },
      { visitor_fingerprint: { resolution } },
    ])
    expect(JSON.stringify(plain.body)).not.toContain('resolution')
    const { next_cursor } = (await list('?limit=1')).body.pagination
    expect((await list(`?limit=1&include=resolution&cursor=${next_cursor}`)).status).toBe(200)
  })

  test('returns when a session handed off', async () => {
    const { body } = await list()
    const facts = body.data.map((row: { facts: object }) => row.facts)
    const at = new Date(start + 2000).toISOString()
    expect(facts).toMatchObject([{}, { handed_off_at: null }, { handed_off_at: at }])
  })

  test('next_cursor is absent on the last page', async () => {
    expect((await list('?limit=3')).body.pagination).toEqual({ limit: 3, has_more: false })
    expect((await list()).body.pagination).toEqual({ limit: 50, has_more: false })
  })

  test.each([
    ['a session id in any case', id('sid', 2).toUpperCase(), [2]],
    ['an event id', id('evt', 12), [1]],
    ['an earlier event id of the session', id('evt', 11), [1]],
    ['a visitor id', id('vid', 2), [2]],
    ['an id of another organization', id('sid', 5), []],
    ['an id of the other environment', id('evt', 41), []],
    ['a prefix of an id', 'sid_0', []],
    ['an unknown legacy id', 'a'.repeat(32), []],
    ['part of a user agent', 'sPECIALaGENT', [2]],
    ['part of a URL', '/checkout', [2]],
    ['part of an IP address', '198.51.100', [2]],
    ['a literal wildcard', '100%25', [2]],
    ['a literal underscore', 'chec_out', []],
    ['a literal percent sign', '%', [3, 2]],
    ['a NUL', '\0', []],
    ['a line feed', '\n', []],
    ['text around a line feed', `special\n`, []],
    ['part of an encoded URL', 'gr%C3%B6%C3%9Fe', [3]],
    ['part of a decoded URL, in any case', 'GRÖßE', [3]],
    ['part of a decoded host', 'bücher', [3]],
    ['an empty text', '', [1, 3, 2]],
  ])('search: %s', async (_, search, found) => {
    expect(numbersIn(await list(`?search=${encodeURIComponent(search)}`))).toEqual(found)
  })

  test.each([
    'limit=0',
    'limit=201',
    'limit=1.5',
    'limit=1&limit=2',
    'verdict=BOT',
    'cursor=abc',
    'offset',
  ])('%s is rejected, naming the parameter', async (query) => {
    expectRefused(await list(`?${query}`), query)
  })

  test('unknown parameters are ignored', async () => {
    expect(numbersIn(await list('?shade=x&__proto__=1'))).toHaveLength(3)
  })
})

describe('GET /v1/sessions/{sessionId}', () => {
  test('returns the score breakdown and the position on the log if requested', async () => {
    const plain = await get(1)
    const { body } = await get(`${id('sid', 1)}?include=score&include=log`)
    const { score, log, ...rest } = body.data
    expect(rest).toEqual(plain.body.data)
    // Decisions in these tests have no model.
    expect(score).toMatchObject({ steps: null, without_effect: [] })
    const [record] = await readRecords(readback.log, log.topic, [log])
    expect(record?.value?.includes(id('evt', 12))).toBe(true)
  })

  test('returns the latest and previous decisions, with the most actionable members first', async () => {
    const { data } = (await get(1)).body
    const names = Object.keys(sessionDetailSchema.shape).filter((name) => name in data)
    expect(Object.keys(data)).toEqual(names)
    expect(data).toMatchObject({
      decision: { event_id: id('evt', 12), automation_status: 'automated' },
      previous_decisions: [{ event_id: id('evt', 11), automation_status: 'uncertain' }],
      visitor_fingerprint: {
        id: id('vid', 1),
        lifecycle: {
          first_seen_at: '2025-10-09T08:53:21.000Z',
          last_seen_at: '2025-10-09T08:53:25.000Z',
          seen_count: 1,
        },
      },
    })
  })

  test('returns null for a session without visitor', async () => {
    expect((await get(3)).body.data).toMatchObject({
      visitor_fingerprint: null,
      previous_decisions: [],
    })
  })

  test('returns no IP address in the request', async () => {
    expect(Object.keys((await get(2)).body.data.request)).toEqual(['url', 'referrer', 'user_agent'])
  })

  test.each([
    id('sid', 99),
    // Sessions of the other environment and of another organization.
    id('sid', 4),
    id('sid', 5),
    'a'.repeat(32),
    id('evt', 11),
    '%00',
    '..%2F',
    id('sid', 1).toUpperCase(),
  ])('returns 404 for %s', async (sessionId) => {
    expectError(await get(sessionId), 'request.not_found')
  })
})
