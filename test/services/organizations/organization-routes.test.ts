import { afterAll, expect, test } from 'vitest'
import { startApi } from '../../support/api.ts'

const api = await startApi({ roles: ['api'] })
afterAll(() => api.stop())

test('creates an organization that only its own keys can access', async () => {
  const creator = await api.organization()
  const body = { name: ' New ', slug: 'new-one' }
  const url = '/v1/organizations'
  const created = await api.send({ method: 'POST', url, key: creator.key, body })
  const at = new Date(api.now.ms).toISOString()
  const times = { created_at: at, updated_at: at }
  expect([created.status, created.body.data]).toMatchObject([
    201,
    { name: 'New', slug: 'new-one', status: 'active', ...times },
  ])
  const { data } = created.body
  const organizationUrl = `${url}/${data.id}`
  expect((await api.send({ url: organizationUrl, key: creator.key })).status).toBe(403)
  const { revealedKey: key } = await api.issue({ organizationId: data.id, scopes: ['*'] })
  expect((await api.send({ url: organizationUrl, key })).body.data).toEqual(data)
})

test('returns 409 for a taken slug', async () => {
  const { key, slug } = await api.organization()
  const body = { name: 'Other', slug }
  const second = await api.send({ method: 'POST', url: '/v1/organizations', key, body })
  expect([second.status, second.body.error.code]).toEqual([409, 'request.conflict'])
})

test('renames an organization, in the response and in later reads', async () => {
  const { key, path: url } = await api.organization()
  api.now.ms += 1000
  const { body } = await api.send({ method: 'PATCH', url, key, body: { name: 'Renamed' } })
  const updated_at = new Date(api.now.ms).toISOString()
  expect(body.data).toMatchObject({ name: 'Renamed', status: 'active', updated_at })
  expect((await api.send({ url, key })).body.data).toEqual(body.data)
})

test.each(['suspended', 'deleted'] as const)(
  'once an organization is %s, all its keys are rejected from the next request on',
  async (status) => {
    const { key, path: url, organizationId } = await api.organization()
    const { revealedKey: other } = await api.issue({ organizationId, scopes: ['*'] })
    expect((await api.send({ url, key: other })).status).toBe(200)
    const response = await api.send({ method: 'PATCH', url, key, body: { status } })
    expect([response.status, response.body.data.status]).toEqual([200, status])
    const back = { method: 'PATCH', body: { status: 'active' } } as const
    for (const refused of [key, other])
      for (const request of [{}, back])
        expect(await api.send({ url, key: refused, ...request })).toMatchObject({
          status: 403,
          body: { error: { code: 'auth.organization_inactive' } },
        })
  },
)

test('a request authenticated before the suspension changes nothing after it', async () => {
  const { key, path: url, organizationId } = await api.organization()
  const patch = (status: string) => api.send({ method: 'PATCH', url, key, body: { status } })
  const [suspended] = await Promise.all([patch('suspended'), patch('active')])
  // In either order: the second request was rejected or found nothing to do.
  expect(suspended.status).toBe(200)
  const { rows } = await api.pool.query(
    'select status from read.organizations where organization_id = $1',
    [organizationId],
  )
  expect(rows).toEqual([{ status: 'suspended' }])
})

test.each([
  ['POST', undefined, 'body', 'organization_create'],
  ['PATCH', {}, 'body', 'organization_update'],
] as const)('%s %j is refused for its %s', async (method, body, name, parameter_set) => {
  const { key, path } = await api.organization()
  const url = method === 'POST' ? '/v1/organizations' : path
  const { status, body: response } = await api.send({ method, url, key, body })
  expect([status, response.error.details]).toMatchObject([
    422,
    { parameter_set, fields: [{ name }] },
  ])
})
