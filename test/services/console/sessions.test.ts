import { randomBytes } from 'node:crypto'
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { generateToken, tokenHashes } from '../../../infra/crypto/tokens.ts'
import { purgeConsole, revokeOrphaned } from '../../../services/console/store.ts'
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
  // The previous test's spending has expired.
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

const over = [401, 'console.login_required']
async function session(of: Person): Promise<[number, string | undefined]> {
  const answer = await get('/console/api/session', of)
  return [answer.statusCode, answer.json().error?.code]
}
const isIn = [200, undefined]

const refusedLogin = async (body: object) => {
  const answer = await postLogin(world.app, body)
  return [answer.statusCode, answer.json().error?.code]
}

async function setStatus(status: 'active' | 'suspended'): Promise<void> {
  await changeOrganization(world.deps, organizationId, (organization, change) =>
    decideOrganizationUpdate(organization, { status, ...change, by: 'operator' }),
  )
}

describe('the code of a link', () => {
  const link = () =>
    ({ organizationId, role: 'analyst', environments: ['test'], name: 'Zoë' }) as const

  test('begins a session of who it is for, with what the link gives', async () => {
    const answer = await postLogin(world.app, { code: await loginCode(world.deps, link()) })
    expect(answer.statusCode).toBe(200)
    const { data } = answer.json()
    expect(data).toMatchObject({ object: 'console_session', name: 'Zoë', role: 'analyst' })
    expect(data).toMatchObject({ environments: ['test'], organization: { id: organizationId } })
    expect(data.id).toMatch(/^csn_/)
    expect(data.scopes).toContain('sessions:mark')
    expect(Date.parse(data.expires_at)).toBe(world.now.ms + 12 * hour)
  })

  test('works once, also for many at the same time', async () => {
    const code = await loginCode(world.deps, link())
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => postLogin(world.app, { code })),
    )
    expect(answers.map(({ statusCode }) => statusCode).sort()).toEqual([200, ...Array(7).fill(401)])
    expect(await refusedLogin({ code })).toEqual(over)
  })

  test('works for five minutes', async () => {
    const [early, late] = [await loginCode(world.deps, link()), await loginCode(world.deps, link())]
    world.now.ms += 5 * minute - 1
    expect((await postLogin(world.app, { code: early })).statusCode).toBe(200)
    world.now.ms += 1
    expect(await refusedLogin({ code: late })).toEqual(over)
  })

  test('says why it begins no session: it was used, has expired, or is wrong', async () => {
    const why = async (code: string) => (await postLogin(world.app, { code })).json().error.message
    const [used, late] = [await loginCode(world.deps, link()), await loginCode(world.deps, link())]
    expect((await postLogin(world.app, { code: used })).statusCode).toBe(200)
    expect(await why(used)).toMatch(/already used/)
    world.now.ms += 5 * minute
    await purgeConsole(world.deps.pool, world.now.ms)
    expect(await why(used)).toMatch(/already used/)
    expect(await why(late)).toMatch(/has expired/)
    for (const code of [generateToken('conlog', randomBytes), 'x', `${late}0`])
      expect(await why(code)).toMatch(/not valid/)
    world.now.ms += day
    await purgeConsole(world.deps.pool, world.now.ms)
    expect(await why(used)).toMatch(/not valid/)
  })

  test('is of no use once its organization is suspended', async () => {
    const code = await loginCode(world.deps, link())
    await setStatus('suspended')
    expect(await refusedLogin({ code })).toEqual(over)
  })

  test('is of no use to another page', async () => {
    const code = await loginCode(world.deps, link())
    const others = [{ origin: 'https://evil.example' }, { 'sec-fetch-site': 'cross-site' }]
    for (const headers of others) {
      const answer = await postLogin(world.app, { code }, headers)
      expect([answer.statusCode, answer.json().error.code]).toEqual([403, 'console.refused'])
    }
    expect((await postLogin(world.app, { code })).statusCode).toBe(200)
  })

  test.each([{}, { code: 'x', secret_key: 'y' }, { code: '' }, { code: 1 }, { password: 'x' }])(
    'is the one thing to send, or a secret key: %o',
    async (body) => {
      const [status, code] = await refusedLogin(body)
      expect([status, code]).toEqual([422, 'request.validation_failed'])
    },
  )
})

