import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { bearer } from '../authorization/credential.ts'
import { sessionId, startWorld, visitorId, type World } from '../authorization/world.ts'

const one = z.object({ data: z.looseObject({ id: z.string() }) })
const page = z.object({
  data: z.array(z.looseObject({ id: z.string() })),
  pagination: z.object({ has_more: z.boolean(), next_cursor: z.string().optional() }),
})
const key = z.object({
  data: z.looseObject({ id: z.string(), environment: z.string(), revealed_key: z.string() }),
})

let world: World
let organizationId: string
let headers: Record<string, string>

beforeAll(async () => {
  world = await startWorld()
  organizationId = await world.organization('smoke')
  await world.score(organizationId, 'live')
  headers = bearer(
    (await world.issue({ organizationId, type: 'secret', scopes: ['*'] })).revealedKey,
  )
})
afterAll(() => world.stop())

async function ask(method: 'GET' | 'POST' | 'PATCH' | 'DELETE', url: string, payload?: object) {
  const response = await world.app.inject({ method, url, headers, ...(payload && { payload }) })
  expect([url, response.statusCode]).toEqual([url, method === 'POST' ? 201 : 200])
  return response.json()
}

async function listed(url: string, id: string) {
  for (let cursor = ''; ; ) {
    const { data, pagination } = page.parse(await ask('GET', `${url}?limit=100${cursor}`))
    const found = data.find((item) => item.id === id)
    if (found || !pagination.next_cursor) return found
    cursor = `&cursor=${pagination.next_cursor}`
  }
}

// In the order of the live suites that are published with the server SDKs for Node and Python.
test('what the published live suites do with one live key', async () => {
  const first = async (url: string) => page.parse(await ask('GET', `${url}?limit=1`)).data[0]?.id
  expect(await first('/v1/sessions')).toBe(sessionId)
  expect(one.parse(await ask('GET', `/v1/sessions/${sessionId}`)).data.id).toBe(sessionId)
  expect(await first('/v1/fingerprints')).toBe(visitorId)
  expect(one.parse(await ask('GET', `/v1/fingerprints/${visitorId}`)).data.id).toBe(visitorId)
  const own = `/v1/organizations/${organizationId}`
  const { data: organization } = one.parse(await ask('GET', own))
  const { name, status } = organization
  expect(one.parse(await ask('PATCH', own, { name, status })).data).toMatchObject({ name, status })
  const keys = `${own}/api-keys`
  const { data: made } = key.parse(
    await ask('POST', keys, { name: 'sdk-smoke', environment: 'test' }),
  )
  expect([made.environment, made.revealed_key.slice(0, 8)]).toEqual(['test', 'sk_test_'])
  expect(await listed(keys, made.id)).toMatchObject({ id: made.id, environment: 'test' })
  const { data: rotated } = key.parse(await ask('POST', `${keys}/${made.id}/rotations`))
  expect(rotated.revealed_key).toMatch(/^sk_test_/)
  for (const { id } of [rotated, made])
    expect(one.parse(await ask('DELETE', `${keys}/${id}`)).data).toMatchObject({
      id,
      status: 'revoked',
    })
})
