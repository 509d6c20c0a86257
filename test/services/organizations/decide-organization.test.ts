import { describe, expect, test } from 'vitest'
import { completeOrganizationRequest } from '../../../services/organizations/checked-input.ts'
import {
  type CreateOrganization,
  decideCapability,
  decideLimits,
  decideOrganizationCreation,
  decideOrganizationUpdate,
} from '../../../services/organizations/decide-organization.ts'
import { organization, organizationId, refusal } from './given.ts'

describe('an organization is created', () => {
  const command: CreateOrganization = { organizationId, name: 'Acme', slug: 'acme-2', now: 5 }

  test('given a free slug, when created, then the organization exists under a repeatable event id', () => {
    const request = completeOrganizationRequest({ name: '  Acme ', slug: 'acme-2' })
    const [decision, ...rest] = decideOrganizationCreation(
      { takenBy: undefined },
      { ...command, ...request },
    )
    expect(rest).toEqual([])
    expect(decision).toEqual({
      event: {
        type: 'OrganizationCreated',
        data: { organization_id: organizationId, name: 'Acme', slug: 'acme-2', created_at: 5 },
      },
      meta: { eventId: expect.stringMatching(/^evt_/), time: 5, organizationId, environment: null },
    })
    expect(decideOrganizationCreation({ takenBy: undefined }, command)[0]?.meta).toEqual(
      decision?.meta,
    )
  })

  test('given a taken slug, when created, then it is a conflict', () => {
    const error = refusal(() => decideOrganizationCreation({ takenBy: 'org_other' }, command))
    expect(error).toMatchObject({ code: 'request.conflict', status: 409 })
  })

  test('given the organization itself, then the command is a repetition and does nothing', () => {
    expect(decideOrganizationCreation({ takenBy: organizationId }, command)).toEqual([])
  })

  test.each(['', 'Acme', 'a_b', 'a b', 'ä', 'a\u0000b', 'x'.repeat(64)])(
    'a slug %j is refused',
    (slug) => {
      const error = refusal(() => completeOrganizationRequest({ ...command, slug }))
      expect(error).toMatchObject({
        code: 'request.validation_failed',
        details: { fields: [{ name: 'slug' }] },
      })
    },
  )

  test.each(['', '   ', 'a\u0000b', 'x'.repeat(121), '\ud800'])('a name %j is refused', (name) => {
    const error = refusal(() => completeOrganizationRequest({ ...command, name }))
    expect(error).toMatchObject({
      code: 'request.validation_failed',
      details: { fields: [{ name: 'name' }] },
    })
  })
})

describe('an organization is changed', () => {
  const command = { by: 'key', changeId: 'evt_change', now: 9 } as const
  const events = (...decisions: ReturnType<typeof decideOrganizationUpdate>) =>
    decisions.map(({ event }) => event)

  test('given an active organization, when it is renamed and suspended, then it is both', () => {
    const decisions = decideOrganizationUpdate(organization, {
      ...command,
      name: ' New ',
      status: 'suspended',
    })
    expect(events(...decisions)).toEqual([
      {
        type: 'OrganizationRenamed',
        data: { organization_id: organizationId, name: 'New', renamed_at: 9 },
      },
      { type: 'OrganizationSuspended', data: { organization_id: organizationId, suspended_at: 9 } },
    ])
    expect(decisions[0]?.meta).toMatchObject({ time: 9, organizationId, environment: null })
  })

  test('each event of one change has an id of its own, the same when the change is repeated', () => {
    const ids = (changeId: string) =>
      decideOrganizationUpdate(organization, {
        ...command,
        changeId,
        name: 'New',
        status: 'deleted',
      }).map(({ meta }) => meta.eventId)
    expect(ids('evt_a')).toEqual(ids('evt_a'))
    expect(new Set([...ids('evt_a'), ...ids('evt_b')]).size).toBe(4)
  })

  test('given the same name and status, then nothing happens', () => {
    expect(
      decideOrganizationUpdate(organization, { ...command, name: ' Acme ', status: 'active' }),
    ).toEqual([])
    expect(decideOrganizationUpdate(organization, command)).toEqual([])
  })

  test.each([
    ['suspended', 'deleted', 'OrganizationDeleted'],
    ['suspended', 'active', 'OrganizationReactivated'],
    ['deleted', 'active', 'OrganizationReactivated'],
    ['deleted', 'suspended', 'OrganizationSuspended'],
  ] as const)(
    'given a %s organization, the operator can make it %s, its own key cannot',
    (from, to, type) => {
      const state = { ...organization, status: from }
      expect(
        events(...decideOrganizationUpdate(state, { ...command, by: 'operator', status: to })),
      ).toMatchObject([{ type }])
      const refused = refusal(() => decideOrganizationUpdate(state, { ...command, status: to }))
      expect(refused.code).toBe('auth.organization_inactive')
    },
  )

  test('given no organization, or a bad name, then it is refused', () => {
    expect(refusal(() => decideOrganizationUpdate(undefined, command)).code).toBe(
      'request.not_found',
    )
    for (const name of ['', '   ', 'x'.repeat(121), 'a\u0000b', '\ud800']) {
      expect(
        refusal(() => decideOrganizationUpdate(organization, { ...command, name })),
      ).toMatchObject({
        code: 'request.validation_failed',
        details: { fields: [{ name: 'name' }], parameter_set: 'organization_update' },
      })
    }
  })
})