describe('a secret key', () => {
  const scopes = ['organizations:read', 'webhooks:read']
  const issue = () =>
    world.issue({ organizationId, type: 'secret', environment: 'test', scopes, name: 'Shop' })

  test('begins a session with its scopes and environment', async () => {
    const { revealedKey } = await issue()
    const { data } = (await postLogin(world.app, { secret_key: revealedKey })).json()
    expect(data).toMatchObject({ name: 'Shop', role: null, scopes, environments: ['test'] })
  })

  test('ends its session when it is revoked', async () => {
    const { keyId, revealedKey } = await issue()
    const somebody = await loggedInBy(world.app, { secret_key: revealedKey })
    expect(await session(somebody)).toEqual(isIn)
    await revokeApiKey(world.deps, { organizationId, keyId, by: 'operator' })
    expect(await session(somebody)).toEqual(over)
  })

  test('ends its session with its grace', async () => {
    const { keyId, revealedKey } = await issue()
    await rotateApiKey(world.deps, { organizationId, keyId, by: 'operator' })
    world.now.ms += 23 * hour
    const somebody = await loggedInBy(world.app, { secret_key: revealedKey })
    expect(await session(somebody)).toEqual(isIn)
    world.now.ms += hour
    expect(await session(somebody)).toEqual(over)
  })

  test('that is publishable, unknown, revoked or mistyped begins none', async () => {
    const publishable = await world.issue({ organizationId, type: 'publishable' })
    const login = (secret_key: string) => refusedLogin({ secret_key })
    expect(await login(publishable.revealedKey)).toEqual([403, 'auth.secret_key_required'])
    const { keyId, revealedKey } = await issue()
    expect(await login(`${revealedKey}0`)).toEqual([401, 'auth.invalid_api_key'])
    await revokeApiKey(world.deps, { organizationId, keyId, by: 'operator' })
    expect(await login(revealedKey)).toEqual([401, 'auth.invalid_api_key'])
  })
})

test('a key in the Authorization header opens nothing and ends nothing', async () => {
  const publishable = await world.issue({ organizationId, type: 'publishable' })
  const secret = await world.issue({ organizationId, type: 'secret', scopes: ['*'] })
  for (const { revealedKey } of [publishable, secret])
    for (const [method, url] of [
      ['GET', 'session'],
      ['POST', 'logout'],
      ['POST', 'logout-everywhere'],
    ] as const) {
      const headers = { ...here, authorization: `Bearer ${revealedKey}` }
      const answer = await world.app.inject({ method, url: `/console/api/${url}`, headers })
      expect([answer.statusCode, answer.json().error.code]).toEqual(over)
    }
})

