import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { uriOf } from '../../../../infra/wire/webhooks/events.ts'
import { raisedEventTypes } from '../../../../projections/sessions/projection.ts'
import type { SessionScored } from '../../../../schemas/events.ts'
import { storedUrl } from '../../../../services/collect/schemas.ts'
import {
  buildDecisionEvent,
  isWithinRetention,
} from '../../../../services/webhooks/planner/build-events.ts'
import { sessionScored } from '../../../support/session-scored.ts'

const fingerprint = 'session.fingerprint.calculated'
const result = 'session.result.persisted'
const now = 1_760_000_060_000
const isUri = addFormats.default(new Ajv2020()).compile({ type: 'string', format: 'uri' })

/** Returns the events that the decision raises. By default, the decision is final. */
function raised(overrides: Partial<SessionScored> = {}) {
  const scored = sessionScored({ is_provisional: false, ...overrides })
  return raisedEventTypes(scored).map((type) => buildDecisionEvent(scored, type, now))
}
function dataOf(type: string, overrides: Partial<SessionScored> = {}) {
  return JSON.parse(raised(overrides).find((one) => one.type === type)?.data ?? 'null')
}

describe('the event of a decision', () => {
  test.each<[string, Partial<SessionScored>, string[]]>([
    ['a provisional decision without a visitor', { visitor: null, is_provisional: true }, []],
    ['a provisional decision with a visitor', { is_provisional: true }, [fingerprint]],
    ['a final decision without a visitor', { visitor: null }, [result]],
    ['a final decision with a visitor', {}, [fingerprint, result]],
  ])('%s', (_, overrides, types) => {
    expect(raised(overrides).map(({ type }) => type)).toEqual(types)
  })

  test('is about the session, with the same id at each of its decisions', () => {
    const [first] = raised({ environment: 'test' })
    expect(first).toMatchObject({
      organization_id: 'org_00000000000000000000000001',
      environment: 'test',
      subject_type: 'session',
      subject_id: 'sid_00000000000000000000000001',
      created_at: 1_760_000_001_000,
      route: 'queued',
    })
    const ids = (overrides: Partial<SessionScored>) => raised(overrides).map((one) => one.event_id)
    const again = ids({ event_id: 'evt_00000000000000000000000002', evaluated_at: now })
    expect(again).toEqual(ids({}))
    const other = ids({ session_id: 'sid_00000000000000000000000002' })
    expect(new Set([...again, ...other]).size).toBe(4)
  })

  test.each([
    ['a year', 365 * 24 * 3_600_000, 3_600_000],
    ['less than an hour', 3_599_999, 3_599_999],
  ])('by a clock that is %s ahead is from within the next hour', (_, ahead, createdIn) => {
    const times = raised({ evaluated_at: now + ahead }).map(({ created_at }) => created_at)
    expect(times).toEqual([now + createdIn, now + createdIn])
  })
})

test('the fingerprint event has the visitor', () => {
  expect(dataOf(fingerprint)).toEqual({
    object: 'session_fingerprint',
    session: { id: 'sid_00000000000000000000000001' },
    visitor_fingerprint: {
      id: 'vid_00000000000000000000000001',
      confidence: 93,
      identified_at: '2025-10-09T08:53:20.500Z',
    },
    request: {
      url: 'https://example.com/signup',
      user_agent: expect.stringContaining('Chrome/141'),
      ip_address: '203.0.113.9',
      screen_size: '1440x900',
      is_touch_capable: false,
      platform: 'Linux',
      first_seen: '2025-10-09T08:53:20.000Z',
      risk_time: '2025-10-09T08:53:21.000Z',
    },
    calculated_at: '2025-10-09T08:53:21.000Z',
  })
})

describe('the result event', () => {
  const attribution = {
    labels: [{ kind: 'tool' as const, value: 'playwright', label: 'Playwright', confidence: 90 }],
    behaviors: [],
  }

  test('has the decision and its reasons, and the id of the decision in REST responses', () => {
    const payload = dataOf(result, { verdict: 'bot', risk_score: 96, attribution })
    expect(payload).toMatchObject({
      event: {
        id: 'evt_00000000000000000000000001',
        phase: 'snapshot',
        is_provisional: false,
        persisted_at: '2025-10-09T08:53:21.000Z',
      },
      decision: { verdict: 'bot', risk_score: 96, score: 0.96 },
      visitor_fingerprint: { id: 'vid_00000000000000000000000001' },
      score_breakdown: { categories: { environment: 4, behavioral: 3 } },
      signals: [
        { id: 'ua_consistent', category: 'environment', confidence: 'weak', role: 'trust' },
      ],
      attribution: { bot: attribution },
    })
  })

  test('has no bot attribution for a person, and omits unknown members', () => {
    const { request, device } = sessionScored()
    const payload = dataOf(result, {
      attribution,
      visitor: null,
      request: { ...request, url: '', screen_size: null, is_touch_capable: null },
      device: { ...device, operating_system: { name: null, version: null } },
    })
    expect(payload).toMatchObject({ attribution: { bot: null }, visitor_fingerprint: null })
    expect(payload.request).toMatchObject({ url: null, screen_size: null, platform: null })
    expect(payload.request).not.toHaveProperty('is_touch_capable')
  })
})

describe('the URL of the page', () => {
  test.each([
    ['https://example.com/signup?a=b#c', 'https://example.com/signup?a=b#c'],
    ['https://example.com/{a}|b?q={c}#d#e', 'https://example.com/%7Ba%7D%7Cb?q=%7Bc%7D#d%23e'],
    ['https://example.com/100%?%zz=%41', 'https://example.com/100%25?%25zz=%41'],
    ['https://[2001:db8::1]:8443/a[0]', 'https://[2001:db8::1]:8443/a%5B0%5D'],
    ['https://example.com/?', 'https://example.com/'],
    ['about:blank', 'about:blank'],
    ['blob:https://example.com/', 'blob:https://example.com/'],
    ['https://a{b}/', null],
    ['not a URL', null],
  ])('%s', (address, uri) => {
    expect(uriOf(address)).toBe(uri)
  })

  test('is always a valid URI with the same destination', () => {
    const part = fc.string({ unit: fc.constantFrom(...'aZ0%{}|^[]`"<>#?/\\:@ é\u{1f600}') })
    const address = fc.oneof(
      fc.webUrl(),
      part.map((text) => `https://example.com/${text}`),
    )
    fc.assert(
      fc.property(address, (text) => {
        const uri = uriOf(storedUrl(text) ?? '')
        if (uri === null) throw new Error('an address of the web was taken for none')
        expect([isUri(uri), uriOf(uri)]).toEqual([true, uri])
      }),
    )
  })
})

const hour = 60 * 60 * 1000
const day = 24 * hour
const scored = sessionScored()

test.each([
  ['when it has just started', 0, true],
  ['until an hour before its first events expire', 30 * day - hour, true],
  ['no longer after that', 30 * day - hour + 1, false],
  ['if it was started by a clock that is ahead', -day, true],
])('a session is within retention %s', (_, age, recent) => {
  // A late decision makes no difference.
  const decided = { ...scored, evaluated_at: scored.created_at + age }
  expect(isWithinRetention(decided, scored.created_at + age)).toBe(recent)
})
