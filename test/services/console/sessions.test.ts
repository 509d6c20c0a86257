import { randomBytes } from 'node:crypto'
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { generateToken, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { purgeConsoleSessions, revokeOrphaned } from '../../../services/console/store.ts'
import {
  changeOrganization,
  revokeApiKey,
  rotateApiKey,
} from '../../../services/organizations/commands.ts'
import { decideOrganizationUpdate } from '../../../services/organizations/decide-organization.ts'
import { startWorld } from '../../authorization/world.ts'
import {
  here,
  loggedInBy,
  loginCode,
  type Person,
  person,
  postLogin,
} from '../../support/console.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

let organizationId: string
let admin: Person
let organizations = 0

const world = await startWorld({ trustedProxies: ['10.0.0.1'] })
afterAll(() => world.stop())
beforeEach(async () => {
  // Refills the budgets that the previous test spent.
  world.now.ms += minute
  organizationId = await world.organization(`shop-${organizations++}`)
  admin = await person(world.app, world.deps, { organizationId, role: 'admin' })
})

const get = (url: string, { headers }: Person, more: Record<string, string> = {}) =>
  world.app.inject({ url, headers: { ...headers, ...more } })
const post = (path: string, { headers }: Person) =>
  world.app.inject({ method: 'POST', url: `/console/api/${path}`, headers })

const viewer = (link: { name?: string; organizationId?: string } = {}) =>
  person(world.app, world.deps, { organizationId, role: 'viewer', ...link })

const noLogin = [401, 'console.login_required']
async function statusOf(of: Person): Promise<[number, string | undefined]> {
  const response = await get('/console/api/session', of)
  return [response.statusCode, response.json().error?.code]
}
const loggedIn = [200, undefined]

const failedLogin = async (body: object) => {
  const response = await postLogin(world.app, body)
  return [response.statusCode, response.json().error?.code]
}

async function setStatus(status: 'active' | 'suspended'): Promise<void> {
  await changeOrganization(world.deps, organizationId, (organization, change) =>
    decideOrganizationUpdate(organization, { status, ...change, by: 'operator' }),
  )
}

describe('the code of a login link', () => {
  const link = () =>
    ({ organizationId, role: 'analyst', environments: ['test'], name: 'Zoë' }) as const

  test('creates a session with the name and permissions of the link', async () => {
    const response = await postLogin(world.app, { code: await loginCode(world.deps, link()) })
    expect(response.statusCode).toBe(200)
    const { data } = response.json()
    expect(data).toMatchObject({ object: 'console_session', name: 'Zoë', role: 'analyst' })
    expect(data).toMatchObject({ environments: ['test'], organization: { id: organizationId } })
    expect(data.id).toMatch(/^csn_/)
    expect(data.scopes).toContain('sessions:mark')
    expect(Date.parse(data.expires_at)).toBe(world.now.ms + 12 * hour)
  })

  test('works once, even with concurrent requests', async () => {
    const code = await loginCode(world.deps, link())
    const responses = await Promise.all(
      Array.from({ length: 8 }, () => postLogin(world.app, { code })),
    )
    expect(responses.map(({ statusCode }) => statusCode).sort()).toEqual([
      200,
      ...Array(7).fill(401),
    ])
    expect(await failedLogin({ code })).toEqual(noLogin)
  })

  test('works for five minutes', async () => {
    const [early, late] = [await loginCode(world.deps, link()), await loginCode(world.deps, link())]
    world.now.ms += 5 * minute - 1
    expect((await postLogin(world.app, { code: early })).statusCode).toBe(200)
    world.now.ms += 1
    expect(await failedLogin({ code: late })).toEqual(noLogin)
  })

  test('fails with the reason: used or expired, or not copied completely', async () => {
    const errorOf = async (code: string) =>
      (await postLogin(world.app, { code })).json().error.message
    const [used, late] = [await loginCode(world.deps, link()), await loginCode(world.deps, link())]
    expect((await postLogin(world.app, { code: used })).statusCode).toBe(200)
    expect(await errorOf(used)).toMatch(/already used or has expired/)
    world.now.ms += 5 * minute
    await purgeConsoleSessions(world.deps.pool, world.now.ms)
    for (const code of [used, late, generateToken('conlog', randomBytes)])
      expect(await errorOf(code)).toMatch(/already used or has expired/)
    for (const code of ['x', `${late}0`, late.slice(0, -1)])
      expect(await errorOf(code)).toMatch(/not valid. Check that you copied all/)
  })

  test('fails once the organization is suspended', async () => {
    const code = await loginCode(world.deps, link())
    await setStatus('suspended')
    expect(await failedLogin({ code })).toEqual(noLogin)
  })

  test('cannot be used by a page of another origin', async () => {
    const code = await loginCode(world.deps, link())
    const others = [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }]
    for (const headers of others) {
      const response = await postLogin(world.app, { code }, headers)
      expect([response.statusCode, response.json().error.code]).toEqual([403, 'console.refused'])
    }
    expect((await postLogin(world.app, { code })).statusCode).toBe(200)
  })

  test.each([{}, { code: 'x', secret_key: 'y' }, { code: '' }, { code: 1 }, { password: 'x' }])(
    'or a secret key is required, not both: %o',
    async (body) => {
      const [status, code] = await failedLogin(body)
      expect([status, code]).toEqual([422, 'request.validation_failed'])
    },
  )
})

