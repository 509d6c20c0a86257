import { afterAll, beforeAll, expect, test } from 'vitest'
import { single } from '../../../infra/http/schemas.ts'
import { noDataPolicy } from '../../../services/organizations/decide-data-policy.ts'
import { organizationSchema } from '../../../services/organizations/schemas.ts'
import { publishedSchema } from '../readback/contract.ts'
import { type Organizations, startOrganizations } from './support.ts'

let world: Organizations
const published = publishedSchema('OrganizationResponse')

beforeAll(async () => {
  world = await startOrganizations()
})
afterAll(() => world.stop())

test('an organization is created; the key that made it has no access to it, one of its own has', async () => {
  const creator = await world.organization()
  const created = await world.send({
    method: 'POST',
    url: '/v1/organizations',
    key: creator.key,
    body: { name: ' New ', slug: 'new-one' },
  })
  expect(created.status).toBe(201)
  const { data_policy, ...publishedMembers } = created.body.data
  expect(published.safeParse({ ...created.body, data: publishedMembers }).error).toBeUndefined()
  expect(data_policy).toEqual({ ...noDataPolicy, changed_at: null })
  expect(single(organizationSchema).safeParse(created.body).error).toBeUndefined()
  const { data } = created.body
  const at = new Date(world.now.ms).toISOString()
  expect(data).toEqual({
    object: 'organization',
    id: expect.stringMatching(/^org_[0-9a-hjkmnp-tv-z]{26}$/),
    name: 'New',
    slug: 'new-one',
    status: 'active',
    created_at: at,
    updated_at: at,
    data_policy,
  })
  const url = `/v1/organizations/${data.id}`
  const denied = await world.send({ url, key: creator.key })
  expect([denied.status, denied.body.error.code]).toEqual([403, 'auth.organization_access_denied'])
  const { revealedKey: key } = await world.issue({
    organizationId: data.id,
    type: 'secret',
    scopes: ['*'],
  })
  expect((await world.send({ url, key })).body.data).toEqual(data)
})

test('a slug that is taken is a conflict', async () => {
  const { key } = await world.organization('taken')
  const body = { name: 'Other', slug: 'taken' }
  const second = await world.send({ method: 'POST', url: '/v1/organizations', key, body })
  expect([second.status, second.body.error.code]).toEqual([409, 'request.conflict'])
})

test('an organization is renamed; its own answer and what is read later show it', async () => {
  const { key, path: url } = await world.organization()
  world.now.ms += 1000
  const answer = await world.send({ method: 'PATCH', url, key, body: { name: 'Renamed' } })
  expect(answer.status).toBe(200)
  expect(answer.body.data).toMatchObject({
    name: 'Renamed',
    status: 'active',
    updated_at: new Date(world.now.ms).toISOString(),
  })
  expect((await world.send({ url, key })).body.data).toEqual(answer.body.data)
})

test.each(['suspended', 'deleted'] as const)(
  'once it is %s, the key that made it so and every other is refused from the next request on',
  async (status) => {
    const { key, path: url, organizationId } = await world.organization()
    const { revealedKey: other } = await world.issue({
      organizationId,
      type: 'secret',
      scopes: ['*'],
    })
    expect((await world.send({ url, key: other })).status).toBe(200)
    const answer = await world.send({ method: 'PATCH', url, key, body: { status } })
    expect([answer.status, answer.body.data.status]).toEqual([200, status])
    for (const refused of [key, other]) {
      for (const request of [
        { url },
        { url, method: 'PATCH', body: { status: 'active' } },
      ] as const) {
        const later = await world.send({ ...request, key: refused })
        expect([later.status, later.body.error.code]).toEqual([403, 'auth.organization_inactive'])
      }
    }
  },
)

test('a request that was verified before the suspension changes nothing after it', async () => {
  const { key, path: url, organizationId } = await world.organization()
  const answers = await Promise.all([
    world.send({ method: 'PATCH', url, key, body: { status: 'suspended' } }),
    world.send({ method: 'PATCH', url, key, body: { status: 'active' } }),
  ])
  // Whichever came first: the second one was refused, or it found nothing to do.
  expect(answers[0].status).toBe(200)
  const { rows } = await world.pool.query(
    'select status from read.organizations where organization_id = $1',
    [organizationId],
  )
  expect(rows).toEqual([{ status: 'suspended' }])
})

const slugOf = { name: 'Acme', slug: 'acme' }
test.each([
  ['POST', undefined, 'body', 'organization_create'],
  ['POST', { slug: 'acme' }, 'name', 'organization_create'],
  ['POST', { ...slugOf, name: ' ' }, 'name', 'organization_create'],
  ['POST', { ...slugOf, name: 'x'.repeat(121) }, 'name', 'organization_create'],
  ['POST', { ...slugOf, name: null }, 'name', 'organization_create'],
  ['POST', { ...slugOf, slug: 'Acme' }, 'slug', 'organization_create'],
  ['POST', { ...slugOf, slug: 'a\u0000b' }, 'slug', 'organization_create'],
  ['POST', { ...slugOf, slug: '' }, 'slug', 'organization_create'],
  ['POST', { ...slugOf, slug: 'x'.repeat(64) }, 'slug', 'organization_create'],
  ['POST', { ...slugOf, status: 'active' }, 'status', 'organization_create'],
  ['PATCH', {}, 'body', 'organization_update'],
  ['PATCH', { slug: 'other' }, 'slug', 'organization_update'],
  ['PATCH', { name: '' }, 'name', 'organization_update'],
  ['PATCH', { status: 'gone' }, 'status', 'organization_update'],
] as const)('%s %j is refused for its %s', async (method, body, name, parameter_set) => {
  const { key, path } = await world.organization()
  const url = method === 'POST' ? '/v1/organizations' : path
  const { status, body: answer } = await world.send({ method, url, key, body })
  expect(status).toBe(422)
  expect(answer.error).toMatchObject({
    code: 'request.validation_failed',
    details: { parameter_set, fields: [{ name }] },
  })
  if (name === 'slug' && method === 'PATCH')
    expect(answer.error.details.fields[0].issue).toBe('not_allowed')
})

test('a repeated creation with the same Idempotency-Key makes one organization', async () => {
  const { key } = await world.organization()
  const headers = { 'idempotency-key': 'once' }
  const create = { method: 'POST', url: '/v1/organizations', key, headers } as const
  const first = await world.send({ ...create, body: { name: 'Once', slug: 'once' } })
  const second = await world.send({ ...create, body: { name: 'Once', slug: 'once' } })
  expect([first.status, second.status]).toEqual([201, 201])
  expect(second.body).toEqual(first.body)
  expect(second.headers['idempotent-replayed']).toBe('true')
})
