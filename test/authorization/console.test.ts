import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { errorCodes } from '../../infra/errors/errors.ts'
import type { Environment } from '../../schemas/events.ts'
import { type ConsoleRole, roleNames, roles } from '../../services/console/decide.ts'
import { type Person, person } from '../support/console.ts'
import { call } from './call.ts'
import { publishableKey, secretKey } from './credential.ts'
import type { Context, Endpoint, Example } from './endpoint.ts'
import { endpoints } from './examples.ts'
import { answered, type Cell, refused } from './expected.ts'
import { operationsByPath } from './operations.ts'
import { createExampleContext } from './things.ts'
import { startWorld, type World } from './world.ts'

let world: World
let context: Omit<Context, 'succeeds'>
/** By method and path of what is below `/console/api`. */
let routes: Map<string, { id: string; scope: string; endpoint: Endpoint }>
let cells = 0

const prefix = '/console/api'
const grants: Environment[][] = [['live'], ['test'], ['live', 'test']]

beforeAll(async () => {
  world = await startWorld()
  const own = await world.organization('own')
  const other = await world.organization('other')
  context = await createExampleContext(world, { own, other })
  routes = restRoutes()
})
afterAll(() => world.stop())
afterAll(() => console.log(`matrix of the console: ${cells} cells`))

// The server's registered routes, so that a new route is in the matrix by itself.
function restRoutes(): typeof routes {
  const described = operationsByPath(world.app.swagger())
  const below = world.routes.filter(
    (route) => route.includes(` ${prefix}/v1/`) && !route.startsWith('HEAD'),
  )
  const found = below.map((route) => {
    const operation = described.get(route.replace(prefix, ''))
    const endpoint = endpoints[operation?.operationId ?? '']
    if (!operation || !endpoint?.scope) throw new Error(`${route} is no operation of a secret key`)
    return [route, { id: operation.operationId, scope: endpoint.scope, endpoint }] as const
  })
  return new Map(found)
}

const gateOfConsole = new Set([
  'listManagedGateServices',
  'listGateAgentAccounts',
  'revokeGateAgentAccountToken',
  'countGateSignups',
])

const scopesOf = (role: ConsoleRole): readonly string[] => roles[role]
const may = (role: ConsoleRole, scope: string) =>
  scopesOf(role).includes('*') || scopesOf(role).includes(scope)

async function answer(
  endpoint: Endpoint,
  given: Record<string, string>,
  succeeds = false,
): Promise<Cell> {
  const example = await endpoint.example({ ...context, succeeds })
  cells++
  const there = { ...example, url: `${prefix}${example.url}` }
  const { status, code, charged, message } = await call(world.app, { example: there, given })
  if (code === 'auth.insufficient_scope')
    expect(message).toMatch(/^The role of this console session lacks/)
  if (code === 'auth.organization_access_denied') expect(message).toMatch(/^This console session/)
  const known = errorCodes.find((one) => one === code)
  if (code !== null && !known) throw new Error(`${code} is no code`)
  return { status, code: known ?? null, charged }
}

function expectedOf(
  { endpoint, scope }: { endpoint: Endpoint; scope: string },
  { role, granted, named }: { role: ConsoleRole; granted: Environment[]; named: Environment },
): Cell {
  if (!granted.includes(named)) return refused('console.refused', false)
  if (!may(role, scope)) return refused('auth.insufficient_scope', true)
  if (endpoint.needsLive && !granted.includes('live'))
    return refused('auth.live_access_required', true)
  return answered(named === 'live' ? endpoint.success : endpoint.elsewhere, endpoint)
}

describe('every role, in every environment, on every route', () => {
  test.each(roleNames)('%s', async (role) => {
    for (const granted of grants) {
      const { organizationId } = context
      const { headers } = await person(world.app, world.deps, {
        organizationId,
        role,
        environments: granted,
      })
      for (const named of ['live', 'test'] as const) {
        const actual: Record<string, Cell> = {}
        const expected: Record<string, Cell> = {}
        for (const [route, { endpoint, scope }] of routes) {
          const cell = expectedOf({ endpoint, scope }, { role, granted, named })
          expected[route] = cell
          actual[route] = await answer(
            endpoint,
            { ...headers, 'tidegate-environment': named },
            cell.status < 300,
          )
        }
        expect({ granted, named, actual }).toEqual({ granted, named, actual: expected })
      }
    }
  })

  test('has each route of secret keys but those of edges and of services that use Gate', () => {
    const secret = Object.entries(endpoints).filter(
      ([id, { scope }]) => scope && id !== 'scoreRequests',
    )
    const expected = secret
      .map(([id]) => id)
      .filter((id) => gateOfConsole.has(id) || !/Gate(?!Account)/.test(id))
    expect([...routes.values()].map(({ id }) => id).sort()).toEqual(expected.sort())
    expect(cells).toBeGreaterThan(500)
  })
})