describe('a secret key', () => {
  const scopes = ['organizations:read', 'webhooks:read']
  const issue = () =>
    world.issue({ organizationId, type: 'secret', environment: 'test', scopes, name: 'Shop' })

  test('creates a session with its scopes and environment', async () => {
    const { revealedKey } = await issue()
    const { data } = (await postLogin(world.app, { secret_key: revealedKey })).json()
    expect(data).toMatchObject({ name: 'Shop', role: null, scopes, environments: ['test'] })
  })

  test('ends its sessions when it is revoked', async () => {
    const { keyId, revealedKey } = await issue()
    const somebody = await loggedInBy(world.app, { secret_key: revealedKey })
    expect(await statusOf(somebody)).toEqual(loggedIn)
    await revokeApiKey(world.deps, { organizationId, keyId, by: 'operator' })
    expect(await statusOf(somebody)).toEqual(noLogin)
  })

  test('ends its sessions when its grace period is over', async () => {
    const { keyId, revealedKey } = await issue()
    await rotateApiKey(world.deps, { organizationId, keyId, by: 'operator' })
    world.now.ms += 23 * hour
    const somebody = await loggedInBy(world.app, { secret_key: revealedKey })
    expect(await statusOf(somebody)).toEqual(loggedIn)
    world.now.ms += hour
    expect(await statusOf(somebody)).toEqual(noLogin)
  })

  test('fails if it is publishable, unknown, revoked or mistyped', async () => {
    const publishable = await world.issue({ organizationId, type: 'publishable' })
    const login = (secret_key: string) => failedLogin({ secret_key })
    expect(await login(publishable.revealedKey)).toEqual([403, 'auth.secret_key_required'])
    const { keyId, revealedKey } = await issue()
    expect(await login(`${revealedKey}0`)).toEqual([401, 'auth.invalid_api_key'])
    await revokeApiKey(world.deps, { organizationId, keyId, by: 'operator' })
    expect(await login(revealedKey)).toEqual([401, 'auth.invalid_api_key'])
  })
})

test('an Authorization header with a key is ignored', async () => {
  const publishable = await world.issue({ organizationId, type: 'publishable' })
  const secret = await world.issue({ organizationId, type: 'secret', scopes: ['*'] })
  for (const { revealedKey } of [publishable, secret])
    for (const [method, url] of [
      ['GET', 'session'],
      ['POST', 'logout'],
      ['POST', 'logout-everywhere'],
    ] as const) {
      const headers = { ...here, authorization: `Bearer ${revealedKey}` }
      const response = await world.app.inject({ method, url: `/console/api/${url}`, headers })
      expect([response.statusCode, response.json().error.code]).toEqual(noLogin)
    }
})

