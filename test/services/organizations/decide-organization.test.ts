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
import { organization, organizationId, refusal } from './given.ts'

const organization_id = organizationId
const events = (decisions: ReturnType<typeof decideLimits>) => decisions.map(({ event }) => event)
const badField = (name: string) => ({
  code: 'request.validation_failed',
  details: { fields: [{ name }] },
})

describe('an organization is created', () => {
  const command: CreateOrganization = { organizationId, name: 'Acme', slug: 'acme-2', now: 5 }

  test('given a free slug, then the organization exists under a repeatable event id', () => {
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

  test('given a taken slug, then it is a conflict, and for a repetition nothing happens', () => {
    const error = refusal(() => decideOrganizationCreation({ takenBy: 'org_other' }, command))
    expect(error).toMatchObject({ code: 'request.conflict', status: 409 })
    expect(decideOrganizationCreation({ takenBy: organizationId }, command)).toEqual([])
  })

  test.each([
    ...['', 'Acme', 'a_b', 'a b', 'ä', 'a\u0000b', 'x'.repeat(64)].map((slug) => ({ slug })),
    ...['', '   ', 'a\u0000b', 'x'.repeat(121), '\ud800'].map((name) => ({ name })),
  ])('%j is refused', (changes) => {
    const error = refusal(() => completeOrganizationRequest({ ...command, ...changes }))
    expect(error).toMatchObject(badField(Object.keys(changes).join()))
  })
})

describe('an organization is changed', () => {
  const update = (state: OrganizationRow | undefined, changes: object) =>
    decideOrganizationUpdate(state, { by: 'key', changeId: 'evt_change', now: 9, ...changes })

  test('given an active organization, when it is renamed and suspended, then it is both', () => {
    const decisions = update(organization, { name: ' New ', status: 'suspended' })
    expect(events(decisions)).toEqual([
      { type: 'OrganizationRenamed', data: { organization_id, name: 'New', renamed_at: 9 } },
      { type: 'OrganizationSuspended', data: { organization_id, suspended_at: 9 } },
    ])
    expect(decisions[0]?.meta).toMatchObject({ time: 9, organizationId, environment: null })
  })

  test('each event of one change has an id of its own, the same when the change is repeated', () => {
    const ids = (changeId: string) =>
      update(organization, { changeId, name: 'New', status: 'deleted' }).map(
        ({ meta }) => meta.eventId,
      )
    expect(ids('evt_a')).toEqual(ids('evt_a'))
    expect(new Set([...ids('evt_a'), ...ids('evt_b')]).size).toBe(4)
  })

  test.each([{ name: ' Acme ', status: 'active' }, {}])(
    'given %j already, then nothing happens',
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
    'given a %s organization, the operator can make it %s, its own key cannot',
    (from, status, type) => {
      const state = { ...organization, status: from }
      expect(events(update(state, { by: 'operator', status }))).toMatchObject([{ type }])
      expect(refusal(() => update(state, { status })).code).toBe('auth.organization_inactive')
    },
  )

  test('given no organization, or a bad name, then it is refused', () => {
    expect(refusal(() => update(undefined, {})).code).toBe('request.not_found')
    expect(refusal(() => update(organization, { name: '   ' }))).toMatchObject({
      details: { fields: [{ name: 'name' }], parameter_set: 'organization_update' },
    })
  })
})

describe('the operator sets limits and capabilities', () => {
  const command = { changeId: 'evt_1', now: 9 }
  const setLimits = (state: object, limits: object) =>
    decideLimits({ ...organization, ...state }, { ...command, ...limits })
  const own = { secret_limit: 15, publishable_limit: 6 }

  test.each([
    [
      'the other stays the default',
      {},
      { secret_limit: 1200 },
      { secret_limit: 1200, publishable_limit: null },
    ],
    ['one may be set to the default', own, { secret_limit: null }, { ...own, secret_limit: null }],
    [
      'a secret limit allows the most expensive request',
      {},
      { secret_limit: 10, publishable_limit: 1 },
      { secret_limit: 10, publishable_limit: 1 },
    ],
    [
      'a limit from before this bound stays',
      { secret_limit: 5 },
      { publishable_limit: 7 },
      { secret_limit: 5, publishable_limit: 7 },
    ],
  ])('%s', (_, state, limits, data) => {
    expect(events(setLimits(state, limits))).toEqual([
      { type: 'OrganizationLimitsChanged', data: { organization_id, ...data, changed_at: 9 } },
    ])
  })

  test.each([own, {}])('given the limits %j, then nothing happens', (limits) => {
    expect(setLimits(own, limits)).toEqual([])
  })

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e9 + 1])(
    '%d is no limit',
    (limit) => {
      for (const name of ['secret_limit', 'publishable_limit'])
        expect(refusal(() => setLimits({}, { [name]: limit }))).toMatchObject(badField(name))
    },
  )

  test('a secret limit below the most expensive request is refused', () => {
    expect(refusal(() => setLimits({}, { secret_limit: 9 })).details?.fields).toMatchObject([
      { expected: expect.stringMatching(/^a whole number from 10 to /) },
    ])
  })

  const on = { ...command, capability: 'ip_rotation', enabled: true }
  test('a suspended organization can get limits and capabilities, one that does not exist cannot', () => {
    const suspended = { ...organization, status: 'suspended' } as const
    expect(setLimits(suspended, { secret_limit: 15 })).toHaveLength(1)
    expect(decideCapability(suspended, on)).toHaveLength(1)
    expect(refusal(() => decideLimits(undefined, command)).code).toBe('request.not_found')
    expect(refusal(() => decideCapability(undefined, on)).code).toBe('request.not_found')
  })

  test('a capability is turned on and off, and nothing happens when it is so already', () => {
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

  test('an unknown capability is refused with the known ones', () => {
    const unknown = { ...on, capability: 'flying' }
    expect(refusal(() => decideCapability(organization, unknown))).toMatchObject({
      code: 'request.validation_failed',
      details: { allowed_values: ['ip_rotation'], fields: [{ name: 'capability' }] },
    })
  })
})
