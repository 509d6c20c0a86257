import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readRecords } from '../../../infra/log/read-topic.ts'
import { visitorLink } from '../../support/session-scored.ts'
import { expectError, expectShape } from './contract.ts'
import { id, type Readback, startReadback } from './support.ts'

let readback: Readback
const start = 1_760_000_000_000

beforeAll(async () => {
  readback = await startReadback()
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
      request: {
        url: 'https://shop.example/Checkout?step=100%25',
        referrer: 'https://shop.example/',
        user_agent: 'SpecialAgent/7.0',
        ip_address: '198.51.100.77',
        screen_size: null,
        is_touch_capable: null,
      },
    },
    {
      session_id: id('sid', 3),
      event_id: id('evt', 31),
      visitor: null,
      manipulation: null,
      evaluated_at: start + 3000,
      request: {
        url: 'https://xn--bcher-kva.example/gr%C3%B6%C3%9Fe',
        referrer: null,
        user_agent: 'Browser/1',
        ip_address: '203.0.113.3',
        screen_size: null,
        is_touch_capable: null,
      },
    },
    {
      session_id: id('sid', 1),
      event_id: id('evt', 12),
      visitor: visitorLink({ id: id('vid', 1) }),
      verdict: 'bot',
      risk_score: 94,
      phase: 'behavioral',
      is_provisional: false,
      evaluated_at: start + 5000,
    },
    {
      session_id: id('sid', 4),
      event_id: id('evt', 41),
      environment: 'test',
      evaluated_at: start + 4000,
    },
    { session_id: id('sid', 5), event_id: id('evt', 51), organization_id: id('org', 2) },
  )
})
afterAll(() => readback.stop())

interface Listed {
  visitor_fingerprint: { resolution?: unknown } | null
}

async function listed(query = ''): Promise<string[]> {
  const { status, body } = await readback.send({ url: `/v1/sessions${query}` })
  expect(status).toBe(200)
  expectShape('SessionListResponse', body)
  return body.data.map((row: { id: string }) => row.id)
}