describe('a console session', () => {
  test('ends twelve hours after its last use', async () => {
    for (let uses = 0; uses < 2; uses++) {
      world.now.ms += 12 * hour - 1
      expect(await statusOf(admin)).toEqual(loggedIn)
    }
    world.now.ms += 12 * hour
    expect(await statusOf(admin)).toEqual(noLogin)
  })

  test('ends by logging out, which deletes the cookie', async () => {
    const response = await post('logout', admin)
    expect(response.statusCode).toBe(200)
    expect(response.cookies[0]).toMatchObject({ name: 'tidegate_console', value: '', maxAge: 0 })
    expect(await statusOf(admin)).toEqual(noLogin)
  })

  test('ends with all sessions of the same name and organization by logging out everywhere', async () => {
    const same = await viewer()
    const other = await viewer({ name: 'Bob' })
    const others = await world.organization(`elsewhere-${organizations}`)
    const elsewhere = await viewer({ organizationId: others })
    expect((await post('logout-everywhere', admin)).statusCode).toBe(200)
    const states = await Promise.all([admin, same, other, elsewhere].map(statusOf))
    expect(states).toEqual([noLogin, noLogin, loggedIn, loggedIn])
  })

  test('of a key ends with all sessions of that key by logging out everywhere', async () => {
    const issue = () => world.issue({ organizationId, type: 'secret', name: 'Ann', scopes: ['*'] })
    const [one, another] = [await issue(), await issue()]
    const byKey = ({ revealedKey }: typeof one) =>
      loggedInBy(world.app, { secret_key: revealedKey })
    const [mine, same, other] = [await byKey(one), await byKey(one), await byKey(another)]
    await post('logout-everywhere', mine)
    const states = await Promise.all([mine, same, other, admin].map(statusOf))
    expect(states).toEqual([noLogin, noLogin, loggedIn, loggedIn])
  })

  test('ends when the same browser logs in again', async () => {
    const code = await loginCode(world.deps, { organizationId, role: 'viewer' })
    await postLogin(world.app, { code }, { cookie: admin.headers.cookie })
    expect(await statusOf(admin)).toEqual(noLogin)
  })

  test('ends for good when its organization is suspended, even if it was not used meanwhile', async () => {
    const other = await viewer()
    await setStatus('suspended')
    expect(await statusOf(admin)).toEqual(noLogin)
    await revokeOrphaned(world.deps.pool, world.now.ms)
    await setStatus('active')
    expect(await Promise.all([admin, other].map(statusOf))).toEqual([noLogin, noLogin])
  })

  test('cannot be logged out by a page of another origin', async () => {
    for (const change of [{ origin: 'https://evil.example' }, { 'x-csrf-token': '' }]) {
      const headers = { ...admin.headers, ...change }
      const response = await world.app.inject({
        method: 'POST',
        url: '/console/api/logout',
        headers,
      })
      expect(response.statusCode).toBe(403)
    }
    expect(await statusOf(admin)).toEqual(loggedIn)
  })

  test('has its own rate limit, separate from that of a key', async () => {
    const { revealedKey } = await world.issue({ organizationId, type: 'secret', scopes: ['*'] })
    const live = { 'tidegate-environment': 'live' }
    const spend = () => get('/console/api/v1/sessions', admin, live)
    const { headers: first } = await spend()
    expect([first['x-ratelimit-limit'], first['x-ratelimit-remaining']]).toEqual(['600', '599'])
    for (let i = 1; i < 600; i++) await spend()
    expect((await spend()).statusCode).toBe(429)
    const authorization = `Bearer ${revealedKey}`
    const byKey = await world.app.inject({ url: '/v1/sessions', headers: { authorization } })
    const { 'x-ratelimit-limit': limit, 'x-ratelimit-remaining': left } = byKey.headers
    expect(Number(left)).toBe(Number(limit) - 1)
    const other = await viewer()
    expect((await get('/console/api/v1/sessions', other, live)).statusCode).toBe(200)
  })

  test('is the actor of its mutations, and the event log never contains its name', async () => {
    const name = 'Prudence Unlikely'
    const somebody = await person(world.app, world.deps, { organizationId, role: 'admin', name })
    const live = { 'tidegate-environment': 'live' }
    const path = `/console/api/v1/organizations/${organizationId}`
    const headers = { ...somebody.headers, ...live }
    const rename = { method: 'PATCH', url: path, headers, body: { name: 'New' } } as const
    expect((await world.app.inject(rename)).statusCode).toBe(200)
    const { data } = (await get(`${path}/audit-log`, somebody, live)).json()
    const actor = { type: 'person', id: somebody.id }
    expect(data).toContainEqual(expect.objectContaining({ type: 'OrganizationRenamed', actor }))
    const { rows } = await world.deps.pool.query(
      `select count(*)::int as named from tidegate_log.records where position(convert_to($1, 'UTF8') in value) > 0`,
      [name],
    )
    expect(rows).toEqual([{ named: 0 }])
  })

  test('is deleted with its rate limit after 30 days', async () => {
    const { pool } = world.deps
    const count = 'select count(*)::int as n from tidegate.console_sessions where id = $1'
    const stored = async () => (await pool.query(count, [admin.id])).rows[0].n
    const bucket = `${admin.id}:person`
    await pool.query('insert into tidegate.rate_limits values ($1, 0, 0, 0)', [bucket])
    await loginCode(world.deps, { organizationId, role: 'viewer' })
    world.now.ms += 30 * day - 1
    await purgeConsoleSessions(pool, world.now.ms)
    expect(await stored()).toBe(1)
    world.now.ms += 1
    expect(await purgeConsoleSessions(pool, world.now.ms)).toBeGreaterThan(0)
    expect(await stored()).toBe(0)
    const left = `select (select count(*) from tidegate.rate_limits where bucket like 'csn%')::int as buckets,
      (select count(*) from tidegate.console_codes)::int as codes`
    expect((await pool.query(left)).rows).toEqual([{ buckets: 0, codes: 0 }])
  })
})

