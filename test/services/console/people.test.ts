import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { startWorld } from '../../authorization/world.ts'
import { loggedInBy, type Person, person } from '../../support/console.ts'

const minute = 60_000
const world = await startWorld()
afterAll(() => world.stop())

let organizationId: string
let admin: Person
let organizations = 0

beforeEach(async () => {
  world.now.ms += minute
  organizationId = await world.organization(`people-${organizations++}`)
  admin = await person(world.app, world.deps, { organizationId, role: 'admin' })
})

const signIn = (link: Partial<Parameters<typeof person>[2]> = {}) =>
  person(world.app, world.deps, { organizationId, role: 'viewer', ...link })

async function send(
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  { headers }: Person,
  body?: object,
) {
  const url = `/console/api/${path}`
  const response = await world.app.inject({ method, url, headers, ...(body && { body }) })
  return { status: response.statusCode, body: response.json() }
}
const idsFor = async (caller: Person): Promise<string[]> =>
  (await send('GET', 'people', caller)).body.data.map(({ id }: { id: string }) => id)
const statusOf = async (caller: Person) => (await send('GET', 'session', caller)).status

const link = { name: 'Zoë', role: 'viewer', environments: ['live'] }

describe('open sessions', () => {
  test('are listed with name, role and times, the last used first', async () => {
    world.now.ms += minute
    const viewer = await signIn({ name: 'Ben' })
    const { body } = await send('GET', 'people', admin)
    const at = new Date(world.now.ms).toISOString()
    expect(body.data).toMatchObject([
      { id: admin.id, name: 'Ann', role: 'admin', is_current: true },
      { id: viewer.id, name: 'Ben', role: 'viewer', created_at: at, is_current: false },
    ])
  })

  test('include those of a key, and end at once', async () => {
    const { revealedKey: secret_key } = await world.issue({
      organizationId,
      type: 'secret',
      scopes: ['*'],
    })
    const byKey = await loggedInBy(world.app, { secret_key })
    expect(await idsFor(admin)).toContain(byKey.id)
    expect((await send('DELETE', `people/${byKey.id}`, admin)).status).toBe(200)
    expect([await statusOf(byKey), await statusOf(admin)]).toEqual([401, 200])
    expect(await idsFor(admin)).toEqual([admin.id])
    expect((await send('DELETE', `people/${byKey.id}`, admin)).status).toBe(404)
  })

  test('are not listed once they have expired', async () => {
    const viewer = await signIn()
    for (let hours = 0; hours < 12; hours += 6) {
      world.now.ms += 6 * 60 * minute
      expect(await statusOf(admin)).toBe(200)
    }
    expect(await statusOf(viewer)).toBe(401)
    expect(await idsFor(admin)).toEqual([admin.id])
  })

  test('of other organizations, or environments that the admin lacks, are out of reach', async () => {
    const elsewhere = await signIn({
      organizationId: await world.organization(`x-${organizations}`),
    })
    const both = await signIn()
    const inTest = await signIn({ environments: ['test'] })
    const testAdmin = await signIn({ role: 'admin', environments: ['test'] })
    const reached = await idsFor(testAdmin)
    expect(new Set(reached)).toEqual(new Set([testAdmin.id, inTest.id]))
    expect(await idsFor(admin)).not.toContain(elsewhere.id)
    for (const [id, caller] of [
      [both.id, testAdmin],
      [elsewhere.id, admin],
    ] as const)
      expect((await send('DELETE', `people/${id}`, caller)).status).toBe(404)
    expect([await statusOf(both), await statusOf(elsewhere)]).toEqual([200, 200])
  })
})

describe('a login link', () => {
  test('signs in with its name, role and environments, once', async () => {
    const { status, body } = await send('POST', 'login-links', admin, link)
    expect(status).toBe(200)
    const { path, expires_at } = body.data
    expect(Date.parse(expires_at)).toBe(world.now.ms + 5 * minute)
    const code = path.slice('/console#code='.length)
    const guest = await loggedInBy(world.app, { code })
    const { data } = (await send('GET', 'session', guest)).body
    expect(data).toMatchObject(link)
    expect(data.organization.id).toBe(organizationId)
  })

  test.each([
    [{ name: ' ' }, 'name'],
    [{ name: 'x'.repeat(121) }, 'name'],
    [{ role: 'owner' }, 'role'],
    [{ environments: [] }, 'environments'],
  ])('with %o is rejected', async (wrong, field) => {
    const { status, body } = await send('POST', 'login-links', admin, { ...link, ...wrong })
    expect([status, body.error.details.fields[0].name]).toEqual([422, field])
  })

  test('gives no access to environments that the admin lacks', async () => {
    const testAdmin = await signIn({ role: 'admin', environments: ['test'] })
    expect((await send('POST', 'login-links', testAdmin, link)).status).toBe(403)
  })
})

test('only administrators see people, end sessions and create links', async () => {
  const { revealedKey: secret_key } = await world.issue({
    organizationId,
    type: 'secret',
    scopes: ['*'],
  })
  const others = [
    await signIn(),
    await signIn({ role: 'analyst' }),
    await loggedInBy(world.app, { secret_key }),
  ]
  for (const other of others) {
    expect((await send('GET', 'people', other)).status).toBe(403)
    expect((await send('DELETE', `people/${admin.id}`, other)).status).toBe(403)
    expect((await send('POST', 'login-links', other, link)).status).toBe(403)
  }
  const withoutCsrf = { ...admin, headers: { ...admin.headers, 'x-csrf-token': '' } }
  expect((await send('POST', 'login-links', withoutCsrf, link)).status).toBe(403)
  const nobody = { ...admin, headers: { ...admin.headers, cookie: '' } }
  expect((await send('GET', 'people', nobody)).status).toBe(401)
})
