import { describe, expect, test } from 'vitest'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import { completeOrganizationRequest } from '../../../services/organizations/checked-input.ts'
import {
  type CreateOrganization,
  decideCapability,
  decideLimits,
  decideOrganizationCreation,
  decideOrganizationUpdate,
} from '../../../services/organizations/decide-organization.ts'
import { organization, organizationId, refusal } from './fixtures.ts'

const organization_id = organizationId
const events = (decisions: ReturnType<typeof decideLimits>) => decisions.map(({ event }) => event)
const badField = (name: string) => ({
  code: 'request.validation_failed',
  details: { fields: [{ name }] },
})

describe('decideOrganizationCreation', () => {
  const command: CreateOrganization = { organizationId, name: 'Acme', slug: 'acme-2', now: 5 }

  test('creates the organization, with a repeatable event id', () => {
    const request = completeOrganizationRequest({ name: '  Acme ', slug: 'acme-2' })
    const decisions = decideOrganizationCreation({ takenBy: undefined }, { ...command, ...request })
    expect(decisions).toEqual([
      {
        event: {
          type: 'OrganizationCreated',
          data: { organization_id, name: 'Acme', slug: 'acme-2', created_at: 5 },
        },
        meta: {
          eventId: expect.stringMatching(/^evt_/),
          time: 5,
          organizationId,
          environment: null,
        },
      },
    ])
    expect(decideOrganizationCreation({ takenBy: undefined }, command)).toEqual(decisions)
  })

  test('throws 409 for a taken slug, and returns no event for a repeated command', () => {
    const error = refusal(() => decideOrganizationCreation({ takenBy: 'org_other' }, command))
    expect(error).toMatchObject({ code: 'request.conflict', status: 409 })
    expect(decideOrganizationCreation({ takenBy: organizationId }, command)).toEqual([])
  })

  test.each([
    ...['', 'Acme', 'a_b', 'a b', 'ä', 'a\u0000b', 'x'.repeat(64)].map((slug) => ({ slug })),
    ...['', '   ', 'a\u0000b', 'x'.repeat(121), '\ud800'].map((name) => ({ name })),
  ])('throws 422 for %j', (changes) => {
    const error = refusal(() => completeOrganizationRequest({ ...command, ...changes }))
    expect(error).toMatchObject(badField(Object.keys(changes).join()))
  })
})

describe('decideOrganizationUpdate', () => {
  const update = (state: OrganizationRow | undefined, changes: object) =>
    decideOrganizationUpdate(state, { by: 'key', changeId: 'evt_change', now: 9, ...changes })

  test('renames and suspends in one command', () => {
    const decisions = update(organization, { name: ' New ', status: 'suspended' })
    expect(events(decisions)).toEqual([
      { type: 'OrganizationRenamed', data: { organization_id, name: 'New', renamed_at: 9 } },
      { type: 'OrganizationSuspended', data: { organization_id, suspended_at: 9 } },
    ])
    expect(decisions[0]?.meta).toMatchObject({ time: 9, organizationId, environment: null })
  })

  test('gives each event of a change a distinct id, the same when the change is repeated', () => {
    const ids = (changeId: string) =>
      update(organization, { changeId, name: 'New', status: 'deleted' }).map(
        ({ meta }) => meta.eventId,
      )
    expect(ids('evt_a')).toEqual(ids('evt_a'))
    expect(new Set([...ids('evt_a'), ...ids('evt_b')]).size).toBe(4)
  })

  test.each([{ name: ' Acme ', status: 'active' }, {}])(
    'returns no event if nothing changes: %j',
    (changes) => {
      expect(update(organization, changes)).toEqual([])
    },
  )

  test.each([
    ['suspended', 'deleted', 'OrganizationDeleted'],
    ['suspended', 'active', 'OrganizationReactivated'],
    ['deleted', 'active', 'OrganizationReactivated'],
    ['deleted', 'suspended', 'OrganizationSuspended'],
  ] as const)(
    'lets the operator change a %s organization to %s, but not a key of the organization',
    (from, status, type) => {
      const state = { ...organization, status: from }
      expect(events(update(state, { by: 'operator', status }))).toMatchObject([{ type }])
      expect(refusal(() => update(state, { status })).code).toBe('auth.organization_inactive')
    },
  )

  test('throws without an organization, and for an invalid name', () => {
    expect(refusal(() => update(undefined, {})).code).toBe('request.not_found')
    expect(refusal(() => update(organization, { name: '   ' }))).toMatchObject({
      details: { fields: [{ name: 'name' }], parameter_set: 'organization_update' },
    })
  })
})

