import { expect, test } from 'vitest'
import { setCapability } from '../../../services/organizations/set-capability.ts'
import { setLimits } from '../../../services/organizations/set-limits.ts'
import { organization, organizationId, refusal } from './given.ts'

const command = { eventId: 'evt_1', now: 9 }
const events = (decisions: ReturnType<typeof setLimits>) => decisions.map(({ event }) => event)

test('given the default limits, when one is set, then the other stays the default', () => {
  const data = { organization_id: organizationId, secret_limit: 1200, publishable_limit: null, changed_at: 9 }
  expect(events(setLimits(organization, { ...command, secretLimit: 1200 }))).toEqual([
    { type: 'OrganizationLimitsChanged', data },
  ])
})

test('given limits of its own, when they are set to the default, then they are', () => {
  const limited = { ...organization, secret_limit: 15, publishable_limit: 6 }
  expect(events(setLimits(limited, { ...command, secretLimit: null }))).toMatchObject([
    { data: { secret_limit: null, publishable_limit: 6 } },
  ])
})

test('given the same limits, then nothing happens', () => {
  const limited = { ...organization, secret_limit: 15, publishable_limit: 6 }
  expect(setLimits(limited, { ...command, secretLimit: 15, publishableLimit: 6 })).toEqual([])
  expect(setLimits(limited, command)).toEqual([])
})

test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1e9 + 1])('%d is no limit', (limit) => {
  for (const [field, name] of [
    ['secretLimit', 'secret_limit'],
    ['publishableLimit', 'publishable_limit'],
  ] as const) {
    expect(refusal(() => setLimits(organization, { ...command, [field]: limit }))).toMatchObject({
      code: 'request.validation_failed',
      details: { fields: [{ name }] },
    })
  }
})

test('a secret limit allows the most expensive request, a publishable one any', () => {
  const refused = refusal(() => setLimits(organization, { ...command, secretLimit: 9 }))
  expect(refused.details?.fields?.[0]?.expected).toMatch(/^a whole number from 10 to /)
  const least = setLimits(organization, { ...command, secretLimit: 10, publishableLimit: 1 })
  expect(events(least)).toMatchObject([{ data: { secret_limit: 10, publishable_limit: 1 } }])
})

test('a limit from before there was this bound stays when the other is set', () => {
  const limited = { ...organization, secret_limit: 5 }
  expect(events(setLimits(limited, { ...command, publishableLimit: 7 }))).toMatchObject([
    { data: { secret_limit: 5, publishable_limit: 7 } },
  ])
})

test('a suspended organization can get limits and capabilities, one that does not exist cannot', () => {
  const suspended = { ...organization, status: 'suspended' } as const
  const capability = { ...command, capability: 'ip_rotation', enabled: true }
  expect(setLimits(suspended, { ...command, secretLimit: 15 })).toHaveLength(1)
  expect(setCapability(suspended, capability)).toHaveLength(1)
  expect(refusal(() => setLimits(undefined, command)).code).toBe('request.not_found')
  expect(refusal(() => setCapability(undefined, capability)).code).toBe('request.not_found')
})

test('a capability is turned on and off, and nothing happens when it is so already', () => {
  const on = { ...command, capability: 'ip_rotation', enabled: true }
  const off = { ...on, enabled: false }
  const having = { ...organization, capabilities: ['ip_rotation'] }
  const data = { organization_id: organizationId, capability: 'ip_rotation' }
  expect(events(setCapability(organization, on))).toEqual([
    { type: 'OrganizationCapabilityEnabled', data: { ...data, enabled_at: 9 } },
  ])
  expect(events(setCapability(having, off))).toEqual([
    { type: 'OrganizationCapabilityDisabled', data: { ...data, disabled_at: 9 } },
  ])
  expect(setCapability(having, on)).toEqual([])
  expect(setCapability(organization, off)).toEqual([])
})

test('an unknown capability is refused with the known ones', () => {
  const unknown = { ...command, capability: 'flying', enabled: true }
  expect(refusal(() => setCapability(organization, unknown))).toMatchObject({
    code: 'request.validation_failed',
    details: { allowed_values: ['ip_rotation'], fields: [{ name: 'capability' }] },
  })
})