describe('GET /v1/sessions', () => {
  test('lists by latest decision, newest first, own organization and environment only', async () => {
    expect(await listed()).toEqual([id('sid', 1), id('sid', 3), id('sid', 2)])
    expect(await listed('?cursor=')).toEqual(await listed())
  })

  test('a row says what the latest decision is', async () => {
    const { body } = await readback.send({ url: '/v1/sessions?limit=1' })
    expect(body).toEqual({
      data: [
        {
          object: 'session',
          id: id('sid', 1),
          created_at: '2025-10-09T08:53:20.000Z',
          client_user_id: null,
          latest_decision: {
            event_id: id('evt', 12),
            verdict: 'bot',
            risk_score: 94,
            phase: 'behavioral',
            is_provisional: false,
            manipulation: { score: 0, verdict: 'none' },
            evaluation_duration_ms: 4,
            evaluated_at: '2025-10-09T08:53:25.000Z',
          },
          visitor_fingerprint: {
            object: 'visitor_fingerprint',
            id: id('vid', 1),
            confidence: 93,
            identified_at: '2025-10-09T08:53:20.500Z',
          },
          mark: null,
          facts: expect.objectContaining({ page_host: 'example.com', handed_off_at: null }),
        },
      ],
      pagination: { limit: 1, has_more: true, next_cursor: expect.any(String) },
      meta: { request_id: expect.stringMatching(/^req_[0-9a-f]{32}$/) },
    })
  })

  test('a row says how the session was tied to its visitor, where that is asked for', async () => {
    const plain = await readback.send({ url: '/v1/sessions' })
    const { status, headers, body } = await readback.send({
      url: '/v1/sessions?include=resolution',
    })
    expect([status, headers['x-filters-applied']]).toEqual([200, ''])
    const asked = body.data.map(({ visitor_fingerprint: visitor, ...row }: Listed) => {
      const { resolution, ...link } = visitor ?? {}
      expect(resolution).toEqual(
        visitor ? { method: 'continuity', basis: 'deterministic' } : undefined,
      )
      return { ...row, visitor_fingerprint: visitor && link }
    })
    expect(asked).toEqual(plain.body.data)
    const { next_cursor } = (await readback.send({ url: '/v1/sessions?limit=1' })).body.pagination
    const next = await readback.send({
      url: `/v1/sessions?limit=1&include=resolution&cursor=${next_cursor}`,
    })
    expect(next.status).toBe(200)
  })

  test('the test environment is another list', async () => {
    const { body } = await readback.send({
      url: '/v1/sessions',
      key: readback.key({ environment: 'test' }),
    })
    expect(body.data.map((row: { id: string }) => row.id)).toEqual([id('sid', 4)])
  })

  test('next_cursor is absent on the last page', async () => {
    const { body } = await readback.send({ url: '/v1/sessions?limit=3' })
    expect(body.pagination).toEqual({ limit: 3, has_more: false })
    expect((await readback.send({ url: '/v1/sessions' })).body.pagination).toEqual({
      limit: 50,
      has_more: false,
    })
  })

  test('verdict filters by the latest decision', async () => {
    expect(await listed('?verdict=bot')).toEqual([id('sid', 1)])
    expect(await listed('?verdict=inconclusive')).toEqual([])
  })

  test.each([
    ['a session id in any case', id('sid', 2).toUpperCase(), [2]],
    ['an event id', id('evt', 12), [1]],
    ['an earlier event id of the session', id('evt', 11), [1]],
    ['a visitor id', id('vid', 2), [2]],
    ['an id of somebody else', id('sid', 5), []],
    ['an id of the other environment', id('evt', 41), []],
    ['a prefix of an id is no substring search', 'sid_0', []],
    ['a legacy id that nothing has', 'a'.repeat(32), []],
    ['part of a user agent', 'sPECIALaGENT', [2]],
    ['part of a URL', '/checkout', [2]],
    ['part of an address', '198.51.100', [2]],
    ['wildcards taken literally', '100%25', [2]],
    ['an underscore taken literally', 'chec_out', []],
    ['a percent sign taken literally', '%', [3, 2]],
    ['a NUL, which nothing has', '\0', []],
    ['a line feed, which nothing has', '\n', []],
    ['parts of two texts around a line feed', `special\n`, []],
    ['part of a URL as it is encoded', 'gr%C3%B6%C3%9Fe', [3]],
    ['part of a URL as people read it, in any case', 'GRÖßE', [3]],
    ['part of a host as people read it', 'bücher', [3]],
    ['nothing', '', [1, 3, 2]],
  ])('search: %s', async (_, search, found) => {
    expect(await listed(`?search=${encodeURIComponent(search)}`)).toEqual(
      found.map((number) => id('sid', number)),
    )
  })

  test.each([
    'limit=0',
    'limit=201',
    'limit=-1',
    'limit=x',
    'limit=',
    'limit=1.5',
    'limit=1e2',
    'limit=1&limit=2',
    'verdict=robot',
    'verdict=BOT',
    'cursor=abc',
    'offset=0',
    'offset',
  ])('%s is refused, naming the parameter', async (query) => {
    const response = await readback.send({ url: `/v1/sessions?${query}` })
    expectError(response, 'request.validation_failed')
    expect(response.status).toBe(422)
    expect(response.body.error.details.fields[0].name).toBe(query.split('=')[0])
  })

  test('unknown parameters are ignored', async () => {
    expect(await listed('?sort=x&__proto__=1')).toHaveLength(3)
  })
})