describe('limits and capabilities', () => {
  const command = { changeId: 'evt_1', now: 9 }
  const setLimits = (state: object, limits: object) =>
    decideLimits({ ...organization, ...state }, { ...command, ...limits })
  const currentLimits = { secret_limit: 15, publishable_limit: 6, max_key_days: 90 }

  test.each([
    [
      'changes one limit and leaves the other at its default',
      {},
      { secret_limit: 1200 },
      { secret_limit: 1200, publishable_limit: null, max_key_days: null },
    ],
    [
      'resets a limit to the default',
      currentLimits,
      { secret_limit: null },
      { ...currentLimits, secret_limit: null },
    ],
    [
      'accepts a secret limit that allows the most expensive request',
      {},
      { secret_limit: 10, publishable_limit: 1 },
      { secret_limit: 10, publishable_limit: 1, max_key_days: null },
    ],
    [
      'limits the lifetime of keys',
      currentLimits,
      { max_key_days: 30 },
      { ...currentLimits, max_key_days: 30 },
    ],
    [
      'keeps an earlier limit below the minimum',
      { secret_limit: 5 },
      { publishable_limit: 7 },
      { secret_limit: 5, publishable_limit: 7, max_key_days: null },
    ],
  ])('%s', (_, state, limits, data) => {
    expect(events(setLimits(state, limits))).toEqual([
      { type: 'OrganizationLimitsChanged', data: { organization_id, ...data, changed_at: 9 } },
    ])
  })

  test.each([currentLimits, {}])('returns no event if the limits are already %j', (limits) => {
    expect(setLimits(currentLimits, limits)).toEqual([])
  })

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e9 + 1])(
    '%d is no limit',
    (limit) => {
      for (const name of ['secret_limit', 'publishable_limit', 'max_key_days'])
        expect(refusal(() => setLimits({}, { [name]: limit }))).toMatchObject(badField(name))
    },
  )

  test('throws 422 for a secret limit below the cost of the most expensive request', () => {
    expect(refusal(() => setLimits({}, { secret_limit: 9 })).details?.fields).toMatchObject([
      { expected: expect.stringMatching(/^a whole number from 10 to /) },
    ])
  })

  const on = { ...command, capability: 'ip_rotation', enabled: true }
  test('changes a suspended organization, and throws 404 if it does not exist', () => {
    const suspended = { ...organization, status: 'suspended' } as const
    expect(setLimits(suspended, { secret_limit: 15 })).toHaveLength(1)
    expect(decideCapability(suspended, on)).toHaveLength(1)
    expect(refusal(() => decideLimits(undefined, command)).code).toBe('request.not_found')
    expect(refusal(() => decideCapability(undefined, on)).code).toBe('request.not_found')
  })

  test('turns a capability on and off, and returns no event if nothing changes', () => {
    const off = { ...on, enabled: false }
    const having = { ...organization, capabilities: ['ip_rotation'] }
    const data = { organization_id, capability: 'ip_rotation' }
    expect(events(decideCapability(organization, on))).toEqual([
      { type: 'OrganizationCapabilityEnabled', data: { ...data, enabled_at: 9 } },
    ])
    expect(events(decideCapability(having, off))).toEqual([
      { type: 'OrganizationCapabilityDisabled', data: { ...data, disabled_at: 9 } },
    ])
    expect(decideCapability(having, on)).toEqual([])
    expect(decideCapability(organization, off)).toEqual([])
  })

  test('throws 422 for an unknown capability, listing the known ones', () => {
    const unknown = { ...on, capability: 'flying' }
    expect(refusal(() => decideCapability(organization, unknown))).toMatchObject({
      code: 'request.validation_failed',
      details: { allowed_values: ['ip_rotation'], fields: [{ name: 'capability' }] },
    })
  })
})
