import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { messageOf } from '../../infra/errors/errors.ts'
import { type Person, person } from '../support/console.ts'
import { sendRaw } from '../support/raw-http.ts'
import { call } from './call.ts'
import { type Credential, secretKey } from './credential.ts'
import { createScopedKeys } from './credentials.ts'
import type { Context, Endpoint, Example } from './endpoint.ts'
import { endpoints, openEndpoints } from './examples.ts'
import { type Cell, expectedCell, type Operation, refused } from './expected.ts'
import { createGateTokens } from './gate-tokens.ts'
import { expectedGrants, keyActs, keyCallers, keyTargets } from './grants.ts'
import { describedStatuses, operationsByPath } from './operations.ts'
import { createMatrix, thingsOf } from './things.ts'
import { startWorld, type World } from './world.ts'

let world: World
let context: Omit<Context, 'platform' | 'succeeds'>
/** Context of the other organization. */
let theirs: typeof context
let theirKey: Record<string, string>
let credentials: Credential[]
let rightFor: (id: string) => Credential
let scoped: Credential[]
/** By operation id; undefined = needs no key. */
let operations: Map<string, Operation | undefined>
/** Method and path by operation id, as `GET /v1/sessions/{sessionId}`. */
let paths: Map<string, string>
/** Logged in to the console. */
let somebody: Person
let cells = 0

beforeAll(async () => {
  world = await startWorld()
  const byPath = operationsByPath(world.app.swagger())
  paths = new Map([...byPath].map(([path, { operationId }]) => [operationId, path]))
  const matrix = await createMatrix(world)
  const { own, other } = matrix
  ;({ credentials, context, operations, rightFor } = matrix)
  scoped = await createScopedKeys(world, own)
  const { gate } = await createGateTokens(world, { own: other, other: own })
  theirs = { ...context, gate, ...thingsOf(world, other) }
  theirKey = await secretKey(world, { organizationId: other })
})
afterAll(() => world.stop())
afterAll(() => console.log(`authorization matrix: ${cells} cells`))

function operationOf(id: string): Operation {
  const operation = operations.get(id)
  if (!operation) throw new Error(`${id} is not described, or needs no key`)
  return operation
}

function endpointOf(id: string): Endpoint {
  const endpoint = endpoints[id]
  if (!endpoint) throw new Error(`${id} has no example`)
  return endpoint
}

function count(example: Example, given: Record<string, string>) {
  cells++
  return call(world.app, { example, given })
}

async function seen(
  id: string,
  { platform, headers }: Credential,
  { succeeds }: { succeeds: boolean },
) {
  const example = await endpointOf(id).example({ ...context, platform, succeeds })
  const { message, ...cell } = await count(example, headers)
  // The message names what is missing.
  if (cell.code === 'auth.insufficient_scope') {
    const scope = operationOf(id).scope ?? ''
    expect(message).toBe(messageOf('auth.insufficient_scope', { scope }))
  }
  return cell
}

/** Compares a row of the matrix as a whole, so that a failure shows every cell that is wrong. */
async function expectRow(id: string, row: Credential[]): Promise<void> {
  const actual: Record<string, unknown> = {}
  const expected: Record<string, Cell> = {}
  for (const credential of row) {
    const cell = expectedCell(operationOf(id), endpointOf(id), credential)
    expected[credential.name] = cell
    actual[credential.name] = await seen(id, credential, { succeeds: cell.status < 300 })
  }
  expect(actual).toEqual(expected)
}

const keyed = Object.keys(endpoints)

test('the matrix has every operation of the interface description', () => {
  const described = [...operations]
    .filter(([, operation]) => operation !== undefined)
    .map(([id]) => id)
  expect(described.sort()).toEqual(keyed.toSorted())
  const open = [...operations].filter(([, operation]) => operation === undefined).map(([id]) => id)
  expect(open.sort()).toEqual(Object.keys(openEndpoints).sort())
})

test.each(keyed)('%s asks for the key and the scope that the specification names', async (id) => {
  const { scope, token, example } = endpointOf(id)
  const { url } = await example({ ...context, platform: 'web', succeeds: false })
  const ownOrganization = url.startsWith('/v1/organizations/')
  const keyType = token ?? (scope === undefined ? 'publishable' : 'secret')
  expect(operationOf(id)).toEqual({ keyType, scope, ownOrganization })
})

describe('every credential', () => {
  test.each(keyed)('on %s', (id) => expectRow(id, credentials))
})