describe('a session of test alone', () => {
  let headers: Record<string, string>
  beforeAll(async () => {
    const { organizationId } = context
    const link = { organizationId, role: 'admin', environments: ['test'] } as const
    const { headers: ofSession } = await person(world.app, world.deps, link)
    headers = { ...ofSession, 'tidegate-environment': 'test' }
  })

  const own = (rest = '') => `v1/organizations/${context.organizationId}${rest}`
  test.each<[string, Example['method'], () => string, object?]>([
    ['Agent directories', 'POST', () => own('/agent-directories'), { domain: 'agent.example' }],
    ['Agent directories', 'DELETE', () => own('/agent-directories/agent.example')],
    ['Name and status of the organization', 'PATCH', own, { status: 'suspended' }],
    ['Name and status of the organization', 'PATCH', own, { name: 'Mine' }],
    ['Taught engines', 'GET', () => 'engines/questions'],
    ['Taught engines', 'POST', () => 'engines', { answers: [] }],
  ])('cannot change what applies to live, too: %s by %s', async (subject, method, path, body) => {
    const example = { method, url: `${prefix}/${path()}`, ...(body && { body }) }
    expect(await call(world.app, { example, given: headers })).toMatchObject({
      status: 403,
      code: 'auth.live_access_required',
      message: `${subject} apply to live and test; log in by a link that includes live.`,
    })
  })

  test('may read agent directories', async () => {
    const example: Example = { method: 'GET', url: `${prefix}/${own('/agent-directories')}` }
    expect((await call(world.app, { example, given: headers })).status).toBe(200)
  })
})

test('a viewer may read only, whatever is asked by any other method than GET', () => {
  const changing = [...routes].filter(([route]) => !route.startsWith('GET '))
  expect(changing.length).toBeGreaterThan(10)
  expect(changing.filter(([, { scope }]) => may('viewer', scope))).toEqual([])
})

describe('what is no console session', () => {
  let somebody: Person
  const live = { 'tidegate-environment': 'live' }
  beforeAll(async () => {
    somebody = await person(world.app, world.deps, {
      organizationId: context.organizationId,
      role: 'admin',
    })
  })

  test('opens no route: nothing, a secret key, a publishable key, a cookie of another name', async () => {
    const { organizationId } = context
    const { cookie, ...rest } = somebody.headers
    const asked = {
      nothing: {},
      'a secret key': await secretKey(world, { organizationId }),
      'a publishable key': await publishableKey(world, { organizationId }),
      'the cookie of https': { cookie: `__Host-${cookie}` },
      'a token that nobody has': {
        cookie: cookie.replace(/.$/, (last) => (last === '0' ? '1' : '0')),
      },
    }
    for (const [name, given] of Object.entries(asked))
      for (const [route, { endpoint }] of routes) {
        const cell = await answer(endpoint, { ...rest, ...live, ...given })
        expect([name, route, cell]).toEqual([name, route, refused('console.login_required', false)])
      }
  })

  test('a session of another organization is denied every path of this one', async () => {
    const organizationId = await world.organization('theirs')
    const { headers } = await person(world.app, world.deps, { organizationId, role: 'admin' })
    const below = [...routes].filter(([route]) => route.includes('/organizations/{'))
    expect(below.length).toBeGreaterThan(15)
    for (const [route, { endpoint }] of below) {
      const cell = await answer(endpoint, { ...headers, ...live })
      expect([route, cell]).toEqual([route, refused('auth.organization_access_denied', true)])
    }
  })
})

describe('a change', () => {
  const live = { 'tidegate-environment': 'live' }

  test('is refused on every route from another origin, without one, and without the token', async () => {
    const { organizationId } = context
    const { headers } = await person(world.app, world.deps, { organizationId, role: 'admin' })
    const { origin, 'x-csrf-token': token, ...cookie } = headers
    const asked = {
      'from another origin': { ...headers, origin: 'https://evil.example' },
      'from another port': { ...headers, origin: `${origin}:8788` },
      'from a frame without an origin': { ...headers, origin: 'null' },
      'without Origin': { ...cookie, 'x-csrf-token': token },
      'from another site, as the browser says': { ...headers, 'sec-fetch-site': 'same-site' },
      'without the token': { ...cookie, origin },
      'with another token': {
        ...headers,
        'x-csrf-token': token.replace(/^./, (first) => (first === 'A' ? 'B' : 'A')),
      },
    }
    const changing = [...routes].filter(([route]) => !route.startsWith('GET '))
    for (const [name, given] of Object.entries(asked))
      for (const [route, { endpoint }] of changing) {
        const cell = await answer(endpoint, { ...given, ...live })
        expect([name, route, cell]).toEqual([name, route, refused('console.refused', false)])
      }
  })
})
