import fc from 'fast-check'
import { describe, expect, it, test } from 'vitest'
import { uriOf } from '../../../../infra/wire/webhooks/events.ts'
import { eventTypesOf } from '../../../../projections/sessions/projection.ts'
import type { SessionScored } from '../../../../schemas/events.ts'
import { storedUrl } from '../../../../services/collect/schemas.ts'
import { fingerprintPayload, resultPayload } from '../../../../services/webhooks/events/schemas.ts'
import {
  isRecent,
  type Raised,
  raise as raiseAt,
} from '../../../../services/webhooks/planner/raise.ts'
import { sessionScored, visitorLink } from '../../../support/session-scored.ts'
import { isUriText, payloadProblems } from './contract.ts'

const signals = [
  {
    signal: 'webdriver',
    role: 'risk',
    category: 'automation',
    strength: 'definitive',
    signal_score: 96,
  },
  {
    signal: 'ua_consistent',
    role: 'trust',
    category: 'environment',
    strength: 'weak',
    signal_score: 4,
  },
].map((signal) => ({ ...signal, channel: 'a channel' }))
const attribution = {
  labels: [{ kind: 'tool' as const, value: 'playwright', label: 'Playwright', confidence: 90 }],
  behaviors: [],
}
const raisedAt = (scored: SessionScored, now: number) =>
  eventTypesOf(scored).map((type) => raiseAt(scored, type, now))
const raise = (scored: SessionScored) => raisedAt(scored, 1_760_000_060_000)
const typesOf = (raised: Raised[]) => raised.map(({ type }) => type)
const dataOf = (raised: Raised[], type: Raised['type']) =>
  JSON.parse(raised.find((one) => one.type === type)?.data ?? 'null')
const fingerprintOf = (...scored: Parameters<typeof sessionScored>) =>
  dataOf(raise(sessionScored(...scored)), 'session.fingerprint.calculated')
const resultOf = (overrides: Parameters<typeof sessionScored>[0] = {}) =>
  dataOf(raise(sessionScored({ is_provisional: false, ...overrides })), 'session.result.persisted')

describe('what a decision raises', () => {
  test.each([
    ['a provisional decision without a visitor', { visitor: null }, []],
    ['a provisional decision with a visitor', {}, ['session.fingerprint.calculated']],
    [
      'a final one without a visitor',
      { visitor: null, is_provisional: false },
      ['session.result.persisted'],
    ],
    [
      'a final one with a visitor',
      { is_provisional: false },
      ['session.fingerprint.calculated', 'session.result.persisted'],
    ],
  ])('%s', (_, overrides, types) => {
    expect(typesOf(raise(sessionScored(overrides)))).toEqual(types)
  })

  it('has the same ids at every decision of a session, and others in another session', () => {
    const ids = (overrides: Parameters<typeof sessionScored>[0]) =>
      raise(sessionScored({ is_provisional: false, ...overrides })).map(({ event_id }) => event_id)
    const first = ids({})
    expect(
      ids({ event_id: 'evt_00000000000000000000000002', evaluated_at: 1_760_000_009_000 }),
    ).toEqual(first)
    const other = ids({ session_id: 'sid_00000000000000000000000002' })
    expect(new Set([...first, ...other]).size).toBe(4)
    expect(first.concat(other)).toEqual(
      first.concat(other).filter((id) => /^evt_[0-9a-z]{26}$/.test(id)),
    )
  })

  it('is not from later than an hour from now, however far ahead the clock of who scored was', () => {
    const [now, hour] = [1_760_000_060_000, 60 * 60 * 1000]
    const at = (evaluated_at: number) =>
      raisedAt(sessionScored({ is_provisional: false, evaluated_at }), now).map(
        ({ created_at }) => created_at,
      )
    expect(at(now + 365 * 24 * hour)).toEqual([now + hour, now + hour])
    expect(at(now + hour - 1)).toEqual([now + hour - 1, now + hour - 1])
  })

  it('is about the session, as of when it was decided', () => {
    for (const raised of raise(sessionScored({ environment: 'test', is_provisional: false }))) {
      expect(raised).toMatchObject({
        organization_id: 'org_00000000000000000000000001',
        environment: 'test',
        subject_type: 'session',
        subject_id: 'sid_00000000000000000000000001',
        created_at: 1_760_000_001_000,
        route: 'queued',
      })
    }
  })
})