test.each(keyed)('a cookie of the console is nothing to %s', async (id) => {
  const { organizationId } = context
  somebody ??= await person(world.app, world.deps, { organizationId, role: 'admin' })
  const given = { ...somebody.headers, 'tidegate-environment': 'live' }
  const { message: _, ...cell } = await count(
    await endpointOf(id).example({ ...context, platform: 'web', succeeds: false }),
    given,
  )
  expect(cell).toEqual(refused('auth.missing_api_key', false))
})

describe('every scope alone', () => {
  test.each(keyed)('on %s', (id) => expectRow(id, scoped))
})

describe('what a key may make of keys', () => {
  test.each(keyCallers)('$name', async (caller) => {
    const organizationId = await world.organization(`grants-${keyCallers.indexOf(caller)}`)
    const headers = await secretKey(world, { organizationId, ...caller })
    for (const target of keyTargets) {
      const { keyId } = await world.issue({ organizationId, ...target.request })
      const seen: Record<string, unknown> = {}
      for (const act of keyActs) {
        const { message: _, ...cell } = await count(
          act.example({ organizationId, keyId, target }),
          headers,
        )
        seen[act.name] = cell
      }
      expect({ [target.name]: seen }).toEqual({ [target.name]: expectedGrants(caller, target) })
    }
  })
})

describe('what another organization has, by its real id and under the path of one’s own', () => {
  const own = () => rightFor('listOrganizationApiKeys').headers
  const asked = keyed.filter((id) => endpointOf(id).elsewhere === 404 && endpointOf(id).scope)

  test.each(asked)('%s does not find it, and its owner does', async (id) => {
    const { example, success } = endpointOf(id)
    const { organizationId } = context
    const things = { ...theirs, ...thingsOf(world, theirs.organizationId) }
    const foreign = await example({ ...things, organizationId, platform: 'web', succeeds: false })
    const { message: _, ...refusal } = await count(foreign, own())
    expect(refusal).toEqual({ status: 404, code: 'request.not_found', charged: true })
    const request = await example({ ...things, platform: 'web', succeeds: false })
    expect((await count(request, theirKey)).status).toBe(success)
  })

  test('there are ids of visitors, users, sessions, keys, endpoints, events and services among them', () => {
    expect(asked.length).toBeGreaterThanOrEqual(20)
    expect(asked).toEqual(expect.arrayContaining(['splitVisitor', 'mergeVisitors', 'eraseUser']))
  })

  test('a visitor of one’s own takes no session and no visitor of theirs', async () => {
    const [mine, other] = [
      await context.person({ fresh: true }),
      await theirs.person({ fresh: true }),
    ]
    const url = `/v1/organizations/${context.organizationId}/visitors/${mine.visitorId}`
    const reason = 'They are mine.'
    const split = { session_ids: [other.sessionId], reason }
    const merge = { visitor_id: other.visitorId, reason }
    const cells = [
      await count({ method: 'POST', url: `${url}/splits`, body: split }, own()),
      await count({ method: 'POST', url: `${url}/merges`, body: merge }, own()),
    ]
    expect(cells.map(({ status }) => status)).toEqual([422, 404])
    const { status } = await count(
      { method: 'GET', url: `/v1/fingerprints/${other.visitorId}` },
      theirKey,
    )
    expect(status).toBe(200)
  })
})

describe('an id that nothing can have', () => {
  const ids = ['%00', 'a%00b', '%0A', '%7F', '%C2%85', '%EF%BF%BD', '%2F', 'x'.repeat(257)]

  test.each(keyed)('in the path of %s is a mistake of the caller', async (id) => {
    const [, path = ''] = paths.get(id)?.split(' ') ?? []
    const { platform, headers } = rightFor(id)
    const example = await endpointOf(id).example({ ...context, platform, succeeds: false })
    const segments = example.url.split('/')
    for (const [place, name] of path.split('/').entries()) {
      if (!name.startsWith('{')) continue
      for (const text of ids) {
        const { status } = await count(
          { ...example, url: segments.with(place, text).join('/') },
          headers,
        )
        expect([name, text, status]).toEqual([
          name,
          text,
          expect.toSatisfy((s) => s >= 400 && s < 500),
        ])
      }
    }
  })

  test('there are such paths', () => {
    expect([...paths.values()].filter((path) => path.includes('{')).length).toBeGreaterThanOrEqual(
      30,
    )
  })
})