describe('the operator sets limits and capabilities', () => {
  const command = { changeId: 'evt_1', now: 9 }
  const events = (decisions: ReturnType<typeof decideLimits>) => decisions.map(({ event }) => event)

  test('given the default limits, when one is set, then the other stays the default', () => {
    const data = {
      organization_id: organizationId,
      secret_limit: 1200,
      publishable_limit: null,
      changed_at: 9,
    }
    expect(events(decideLimits(organization, { ...command, secret_limit: 1200 }))).toEqual([
      { type: 'OrganizationLimitsChanged', data },
    ])
  })

  test('given limits of its own, when they are set to the default, then they are', () => {
    const limited = { ...organization, secret_limit: 15, publishable_limit: 6 }
    expect(events(decideLimits(limited, { ...command, secret_limit: null }))).toMatchObject([
      { data: { secret_limit: null, publishable_limit: 6 } },
    ])
  })

  test('given the same limits, then nothing happens', () => {
    const limited = { ...organization, secret_limit: 15, publishable_limit: 6 }
    expect(decideLimits(limited, { ...command, secret_limit: 15, publishable_limit: 6 })).toEqual(
      [],
    )
    expect(decideLimits(limited, command)).toEqual([])
  })

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e9 + 1])(
    '%d is no limit',
    (limit) => {
      for (const [field, name] of [
        ['secret_limit', 'secret_limit'],
        ['publishable_limit', 'publishable_limit'],
      ] as const) {
        expect(
          refusal(() => decideLimits(organization, { ...command, [field]: limit })),
        ).toMatchObject({
          code: 'request.validation_failed',
          details: { fields: [{ name }] },
        })
      }
    },
  )

  test('a secret limit allows the most expensive request, a publishable one any', () => {
    const refused = refusal(() => decideLimits(organization, { ...command, secret_limit: 9 }))
    expect(refused.details?.fields?.[0]?.expected).toMatch(/^a whole number from 10 to /)
    const least = decideLimits(organization, { ...command, secret_limit: 10, publishable_limit: 1 })
    expect(events(least)).toMatchObject([{ data: { secret_limit: 10, publishable_limit: 1 } }])
  })

  test('a limit from before there was this bound stays when the other is set', () => {
    const limited = { ...organization, secret_limit: 5 }
    expect(events(decideLimits(limited, { ...command, publishable_limit: 7 }))).toMatchObject([
      { data: { secret_limit: 5, publishable_limit: 7 } },
    ])
  })

  test('a suspended organization can get limits and capabilities, one that does not exist cannot', () => {
    const suspended = { ...organization, status: 'suspended' } as const
    const capability = { ...command, capability: 'ip_rotation', enabled: true }
    expect(decideLimits(suspended, { ...command, secret_limit: 15 })).toHaveLength(1)
    expect(decideCapability(suspended, capability)).toHaveLength(1)
    expect(refusal(() => decideLimits(undefined, command)).code).toBe('request.not_found')
    expect(refusal(() => decideCapability(undefined, capability)).code).toBe('request.not_found')
  })

  test('a capability is turned on and off, and nothing happens when it is so already', () => {
    const on = { ...command, capability: 'ip_rotation', enabled: true }
    const off = { ...on, enabled: false }
    const having = { ...organization, capabilities: ['ip_rotation'] }
    const data = { organization_id: organizationId, capability: 'ip_rotation' }
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
    const unknown = { ...command, capability: 'flying', enabled: true }
    expect(refusal(() => decideCapability(organization, unknown))).toMatchObject({
      code: 'request.validation_failed',
      details: { allowed_values: ['ip_rotation'], fields: [{ name: 'capability' }] },
    })
  })
})