describe('GET /v1/sessions/{sessionId}', () => {
  test('says how the score came about, and where the decision is on the log, where that is asked for', async () => {
    const url = `/v1/sessions/${id('sid', 1)}`
    const plain = await readback.send({ url })
    expect(Object.keys(plain.body.data)).not.toContain('score')
    expect(Object.keys(plain.body.data)).not.toContain('log')
    const { status, body } = await readback.send({ url: `${url}?include=score&include=log` })
    const { score, log, ...rest } = body.data
    expect([status, rest]).toEqual([200, plain.body.data])
    // Decisions made here name no model.
    expect(score).toMatchObject({ steps: null, without_effect: [] })
    const [record] = await readRecords(readback.log, log.topic, [log])
    expect(record?.value?.includes(id('evt', 12))).toBe(true)
  })

  const get = (number: number, key?: string) =>
    readback.send({ url: `/v1/sessions/${id('sid', number)}`, ...(key && { key }) })

  test('shows everything, the most actionable first', async () => {
    const { status, body } = await get(1)
    expect(status).toBe(200)
    expectShape('SessionDetailResponse', body)
    expect(Object.keys(body.data)).toEqual([
      'object',
      'id',
      'created_at',
      'client_user_id',
      'mark',
      'decision',
      'highlights',
      'attribution',
      'web_bot_auth',
      'agent',
      'network',
      'runtime_integrity',
      'visitor_fingerprint',
      'connection_fingerprint',
      'previous_decisions',
      'request',
      'browser',
      'device',
      'analysis_coverage',
      'evidence',
      'scoring',
      'repeats',
      'signals_fired',
      'client_telemetry',
      'native_runtime_integrity',
      'native_app',
      'native_carrier',
      'native_motion_print',
      'device_identity',
      'install_id',
      'behavior',
    ])
    expect(body.data.decision).toEqual({
      event_id: id('evt', 12),
      automation_status: 'automated',
      risk_score: 94,
      evaluation_phase: 'behavioral',
      decision_status: 'final',
      evaluated_at: '2025-10-09T08:53:25.000Z',
    })
    expect(body.data.previous_decisions).toEqual([
      expect.objectContaining({
        event_id: id('evt', 11),
        automation_status: 'uncertain',
        decision_status: 'preliminary',
      }),
    ])
    expect(body.data.visitor_fingerprint).toEqual({
      object: 'visitor_fingerprint',
      id: id('vid', 1),
      confidence: 93,
      identified_at: '2025-10-09T08:53:20.500Z',
      resolution: { method: 'continuity', basis: 'deterministic' },
      lifecycle: {
        first_seen_at: '2025-10-09T08:53:21.000Z',
        last_seen_at: '2025-10-09T08:53:25.000Z',
        seen_count: 1,
      },
    })
    expect(body.data.client_telemetry.navigator.languages).toEqual(['de-DE', 'en'])
  })

  test('a session without visitor shows null', async () => {
    const { body } = await get(3)
    expectShape('SessionDetailResponse', body)
    expect(body.data.visitor_fingerprint).toBeNull()
    expect(body.data.previous_decisions).toEqual([])
  })

  test('the request has no address, and its referrer', async () => {
    const { body } = await get(2)
    expect(body.data.request).toEqual({
      url: 'https://shop.example/Checkout?step=100%25',
      referrer: 'https://shop.example/',
      user_agent: 'SpecialAgent/7.0',
    })
  })

  test('HEAD answers like GET without a body', async () => {
    const head = await readback.send({ url: `/v1/sessions/${id('sid', 1)}`, method: 'HEAD' })
    expect(head.status).toBe(200)
    expect(head.headers['x-request-id']).toMatch(/^req_/)
  })

  test('a session of another environment or organization does not exist', async () => {
    expectError(await get(4), 'request.not_found')
    expectError(await get(5), 'request.not_found')
    expectError(await get(1, readback.key({ environment: 'test' })), 'request.not_found')
    expectError(await get(1, readback.key({ organizationId: id('org', 2) })), 'request.not_found')
    expect((await get(5, readback.key({ organizationId: id('org', 2) }))).status).toBe(200)
  })

  test.each([
    id('sid', 99),
    'a'.repeat(32),
    id('evt', 11),
    'sid_',
    'x',
    '%00',
    '..%2F',
    id('sid', 1).toUpperCase(),
  ])('%s is not found', async (sessionId) => {
    expectError(await readback.send({ url: `/v1/sessions/${sessionId}` }), 'request.not_found')
  })
})

describe('scopes', () => {
  test.each([
    ['/v1/sessions', 'sessions:list'],
    [`/v1/sessions/${id('sid', 1)}`, 'sessions:read'],
    ['/v1/fingerprints', 'fingerprints:list'],
    [`/v1/fingerprints/${id('vid', 1)}`, 'fingerprints:read'],
  ])('%s needs %s', async (url, scope) => {
    expect((await readback.send({ url, key: readback.key({ scopes: [scope] }) })).status).toBe(200)
    const refused = await readback.send({
      url,
      key: readback.key({ scopes: ['organizations:read'] }),
    })
    expectError(refused, 'auth.insufficient_scope')
    expect(refused.body.error.message).toContain(scope)
  })

  test('sessions:read does not let one update', async () => {
    const refused = await readback.send({
      url: `/v1/sessions/${id('sid', 1)}`,
      method: 'PATCH',
      key: readback.key({ scopes: ['sessions:read', 'sessions:list'] }),
      body: { client_user_id: 'u' },
    })
    expectError(refused, 'auth.insufficient_scope')
  })
})