describe('an organization path that is not the key’s own', () => {
  const ids = [
    'org_00000000000000000000000000',
    'org_x',
    'own',
    '%20',
    'ORG_00000000000000000000000000',
  ]
  test('is 403, whether or not there is one, on every endpoint below it', async () => {
    const right = credentials.find(({ name }) => name === 'the right secret key')
    const below = [...operations]
      .filter(([, operation]) => operation?.ownOrganization)
      .map(([id]) => id)
    expect(below.length).toBeGreaterThanOrEqual(15)
    for (const id of below) {
      for (const organizationId of ids) {
        const example = await endpointOf(id).example({
          ...context,
          organizationId,
          platform: 'web',
          succeeds: false,
        })
        const { message: _, ...cell } = await count(example, right?.headers ?? {})
        const denied = { status: 403, code: 'auth.organization_access_denied', charged: true }
        expect([id, organizationId, cell]).toEqual([id, organizationId, denied])
      }
    }
  })
})

describe('a compressed body', () => {
  const missing = { status: 401, code: 'auth.missing_api_key', charged: false }
  const encoding = { 'content-encoding': 'gzip' }

  test.each(keyed)('is refused on %s, and only to those who may send it', async (id) => {
    const { platform, headers } = rightFor(id)
    const example = await endpointOf(id).example({ ...context, platform, succeeds: false })
    if (example.body === undefined) return
    const { message: _, ...anyone } = await count(example, encoding)
    expect(anyone).toEqual(missing)
    const { message, ...cell } = await count(example, { ...headers, ...encoding })
    const charged = endpointOf(id).token === undefined
    expect(cell).toEqual({ status: 415, code: 'request.invalid_content_type', charged })
  })

  test.each(Object.entries(openEndpoints))('is refused on %s', async (_, endpoint) => {
    const example = await endpoint.example(context)
    if (example.body === undefined) return
    const { message, ...cell } = await count(example, encoding)
    expect(cell).toEqual({ status: 415, code: 'request.invalid_content_type', charged: false })
  })
})

test('the method QUERY is refused alike with and without a key', async () => {
  await world.app.listen({ port: 0, host: '127.0.0.1' })
  for (const id of keyed) {
    const { platform, headers } = rightFor(id)
    const { url, method } = await endpointOf(id).example({ ...context, platform, succeeds: false })
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    for (const given of ['', lines.join('')]) {
      const raw = `QUERY ${url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${given}\r\n`
      const answer = await sendRaw(world.app, raw)
      expect([id, answer.status, answer.headers['x-ratelimit-cost']]).toEqual([id, 405, undefined])
      expect(String(answer.headers.allow).split(', ')).toContain(method)
      cells++
    }
  }
})

test('a request that is no proper HTTP or JSON has a status that the description lists', async () => {
  if (!world.app.server.listening) await world.app.listen({ port: 0, host: '127.0.0.1' })
  const statuses = describedStatuses(world.app.swagger())
  const seen = new Set<number>()
  for (const id of keyed) {
    const { platform, headers } = rightFor(id)
    const { url, method } = await endpointOf(id).example({ ...context, platform, succeeds: false })
    const key = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
    const start = `${method} ${url} HTTP/1.1\r\nConnection: close\r\n${key.join('')}`
    const withBody = (type: string, length: number) =>
      `${start}Host: a\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n${'{'.repeat(Math.min(length, 9))}`
    const requests = [
      `${start}\r\n`,
      `${start}Host: a\r\nX-Long: ${'x'.repeat(20_000)}\r\n\r\n`,
      withBody('application/json', 9),
      withBody('text/xml', 9),
      withBody('application/json', 9_000_000),
    ]
    for (const raw of requests) {
      const { status } = await sendRaw(world.app, raw)
      expect({ [id]: statuses.get(id) }).toEqual({ [id]: expect.arrayContaining([status]) })
      seen.add(status)
      cells++
    }
  }
  expect([...seen]).toEqual(expect.arrayContaining([400, 413, 415, 431]))
})

describe('an endpoint that needs no key', () => {
  test.each(Object.entries(openEndpoints))('%s answers anyone alike', async (_id, endpoint) => {
    for (const authorization of [undefined, 'Basic x', 'Bearer nonsense', 'Bearer sk_live_x']) {
      const headers = authorization === undefined ? {} : { authorization }
      const { message: _, ...cell } = await count(await endpoint.example(context), headers)
      expect([authorization, cell]).toEqual([
        authorization,
        { status: endpoint.success, code: null, charged: false },
      ])
    }
  })
})

// The world throws at its end where an answer was not as /openapi.json says.
test('there are at least 500 cells', () => {
  expect(cells).toBeGreaterThanOrEqual(500)
})
