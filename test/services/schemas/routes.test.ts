import { expect, test } from 'vitest'
import { createCodec } from '../../../infra/event-store/codec.ts'
import ids from '../../../schemas/ids.json' with { type: 'json' }
import { createSchemasApp } from '../../../services/schemas/routes.ts'
import { servedSchemas } from '../../../services/schemas/served.ts'

const codec = createCodec()
const schemas = servedSchemas(codec.schemaId, 'pre.')
const scored = 'pre.tidegate.sessions.v1-tidegate.sessions.SessionScored'

async function get(url: string, { credentials, authorization = '' }: Record<string, string> = {}) {
  const app = createSchemasApp({ schemas, credentials })
  const response = await app.inject({ url, headers: { authorization } })
  expect(response.headers['content-type']).toContain('application/vnd.schemaregistry.v1+json')
  return { status: response.statusCode, body: response.json() }
}

test('every id that a record can carry has a schema, with any subject parameter', async () => {
  for (const [key, id] of Object.entries(ids)) {
    const { status, body } = await get(`/schemas/ids/${id}?subject=another&fetchMaxId=false`)
    expect({ key, status }).toEqual({ key, status: 200 })
    const [, name] = /\/(\w+)\.v\d+$/.exec(key) ?? []
    expect(JSON.parse(body.schema)).toMatchObject({ type: 'record', name })
  }
})

test('serves the ids that a registry assigned', async () => {
  const registryCodec = createCodec(
    Object.fromEntries(Object.keys(ids).map((key, n) => [key, 1000 + n])),
  )
  expect(servedSchemas(registryCodec.schemaId, '').map(({ id }) => id)).toEqual(
    expect.arrayContaining(Object.keys(ids).map((_, n) => 1000 + n)),
  )
})

test('a subject has its versions with their ids', async () => {
  expect((await get('/subjects')).body).toContain(scored)
  const name = encodeURIComponent(scored)
  expect((await get(`/subjects/${name}/versions`)).body).toEqual([1])
  const first = (await get(`/subjects/${name}/versions/1`)).body
  expect(first).toMatchObject({ subject: scored, version: 1, id: ids['sessions/SessionScored.v1'] })
  const latest = (await get(`/subjects/${name}/versions/latest`)).body
  expect(latest).toMatchObject({ version: 1, id: ids['sessions/SessionScored.v1'] })
  expect((await get(`/subjects/${name}/versions/1/schema`)).body).toEqual(JSON.parse(latest.schema))
  expect((await get(`/schemas/ids/${latest.id}/versions`)).body).toEqual([
    { subject: scored, version: 1 },
  ])
  expect((await get(`/schemas/ids/${latest.id}/subjects`)).body).toEqual([scored])
  expect((await get(`/schemas/ids/${latest.id}/schema`)).body).toEqual(JSON.parse(latest.schema))
})

test.each([
  ['/schemas/ids/999999', 404, 40403],
  ['/schemas/ids/one', 404, 40403],
  ['/subjects/nobody/versions', 404, 40401],
  ['/subjects/nobody/versions/1', 404, 40401],
  [`/subjects/${scored}/versions/9`, 404, 40402],
  [`/subjects/${scored}/versions/0`, 422, 42202],
  ['/associations/resources/-/topic?resourceType=topic', 404, 404],
  ['/v1/sessions', 404, 404],
])('GET %s returns the error of a registry', async (url, status, error_code) => {
  expect(await get(url)).toMatchObject({
    status,
    body: { error_code, message: expect.any(String) },
  })
})

test('reports that it is read-only, and rejects writes', async () => {
  expect((await get('/mode')).body).toEqual({ mode: 'READONLY' })
  expect((await get('/config')).body).toEqual({ compatibilityLevel: 'FULL_TRANSITIVE' })
  const app = createSchemasApp({ schemas, credentials: undefined })
  for (const method of ['POST', 'PUT', 'DELETE'] as const) {
    const response = await app.inject({
      method,
      url: `/subjects/${scored}/versions`,
      payload: { schema: '{}' },
    })
    expect({ method, status: response.statusCode, code: response.json().error_code }).toEqual({
      method,
      status: 405,
      code: 405,
    })
  }
})

test('requires user and password if they are set', async () => {
  const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`
  for (const authorization of [
    '',
    'Basic',
    basic('reader'),
    basic('reader:wrong'),
    'Bearer reader:se:cret',
  ])
    expect(await get('/subjects', { credentials: 'reader:se:cret', authorization })).toMatchObject({
      status: 401,
      body: { error_code: 401 },
    })
  for (const url of ['/', '/nothing', '/schemas/ids/999999'])
    expect((await get(url, { credentials: 'reader:se:cret' })).status).toBe(401)
  const authorization = basic('reader:se:cret')
  expect((await get('/subjects', { credentials: 'reader:se:cret', authorization })).status).toBe(
    200,
  )
})
