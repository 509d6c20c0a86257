import { describe, expect, test } from 'vitest'
import {
  decideDataPolicy,
  decideExpiration,
  defaultDataPolicy,
  retentionOf,
} from '../../../services/organizations/decide-data-policy.ts'
import { organization, organizationId, refusal } from './fixtures.ts'

const policy = { organization_id: organizationId, ...defaultDataPolicy, changed_at: 1 }

describe('decideDataPolicy', () => {
  type State = Parameters<typeof decideDataPolicy>[0]
  const decide = (changes: object, state: Partial<State> = {}) =>
    decideDataPolicy({ organization, policy, ...state }, { changes, eventId: 'evt_change', now: 9 })

  test('records the whole policy, including unchanged members', () => {
    const before = { ...policy, visitor_days: 90, shortens_addresses: true }
    const [decision] = decide({ session_days: 30, visitor_days: null }, { policy: before })
    expect(decision?.event).toEqual({
      type: 'OrganizationDataPolicyChanged',
      data: { ...policy, session_days: 30, shortens_addresses: true, changed_at: 9 },
    })
  })

  test.each([[{}], [{ session_days: null, shortens_addresses: false }]])(
    'returns no event if %j changes nothing',
    (changes) => {
      expect(decide(changes, { policy: undefined })).toEqual([])
    },
  )

  test('throws 404 if the organization does not exist', () => {
    expect(refusal(() => decide({}, { organization: undefined })).status).toBe(404)
  })

  test('names all days out of bounds in one error', () => {
    const changes = { session_days: 1, decision_days: 1.5, visitor_days: 36_501, webhook_days: 31 }
    expect(refusal(() => decide(changes)).details?.fields).toMatchObject([
      { name: 'session_days', expected: '2 to 36500 days, for ever, or the default' },
      { name: 'decision_days', expected: '1 to 36500 days, for ever, or the default' },
      { name: 'visitor_days', expected: '2 to 36500 days, for ever, or the default' },
      { name: 'webhook_days', expected: '7 to 30 days, or the default' },
    ])
  })

  test('accepts a day for decisions and two for sessions, but not forever for webhook events', () => {
    const changes = { session_days: 2, decision_days: 1 }
    expect(decide(changes)).toMatchObject([{ event: { data: changes } }])
    const { details } = refusal(() => decide({ webhook_days: 0 }))
    expect(details?.fields).toMatchObject([{ name: 'webhook_days' }])
  })
})

describe('decideExpiration', () => {
  const hour = 60 * 60 * 1000
  const day = 24 * hour
  const today = 20_000 * day
  const now = today + 2 * hour
  const ends = (sessions: number, decisions: number) => ({
    sessions_before: today - sessions * day,
    decisions_before: today - decisions * day,
  })
  const noExpiration = {
    sessions_before: null,
    decisions_before: null,
    visitors_before: null,
    webhooks_before: null,
  }
  const days = { session_days: 30, decision_days: 10, visitor_days: 0, webhook_days: null }
  const expirationOf = (
    current: object | undefined,
    retention: Partial<typeof days>,
    time = now,
  ) => {
    const about = { organization_id: organizationId, expired_at: 1 }
    const command = { organizationId, days: { ...days, ...retention }, now: time }
    return decideExpiration(current && { ...noExpiration, ...current, ...about }, command)[0]?.event
      .data
  }

  test.each([
    [10, 10],
    [0, 30],
    [60, 30],
  ])('counts whole days: decisions kept for %i days expire after %i', (decision_days, end) => {
    const about = { organization_id: organizationId, expired_at: now }
    expect(expirationOf(undefined, { decision_days })).toEqual({
      ...noExpiration,
      ...ends(30, end),
      ...about,
    })
  })

  // The first decision may be the only one before the session ends.
  test('does not expire the newest decision of a session that began before midnight and lasts a day', () => {
    const oneDay = (time: number) => expirationOf(undefined, { decision_days: 1 }, time)
    expect(oneDay(today + hour - 1)).toMatchObject({ decisions_before: today - 2 * day })
    expect(oneDay(today + hour)).toMatchObject({ decisions_before: today - day })
  })

  test('returns no event before another day is over, or if everything is kept', () => {
    const current = ends(30, 10)
    expect(expirationOf(current, {}, today + day - 1)).toBeUndefined()
    expect(expirationOf(current, {}, today + day)).toMatchObject({
      sessions_before: today - 29 * day,
    })
    expect(expirationOf(undefined, { session_days: 0, decision_days: 0 })).toBeUndefined()
  })

  test('never moves back, even if retention is extended or the clock goes back', () => {
    expect(expirationOf(ends(30, 10), { session_days: 90, decision_days: 90 })).toBeUndefined()
    expect(expirationOf(ends(30, 10), {}, now - 5 * day)).toBeUndefined()
  })

  test('prefers the days of the organization over the default', () => {
    const defaults = {
      session_days: 400,
      decision_days: 300,
      visitor_days: null,
      webhook_days: null,
    }
    const overrides = { session_days: 0, visitor_days: 7 }
    expect(retentionOf({ ...policy, ...overrides }, defaults)).toEqual({
      ...defaults,
      ...overrides,
    })
    expect(retentionOf(undefined, defaults)).toEqual(defaults)
  })
})
