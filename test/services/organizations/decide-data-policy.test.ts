import { describe, expect, test } from 'vitest'
import {
  decideDataPolicy,
  decideExpiration,
  noDataPolicy,
  retentionOf,
} from '../../../services/organizations/decide-data-policy.ts'
import { organization, organizationId, refusal } from './given.ts'

const at = { eventId: 'evt_change', now: 9 }
const policy = { organization_id: organizationId, ...noDataPolicy, changed_at: 1 }

describe('the data policy of an organization', () => {
  test('says all of it, what was not named as it was', () => {
    const state = {
      organization,
      policy: { ...policy, visitor_days: 90, shortens_addresses: true },
    }
    const [decision] = decideDataPolicy(state, {
      changes: { session_days: 30, visitor_days: null },
      ...at,
    })
    expect(decision?.event).toEqual({
      type: 'OrganizationDataPolicyChanged',
      data: {
        ...noDataPolicy,
        organization_id: organizationId,
        session_days: 30,
        shortens_addresses: true,
        changed_at: 9,
      },
    })
  })

  test.each([[{}], [{ session_days: null, shortens_addresses: false }]])(
    'with %j nothing happens where it is so already',
    (changes) => {
      expect(decideDataPolicy({ organization, policy: undefined }, { changes, ...at })).toEqual([])
    },
  )

  test('of one that does not exist is refused', () => {
    const unknown = { organization: undefined, policy: undefined }
    expect(refusal(() => decideDataPolicy(unknown, { changes: {}, ...at }))).toMatchObject({
      status: 404,
    })
  })

  test('days out of bounds are refused together', () => {
    const changes = { session_days: 1, decision_days: 1.5, visitor_days: 36_501, webhook_days: 31 }
    const error = refusal(() => decideDataPolicy({ organization, policy }, { changes, ...at }))
    expect(error.details?.fields).toMatchObject([
      { name: 'session_days', expected: '2 to 36500 days, for ever, or the default' },
      { name: 'decision_days', expected: '1 to 36500 days, for ever, or the default' },
      { name: 'visitor_days', expected: '2 to 36500 days, for ever, or the default' },
      { name: 'webhook_days', expected: '7 to 30 days, or the default' },
    ])
  })

  test('decisions may stay for a day, and sessions for two', () => {
    const changes = { session_days: 2, decision_days: 1 }
    expect(decideDataPolicy({ organization, policy }, { changes, ...at })).toMatchObject([
      { event: { data: changes } },
    ])
  })

  test('webhook events cannot stay for ever', () => {
    const changes = { webhook_days: 0 }
    const error = refusal(() => decideDataPolicy({ organization, policy }, { changes, ...at }))
    expect(error).toMatchObject({ details: { fields: [{ name: 'webhook_days' }] } })
  })
})

describe('what has ended', () => {
  const day = 24 * 60 * 60 * 1000
  const hour = day / 24
  const today = 20_000 * day
  const now = today + 2 * hour
  const days = { session_days: 30, decision_days: 10, visitor_days: 0, webhook_days: null }
  const nothing = {
    sessions_before: null,
    decisions_before: null,
    visitors_before: null,
    webhooks_before: null,
  }
  const ended = (
    known: Partial<typeof nothing> | undefined,
    kept: Partial<typeof days>,
    time = now,
  ) => {
    const expired = known && {
      ...nothing,
      ...known,
      organization_id: organizationId,
      expired_at: 1,
    }
    const command = { organizationId, days: { ...days, ...kept }, now: time }
    return decideExpiration(expired, command)[0]?.event.data
  }

  test('is counted in whole days, and decisions end with their sessions', () => {
    expect(ended(undefined, {})).toEqual({
      ...nothing,
      organization_id: organizationId,
      sessions_before: today - 30 * day,
      decisions_before: today - 10 * day,
      expired_at: now,
    })
    expect(ended(undefined, { decision_days: 0 })).toMatchObject({
      decisions_before: today - 30 * day,
    })
    expect(ended(undefined, { decision_days: 60 })).toMatchObject({
      decisions_before: today - 30 * day,
    })
  })

  // Its first decision may be the last one before it ends.
  test('leaves out the newest decision of a session that began before midnight and lasts for a day', () => {
    const oneDay = (time: number) => ended(undefined, { decision_days: 1 }, time)
    expect(oneDay(today + hour - 1)).toMatchObject({ decisions_before: today - 2 * day })
    expect(oneDay(today + hour)).toMatchObject({ decisions_before: today - day })
  })

  test('says nothing while no further day is over, and nothing where all stays', () => {
    const known = { sessions_before: today - 30 * day, decisions_before: today - 10 * day }
    expect(ended(known as never, {}, today + day - 1)).toBeUndefined()
    expect(ended(known as never, {}, today + day)).toMatchObject({
      sessions_before: today - 29 * day,
    })
    expect(ended(undefined, { session_days: 0, decision_days: 0 })).toBeUndefined()
  })

  test('stays so when more is kept later, also when the clock goes back', () => {
    const known = { sessions_before: today - 30 * day, decisions_before: today - 10 * day }
    expect(ended(known as never, { session_days: 90, decision_days: 90 })).toBeUndefined()
    expect(ended(known as never, {}, now - 5 * day)).toBeUndefined()
  })

  test('is by days of its own before those of the operator', () => {
    const defaults = {
      session_days: 400,
      decision_days: 300,
      visitor_days: null,
      webhook_days: null,
    }
    expect(retentionOf({ ...policy, session_days: 0, visitor_days: 7 }, defaults)).toEqual({
      session_days: 0,
      decision_days: 300,
      visitor_days: 7,
      webhook_days: null,
    })
    expect(retentionOf(undefined, defaults)).toEqual(defaults)
  })
})