describe('the cookie', () => {
  const attributes = { path: '/', httpOnly: true, sameSite: 'Lax', maxAge: 7 * 24 * 60 * 60 }
  const body = async () => ({
    code: await loginCode(world.deps, { organizationId, role: 'viewer' }),
  })

  test('is Secure and bound to the host behind a trusted TLS proxy', async () => {
    const proxied = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'console.example' }
    const response = await world.app.inject({
      method: 'POST',
      url: '/console/api/login',
      remoteAddress: '10.0.0.1',
      headers: { ...proxied, origin: 'https://console.example' },
      body: await body(),
    })
    expect(response.cookies).toEqual([
      {
        name: '__Host-tidegate_console',
        value: expect.stringMatching(/^contok_/),
        secure: true,
        ...attributes,
      },
    ])
    expect(response.headers['cache-control']).toBe('no-store')
  })

  test('is the same at an https PUBLIC_URL behind an untrusted proxy', async () => {
    const headers = { host: 'tidegate.example', origin: 'https://tidegate.example' }
    const response = await postLogin(world.app, await body(), headers)
    expect(response.cookies).toMatchObject([{ name: '__Host-tidegate_console', secure: true }])
  })

  test('has another name over plain HTTP on localhost', async () => {
    const response = await postLogin(world.app, await body())
    expect(response.cookies).toEqual([
      { name: 'tidegate_console', value: expect.stringMatching(/^contok_/), ...attributes },
    ])
  })

  test('is not set over plain HTTP elsewhere, even with a forged X-Forwarded-Proto', async () => {
    const host = { host: 'console.example', origin: 'http://console.example' }
    for (const headers of [host, { ...host, 'x-forwarded-proto': 'https' }]) {
      const response = await postLogin(world.app, await body(), headers)
      expect([response.statusCode, response.json().error.code]).toEqual([403, 'console.refused'])
      expect(response.json().error.message).toContain('PUBLIC_URL')
      expect(response.cookies).toEqual([])
    }
  })

  test('and login codes are stored hashed', async () => {
    const code = await loginCode(world.deps, { organizationId, role: 'viewer' })
    const { rows } = await world.deps.pool.query(
      'select s::text as row from tidegate.console_sessions s union all select c::text from tidegate.console_codes c',
    )
    const text = JSON.stringify(rows)
    expect(text).not.toContain(code.slice('conlog_'.length))
    expect(text).not.toContain(admin.headers.cookie.split('_').at(-1))
  })
})