describe('a session', () => {
  test('ends twelve hours after it was used last', async () => {
    for (let uses = 0; uses < 2; uses++) {
      world.now.ms += 12 * hour - 1
      expect(await session(admin)).toEqual(isIn)
    }
    world.now.ms += 12 * hour
    expect(await session(admin)).toEqual(over)
  })

  test('ends by logging out, and the browser forgets its token', async () => {
    const answer = await post('logout', admin)
    expect(answer.statusCode).toBe(200)
    expect(answer.cookies[0]).toMatchObject({ name: 'tidegate_console', value: '', maxAge: 0 })
    expect(await session(admin)).toEqual(over)
  })

  test('ends with all others of the same name, but not of others, by logging out everywhere', async () => {
    const same = await viewer()
    const other = await viewer({ name: 'Bob' })
    const others = await world.organization(`elsewhere-${organizations}`)
    const elsewhere = await viewer({ organizationId: others })
    expect((await post('logout-everywhere', admin)).statusCode).toBe(200)
    const states = await Promise.all([admin, same, other, elsewhere].map(session))
    expect(states).toEqual([over, over, isIn, isIn])
  })

  test('of a key ends with all others of the key', async () => {
    const issue = () => world.issue({ organizationId, type: 'secret', name: 'Ann', scopes: ['*'] })
    const [one, another] = [await issue(), await issue()]
    const byKey = ({ revealedKey }: typeof one) =>
      loggedInBy(world.app, { secret_key: revealedKey })
    const [mine, same, other] = [await byKey(one), await byKey(one), await byKey(another)]
    await post('logout-everywhere', mine)
    const states = await Promise.all([mine, same, other, admin].map(session))
    expect(states).toEqual([over, over, isIn, isIn])
  })

  test('ends where the browser logs in anew', async () => {
    const code = await loginCode(world.deps, { organizationId, role: 'viewer' })
    await postLogin(world.app, { code }, { cookie: admin.headers.cookie })
    expect(await session(admin)).toEqual(over)
  })

  test('is ended for good by a suspension of its organization, also where nothing was asked meanwhile', async () => {
    const other = await viewer()
    await setStatus('suspended')
    expect(await session(admin)).toEqual(over)
    await revokeOrphaned(world.deps.pool, world.now.ms)
    await setStatus('active')
    expect(await Promise.all([admin, other].map(session))).toEqual([over, over])
  })

  test('is not logged out by another page', async () => {
    for (const change of [{ origin: 'https://evil.example' }, { 'x-csrf-token': '' }]) {
      const headers = { ...admin.headers, ...change }
      const answer = await world.app.inject({ method: 'POST', url: '/console/api/logout', headers })
      expect(answer.statusCode).toBe(403)
    }
    expect(await session(admin)).toEqual(isIn)
  })

  test('has units of its own, and takes none of a key', async () => {
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

  test('is the actor of its changes, and its name is on no log', async () => {
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

  test('is deleted with its name and its units after 30 days', async () => {
    const { pool } = world.deps
    const count = 'select count(*)::int as n from tidegate.console_sessions where id = $1'
    const stored = async () => (await pool.query(count, [admin.id])).rows[0].n
    const bucket = `${admin.id}:person`
    await pool.query('insert into tidegate.rate_limits values ($1, 0, 0, 0)', [bucket])
    await loginCode(world.deps, { organizationId, role: 'viewer' })
    world.now.ms += 30 * day - 1
    await purgeConsole(pool, world.now.ms)
    expect(await stored()).toBe(1)
    world.now.ms += 1
    expect(await purgeConsole(pool, world.now.ms)).toBeGreaterThan(0)
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

  test('is of this host alone, and of HTTPS, behind a proxy that is trusted', async () => {
    const proxied = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'console.example' }
    const answer = await world.app.inject({
      method: 'POST',
      url: '/console/api/login',
      remoteAddress: '10.0.0.1',
      headers: { ...proxied, origin: 'https://console.example' },
      body: await body(),
    })
    expect(answer.cookies).toEqual([
      {
        name: '__Host-tidegate_console',
        value: expect.stringMatching(/^contok_/),
        secure: true,
        ...attributes,
      },
    ])
    expect(answer.headers['cache-control']).toBe('no-store')
  })

  test('is so at PUBLIC_URL behind one that is not', async () => {
    const headers = { host: 'tidegate.example', origin: 'https://tidegate.example' }
    const answer = await postLogin(world.app, await body(), headers)
    expect(answer.cookies).toMatchObject([{ name: '__Host-tidegate_console', secure: true }])
  })

  test('has another name over plain HTTP on loopback', async () => {
    const answer = await postLogin(world.app, await body())
    expect(answer.cookies).toEqual([
      { name: 'tidegate_console', value: expect.stringMatching(/^contok_/), ...attributes },
    ])
  })

  test('is not given over plain HTTP elsewhere, whatever a stranger forwards', async () => {
    const host = { host: 'console.example', origin: 'http://console.example' }
    for (const headers of [host, { ...host, 'x-forwarded-proto': 'https' }]) {
      const answer = await postLogin(world.app, await body(), headers)
      expect([answer.statusCode, answer.json().error.code]).toEqual([403, 'console.refused'])
      expect(answer.json().error.message).toContain('PUBLIC_URL')
      expect(answer.cookies).toEqual([])
    }
  })

  test('is stored hashed, and so is a code', async () => {
    const code = await loginCode(world.deps, { organizationId, role: 'viewer' })
    const { rows } = await world.deps.pool.query(
      'select s::text as row from tidegate.console_sessions s union all select c::text from tidegate.console_codes c',
    )
    const text = JSON.stringify(rows)
    expect(text).not.toContain(code.slice('conlog_'.length))
    expect(text).not.toContain(admin.headers.cookie.split('_').at(-1))
  })
})

describe('a flood from the address of somebody who is logged in', () => {
  const as = (token: string): Person => ({
    ...admin,
    headers: { ...admin.headers, cookie: `tidegate_console=${token}` },
  })
  const limited = [429, 'rate_limit.exceeded']

  /** Sends requests at the same time, one of `admin` among them; resolves to their answers and how many were looked up. */
  async function flood(people: Person[]) {
    const query = vi.spyOn(world.deps.pool, 'query')
    const sent = people.map(session)
    expect(await session(admin)).toEqual(isIn)
    const answers = await Promise.all(sent)
    const lookups = query.mock.calls.filter(
      ([asked]) => Object(asked).name === 'console-session',
    ).length
    query.mockRestore()
    return { answers, lookups }
  }

  test('with tokens that do not exist costs a few look-ups, and locks nobody out', async () => {
    const forged = Array.from({ length: 200 }, () => as(generateToken('contok', randomBytes)))
    const { answers, lookups } = await flood(forged)
    expect(answers).toEqual([...Array(50).fill(over), ...Array(150).fill(limited)])
    expect(lookups).toBeLessThanOrEqual(51)
  })

  test('with the token of a session that has ended spends nothing but its own', async () => {
    const left = await viewer()
    await post('logout', left)
    const { answers, lookups } = await flood(Array(200).fill(left))
    expect(answers).toEqual([...Array(50).fill(over), ...Array(150).fill(limited)])
    expect(lookups).toBeLessThanOrEqual(51)
    world.now.ms += 1000
    expect(await session(as(generateToken('contok', randomBytes)))).toEqual(over)
  })

  test('says when to try again', async () => {
    const forged = Array.from({ length: 51 }, () => as(generateToken('contok', randomBytes)))
    const answers = await Promise.all(forged.map((one) => get('/console/api/session', one)))
    expect(answers.at(-1)).toMatchObject({ statusCode: 429, headers: { 'retry-after': '1' } })
    world.now.ms += 1000
    expect(await session(forged[0] ?? admin)).toEqual(over)
  })

  test('spares a session that another process began, once it ends', async () => {
    const token = generateToken('contok', randomBytes)
    await world.deps.pool.query(
      'update tidegate.console_sessions set token_hash = $2 where id = $1',
      [admin.id, tokenHashes(world.deps.keyring, token)[0]],
    )
    expect(await Promise.all(Array.from({ length: 40 }, () => session(as(token))))).toEqual(
      Array(40).fill(isIn),
    )
    for (let i = 0; i < 60; i++) expect(await session(as(token))).toEqual(isIn)
  })

  test('of log-ins is limited for its source alone', async () => {
    const { revealedKey } = await world.issue({ organizationId, type: 'secret', scopes: ['*'] })
    const code = await loginCode(world.deps, { organizationId, role: 'viewer' })
    // `admin` logged in at this moment.
    const attempts = Array.from({ length: 59 }, () =>
      refusedLogin({ code: generateToken('conlog', randomBytes) }),
    )
    expect(await Promise.all(attempts)).toEqual(Array(59).fill(over))
    for (const body of [{ code }, { secret_key: revealedKey }]) {
      const answer = await postLogin(world.app, body)
      expect(answer).toMatchObject({ statusCode: 429, headers: { 'retry-after': '1' } })
      expect(answer.json().error.message).toMatch(/^Too many sign-in attempts/)
    }
    expect(await session(admin)).toEqual(isIn)
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

describe('the page', () => {
  const views = ['/console', '/console/', '/console/live/sessions?verdict=bot']
  test.each([...views, '/console/api-requests'])('is at %s, and in no frame', async (url) => {
    const { headers, body } = await world.app.inject({ url })
    const policy = /default-src 'none'; script-src 'self'; style-src 'self'.*frame-ancestors 'none'/
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': expect.stringMatching(policy),
      'x-frame-options': 'DENY',
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
    })
    expect(body).not.toMatch(/<script(?![^>]*src=)|\sstyle=|\son\w+=/)
  })

  test.each(['/console/api', '/console/api/v1/nothing', '/console/assets/nothing.js'])(
    'is not at %s',
    async (url) => {
      const answer = await world.app.inject({ url, headers: { ...here, accept: 'text/html' } })
      expect([answer.statusCode, answer.json().error.code]).toEqual([404, 'request.not_found'])
    },
  )
})

test('nothing of it is in the description of the API', () => {
  const paths = Object.keys(world.app.swagger().paths ?? {})
  expect(paths.length).toBeGreaterThan(50)
  expect(paths.filter((path) => path.includes('console'))).toEqual([])
})