describe('session.fingerprint.calculated', () => {
  it('says which visitor it is', () => {
    const payload = fingerprintOf()
    expect(payload).toEqual({
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
    expect(payloadProblems('SessionFingerprintCalculatedPayload', payload)).toEqual([])
    expect(fingerprintPayload.parse(payload)).toEqual(payload)
  })

  it('may not know how sure it is', () => {
    const payload = fingerprintOf({ visitor: visitorLink({ confidence: null }) })
    expect(payload.visitor_fingerprint.confidence).toBeNull()
    expect(payloadProblems('SessionFingerprintCalculatedPayload', payload)).toEqual([])
    expect(fingerprintPayload.parse(payload)).toEqual(payload)
  })
})

describe('session.result.persisted', () => {
  it('says what was decided and why, and names the decision that REST shows', () => {
    const overrides = {
      verdict: 'bot',
      risk_score: 96,
      signals_fired: signals,
      attribution,
    } as const
    const payload = resultOf({ ...overrides, signals_fired: [...signals] })
    expect(payload).toMatchObject({
      object: 'session_result',
      session: { id: 'sid_00000000000000000000000001' },
      event: {
        id: 'evt_00000000000000000000000001',
        scoring_event_id: 'evt_00000000000000000000000001',
        phase: 'snapshot',
        is_provisional: false,
        persisted_at: '2025-10-09T08:53:21.000Z',
      },
      decision: {
        verdict: 'bot',
        risk_score: 96,
        score: 0.96,
        manipulation: { score: 0, verdict: 'none' },
      },
      visitor_fingerprint: { id: 'vid_00000000000000000000000001' },
      score_breakdown: { categories: { environment: 4, behavioral: 3 } },
      attribution: { bot: attribution },
    })
    expect(payload.signals).toEqual([
      {
        id: 'webdriver',
        category: 'automation',
        confidence: 'definitive',
        score: 96,
        role: 'risk',
      },
      { id: 'ua_consistent', category: 'environment', confidence: 'weak', score: 4, role: 'trust' },
    ])
    expect(payloadProblems('SessionResultPersistedPayload', payload)).toEqual([])
    expect(resultPayload.parse(payload)).toEqual(payload)
  })

  it('says which agent it is, with all that was looked at', () => {
    const evidence = {
      catalogue_id: null,
      domain: 'agent.example',
      key_id: 'key',
      host_name: null,
      list: null,
      reason: null,
      fetched_at: 1_760_000_001_000,
    }
    const named = { provider: 'agent.example', product: null, purpose: null, method: 'signature' }
    const payload = resultOf({ agent: { status: 'signed', ...named, evidence } })
    expect(payload.attribution.agent).toEqual({
      status: 'signed',
      ...named,
      evidence: { ...evidence, fetched_at: '2025-10-09T08:53:21.000Z' },
    })
    expect(payloadProblems('SessionResultPersistedPayload', payload)).toEqual([])
    expect(resultPayload.parse(payload)).toEqual(payload)
  })

  it('attributes a person to nobody, and leaves out what is not known', () => {
    const { request, device } = sessionScored()
    const payload = resultOf({
      attribution,
      visitor: null,
      manipulation: null,
      request: { ...request, url: '', screen_size: null, is_touch_capable: null },
      device: { ...device, operating_system: { name: null, version: null } },
    })
    expect(payload).toMatchObject({ attribution: { bot: null }, visitor_fingerprint: null })
    expect(payload.request).toMatchObject({ url: null, screen_size: null, platform: null })
    expect(payload.request).not.toHaveProperty('is_touch_capable')
    expect(payloadProblems('SessionResultPersistedPayload', payload)).toEqual([])
    expect(resultPayload.parse(payload)).toEqual(payload)
  })
})

describe('the address of the page', () => {
  test.each([
    ['https://example.com/signup?a=b#c', 'https://example.com/signup?a=b#c'],
    ['https://example.com/{a}|b?q={c}#d#e', 'https://example.com/%7Ba%7D%7Cb?q=%7Bc%7D#d%23e'],
    ['https://example.com/100%?%zz=%41', 'https://example.com/100%25?%25zz=%41'],
    ['https://[2001:db8::1]:8443/a[0]', 'https://[2001:db8::1]:8443/a%5B0%5D'],
    ['https://example.com/?', 'https://example.com/'],
    ['about:blank', 'about:blank'],
    ['blob:https://example.com/', 'blob:https://example.com/'],
    ['data:///', 'data:///'],
    ['https://a{b}/', null],
    ['not an address', null],
    ['', null],
  ])('%s', (address, uri) => {
    expect(uriOf(address)).toBe(uri)
  })

  it('is a URI whatever a page may be called, and stays the same address', () => {
    const part = fc.string({ unit: fc.constantFrom(...'aZ0%{}|^[]`"<>#?/\\:@ é\u{1f600}') })
    const address = fc.oneof(
      fc.webUrl(),
      part.map((text) => `https://example.com/${text}`),
    )
    fc.assert(
      fc.property(address, (text) => {
        const stored = storedUrl(text)
        const uri = stored === undefined ? null : uriOf(stored)
        if (uri === null) throw new Error('an address of the web was taken for none')
        expect(isUriText(uri)).toBe(true)
        expect(uriOf(uri)).toBe(uri)
      }),
    )
  })
})

describe('how old a session may be', () => {
  const day = 24 * 60 * 60 * 1000
  const scored = sessionScored()
  test.each([
    ['just opened', 0, true],
    ['opened 29 days ago', 29 * day, true],
    ['opened as long ago as events are kept', 30 * day, false],
    ['opened by a clock that is ahead', -day, true],
  ])('%s', (_, age, recent) => {
    expect(isRecent(scored, scored.created_at + age)).toBe(recent)
  })

  it('is told from its opening: a late decision does not make it younger', () => {
    const late = sessionScored({ evaluated_at: scored.created_at + 30 * day })
    expect(isRecent(late, late.evaluated_at)).toBe(false)
  })
})
