import { expect, test } from 'vitest'
import {
  type CreateOrganization,
  completeOrganizationRequest,
  createOrganization,
} from '../../../services/organizations/create-organization.ts'
import { organizationId, refusal } from './given.ts'

const command: CreateOrganization = { organizationId, name: 'Acme', slug: 'acme-2', now: 5 }

test('given a free slug, when created, then the organization exists under a repeatable event id', () => {
  const request = completeOrganizationRequest({ name: '  Acme ', slug: 'acme-2' })
  const [decision, ...rest] = createOrganization({ takenBy: undefined }, { ...command, ...request })
  expect(rest).toEqual([])
  expect(decision).toEqual({
    event: {
      type: 'OrganizationCreated',
      data: { organization_id: organizationId, name: 'Acme', slug: 'acme-2', created_at: 5 },
    },
    meta: { eventId: expect.stringMatching(/^evt_/), time: 5, organizationId, environment: null },
  })
  expect(createOrganization({ takenBy: undefined }, command)[0]?.meta).toEqual(decision?.meta)
})

test('given a taken slug, when created, then it is a conflict', () => {
  const error = refusal(() => createOrganization({ takenBy: 'org_other' }, command))
  expect(error).toMatchObject({ code: 'request.conflict', status: 409 })
})

test('given the organization itself, then the command is a repetition and does nothing', () => {
  expect(createOrganization({ takenBy: organizationId }, command)).toEqual([])
})

test.each(['', 'Acme', 'a_b', 'a b', 'ä', 'a\u0000b', 'x'.repeat(64)])('a slug %j is refused', (slug) => {
  const error = refusal(() => completeOrganizationRequest({ ...command, slug }))
  expect(error).toMatchObject({ code: 'request.validation_failed', details: { fields: [{ name: 'slug' }] } })
})

test.each(['', '   ', 'a\u0000b', 'x'.repeat(121), '\ud800'])('a name %j is refused', (name) => {
  const error = refusal(() => completeOrganizationRequest({ ...command, name }))
  expect(error).toMatchObject({ code: 'request.validation_failed', details: { fields: [{ name: 'name' }] } })
})