describe('a flood of requests from the same address as a logged-in person', () => {
  const as = (token: string): Person => ({
    ...admin,
    headers: { ...admin.headers, cookie: `tidegate_console=${token}` },
  })
  const limited = [429, 'rate_limit.exceeded']

  /** Sends concurrent requests, and one of `admin`. Returns their statuses and the number of session lookups. */
  async function flood(people: Person[]) {
    const query = vi.spyOn(world.deps.pool, 'query')
    const sent = people.map(statusOf)
    expect(await statusOf(admin)).toEqual(loggedIn)
    const statuses = await Promise.all(sent)
    const lookups = query.mock.calls.filter(
      ([statement]) => Object(statement).name === 'console-session',
    ).length
    query.mockRestore()
    return { statuses, lookups }
  }

  test('with unknown tokens causes few lookups, and does not lock out that person', async () => {
    const forged = Array.from({ length: 200 }, () => as(generateToken('contok', randomBytes)))
    const { statuses, lookups } = await flood(forged)
    expect(statuses).toEqual([...Array(50).fill(noLogin), ...Array(150).fill(limited)])
    expect(lookups).toBeLessThanOrEqual(51)
  })

  test('with the token of an ended session spends only the budget of that token', async () => {
    const left = await viewer()
    await post('logout', left)
    const { statuses, lookups } = await flood(Array(200).fill(left))
    expect(statuses).toEqual([...Array(50).fill(noLogin), ...Array(150).fill(limited)])
    expect(lookups).toBeLessThanOrEqual(51)
    world.now.ms += 1000
    expect(await statusOf(as(generateToken('contok', randomBytes)))).toEqual(noLogin)
  })

  test('gets a Retry-After header', async () => {
    const forged = Array.from({ length: 51 }, () => as(generateToken('contok', randomBytes)))
    const responses = await Promise.all(forged.map((p) => get('/console/api/session', p)))
    expect(responses.at(-1)).toMatchObject({ statusCode: 429, headers: { 'retry-after': '1' } })
    world.now.ms += 1000
    expect(await statusOf(forged[0] ?? admin)).toEqual(noLogin)
  })

  test('does not affect a session that was created in another process', async () => {
    const token = generateToken('contok', randomBytes)
    await world.deps.pool.query(
      'update tidegate.console_sessions set token_hash = $2 where id = $1',
      [admin.id, tokenHashes(world.deps.keyring, token)[0]],
    )
    expect(await Promise.all(Array.from({ length: 40 }, () => statusOf(as(token))))).toEqual(
      Array(40).fill(loggedIn),
    )
    for (let i = 0; i < 60; i++) expect(await statusOf(as(token))).toEqual(loggedIn)
  })

  test('of sign-in attempts is limited only for that address', async () => {
    const { revealedKey } = await world.issue({ organizationId, type: 'secret', scopes: ['*'] })
    const code = await loginCode(world.deps, { organizationId, role: 'viewer' })
    // The 60th attempt was that of `admin`, just before this test.
    const attempts = Array.from({ length: 59 }, () =>
      failedLogin({ code: generateToken('conlog', randomBytes) }),
    )
    expect(await Promise.all(attempts)).toEqual(Array(59).fill(noLogin))
    for (const body of [{ code }, { secret_key: revealedKey }]) {
      const response = await postLogin(world.app, body)
      expect(response).toMatchObject({ statusCode: 429, headers: { 'retry-after': '1' } })
      expect(response.json().error.message).toMatch(/^Too many sign-in attempts/)
    }
    expect(await statusOf(admin)).toEqual(loggedIn)
    const there = await world.app.inject({
      method: 'POST',
      url: '/console/api/login',
      remoteAddress: '10.7.7.7',
      headers: here,
      body: { secret_key: revealedKey },
    })
    expect(there.statusCode).toBe(200)
    world.now.ms += 1000
    expect((await postLogin(world.app, { secret_key: revealedKey })).statusCode).toBe(200)
    world.now.ms += 1000
    expect((await postLogin(world.app, { code })).statusCode).toBe(200)
  })
})

describe('the console page', () => {
  const views = ['/console', '/console/', '/console/live/sessions?verdict=bot']
  test.each([...views, '/console/api-requests'])(
    'is served at %s, and cannot be framed',
    async (url) => {
      const { headers, body } = await world.app.inject({ url })
      const policy =
        /default-src 'none'; script-src 'self'; style-src 'self'.*frame-ancestors 'none'/
      expect(headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': expect.stringMatching(policy),
        'x-frame-options': 'DENY',
        'cache-control': 'no-store',
        'referrer-policy': 'no-referrer',
        'x-content-type-options': 'nosniff',
      })
      expect(body).not.toMatch(/<script(?![^>]*src=)|\sstyle=|\son\w+=/)
    },
  )

  test.each(['/console/api', '/console/api/v1/nothing', '/console/assets/nothing.js'])(
    'is not served at %s',
    async (url) => {
      const response = await world.app.inject({ url, headers: { ...here, accept: 'text/html' } })
      expect([response.statusCode, response.json().error.code]).toEqual([404, 'request.not_found'])
    },
  )
})

test('the OpenAPI document leaves out the console', () => {
  const paths = Object.keys(world.app.swagger().paths ?? {})
  expect(paths.length).toBeGreaterThan(50)
  expect(paths.filter((path) => path.includes('console'))).toEqual([])
})
