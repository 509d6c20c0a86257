import { expect, test } from 'vitest'
import { updateOrganization } from '../../../services/organizations/update-organization.ts'
import { organization, organizationId, refusal } from './given.ts'

const command = { by: 'key', changeId: 'evt_change', now: 9 } as const
const events = (...decisions: ReturnType<typeof updateOrganization>) => decisions.map(({ event }) => event)

test('given an active organization, when it is renamed and suspended, then it is both', () => {
  const decisions = updateOrganization(organization, { ...command, name: ' New ', status: 'suspended' })
  expect(events(...decisions)).toEqual([
    { type: 'OrganizationRenamed', data: { organization_id: organizationId, name: 'New', renamed_at: 9 } },
    { type: 'OrganizationSuspended', data: { organization_id: organizationId, suspended_at: 9 } },
  ])
  expect(decisions[0]?.meta).toMatchObject({ time: 9, organizationId, environment: null })
})

test('each event of one change has an id of its own, the same when the change is repeated', () => {
  const ids = (changeId: string) =>
    updateOrganization(organization, { ...command, changeId, name: 'New', status: 'deleted' }).map(
      ({ meta }) => meta.eventId,
    )
  expect(ids('evt_a')).toEqual(ids('evt_a'))
  expect(new Set([...ids('evt_a'), ...ids('evt_b')]).size).toBe(4)
})

test('given the same name and status, then nothing happens', () => {
  expect(updateOrganization(organization, { ...command, name: ' Acme ', status: 'active' })).toEqual([])
  expect(updateOrganization(organization, command)).toEqual([])
})

test.each([
  ['suspended', 'deleted', 'OrganizationDeleted'],
  ['suspended', 'active', 'OrganizationReactivated'],
  ['deleted', 'active', 'OrganizationReactivated'],
  ['deleted', 'suspended', 'OrganizationSuspended'],
] as const)('given a %s organization, the operator can make it %s, its own key cannot', (from, to, type) => {
  const state = { ...organization, status: from }
  expect(events(...updateOrganization(state, { ...command, by: 'operator', status: to }))).toMatchObject([
    { type },
  ])
  const refused = refusal(() => updateOrganization(state, { ...command, status: to }))
  expect(refused.code).toBe('auth.organization_inactive')
})

test('given no organization, or a bad name, then it is refused', () => {
  expect(refusal(() => updateOrganization(undefined, command)).code).toBe('request.not_found')
  for (const name of ['', '   ', 'x'.repeat(121), 'a\u0000b', '\ud800']) {
    expect(refusal(() => updateOrganization(organization, { ...command, name }))).toMatchObject({
      code: 'request.validation_failed',
      details: { fields: [{ name: 'name' }], parameter_set: 'organization_update' },
    })
  }
})
