import { describe, expect, test } from 'vitest'
import {
  decideDataPolicy,
  decideExpiration,
  noDataPolicy,
  retentionOf,
} from '../../../services/organizations/decide-data-policy.ts'
import { organization, organizationId, refusal } from './given.ts'

const policy = { organization_id: organizationId, ...noDataPolicy, changed_at: 1 }

describe('the data policy of an organization', () => {
  type State = Parameters<typeof decideDataPolicy>[0]
  const decide = (changes: object, state: Partial<State> = {}) =>
    decideDataPolicy({ organization, policy, ...state }, { changes, eventId: 'evt_change', now: 9 })

  test('says all of it, what was not named as it was', () => {
    const before = { ...policy, visitor_days: 90, shortens_addresses: true }
    const [decision] = decide({ session_days: 30, visitor_days: null }, { policy: before })
    expect(decision?.event).toEqual({
      type: 'OrganizationDataPolicyChanged',
      data: { ...policy, session_days: 30, shortens_addresses: true, changed_at: 9 },
    })
  })

  test.each([[{}], [{ session_days: null, shortens_addresses: false }]])(
    'with %j nothing happens where it is so already',
    (changes) => {
      expect(decide(changes, { policy: undefined })).toEqual([])
    },
  )

  test('of one that does not exist is refused', () => {
    expect(refusal(() => decide({}, { organization: undefined })).status).toBe(404)
  })

  test('days out of bounds are refused together', () => {
    const changes = { session_days: 1, decision_days: 1.5, visitor_days: 36_501, webhook_days: 31 }
    expect(refusal(() => decide(changes)).details?.fields).toMatchObject([
      { name: 'session_days', expected: '2 to 36500 days, for ever, or the default' },
      { name: 'decision_days', expected: '1 to 36500 days, for ever, or the default' },
      { name: 'visitor_days', expected: '2 to 36500 days, for ever, or the default' },
      { name: 'webhook_days', expected: '7 to 30 days, or the default' },
    ])
  })

  test('decisions may stay for a day and sessions for two, but webhook events not for ever', () => {
    const changes = { session_days: 2, decision_days: 1 }
    expect(decide(changes)).toMatchObject([{ event: { data: changes } }])
    const { details } = refusal(() => decide({ webhook_days: 0 }))
    expect(details?.fields).toMatchObject([{ name: 'webhook_days' }])
  })
})

describe('what has ended', () => {
  const hour = 60 * 60 * 1000
  const day = 24 * hour
  const today = 20_000 * day
  const now = today + 2 * hour
  const ends = (sessions: number, decisions: number) => ({
    sessions_before: today - sessions * day,
    decisions_before: today - decisions * day,
  })
  const nothing = {
    sessions_before: null,
    decisions_before: null,
    visitors_before: null,
    webhooks_before: null,
  }
  const days = { session_days: 30, decision_days: 10, visitor_days: 0, webhook_days: null }
  const ended = (known: object | undefined, kept: Partial<typeof days>, time = now) => {
    const about = { organization_id: organizationId, expired_at: 1 }
    const command = { organizationId, days: { ...days, ...kept }, now: time }
    return decideExpiration(known && { ...nothing, ...known, ...about }, command)[0]?.event.data
  }

  test.each([
    [10, 10],
    [0, 30],
    [60, 30],
  ])('is counted in whole days: decisions that stay %i days end after %i', (decision_days, end) => {
    const about = { organization_id: organizationId, expired_at: now }
    expect(ended(undefined, { decision_days })).toEqual({
      ...nothing,
      ...ends(30, end),
      ...about,
    })
  })

  // Its first decision may be the last one before it ends.
  test('leaves out the newest decision of a session that began before midnight and lasts for a day', () => {
    const oneDay = (time: number) => ended(undefined, { decision_days: 1 }, time)
    expect(oneDay(today + hour - 1)).toMatchObject({ decisions_before: today - 2 * day })
    expect(oneDay(today + hour)).toMatchObject({ decisions_before: today - day })
  })

  test('says nothing while no further day is over, and nothing where all stays', () => {
    const known = ends(30, 10)
    expect(ended(known, {}, today + day - 1)).toBeUndefined()
    expect(ended(known, {}, today + day)).toMatchObject({ sessions_before: today - 29 * day })
    expect(ended(undefined, { session_days: 0, decision_days: 0 })).toBeUndefined()
  })

  test('stays so when more is kept later, also when the clock goes back', () => {
    expect(ended(ends(30, 10), { session_days: 90, decision_days: 90 })).toBeUndefined()
    expect(ended(ends(30, 10), {}, now - 5 * day)).toBeUndefined()
  })

  test('is by days of its own before those of the operator', () => {
    const defaults = {
      session_days: 400,
      decision_days: 300,
      visitor_days: null,
      webhook_days: null,
    }
    const own = { session_days: 0, visitor_days: 7 }
    expect(retentionOf({ ...policy, ...own }, defaults)).toEqual({ ...defaults, ...own })
    expect(retentionOf(undefined, defaults)).toEqual(defaults)
  })
})
