import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type ErrorEntry, errorTable } from '../../infra/errors/error-table.ts'
import { type ErrorCode, errorCodes } from '../../infra/errors/errors.ts'
import { startWorld, type World } from '../authorization/world.ts'
import { requestsOf } from './idempotent-requests.ts'

const reference = z.object({ $ref: z.string() })
const operation = z.object({
  operationId: z.string(),
  summary: z.string(),
  description: z.string().optional(),
  tags: z.array(z.string()).length(1),
  security: z.array(z.record(z.string(), z.array(z.string()))),
  'x-required-scope': z.string().optional(),
  parameters: z.array(z.object({ name: z.string() })).default([]),
  requestBody: z.unknown().optional(),
  responses: z.record(
    z.string(),
    z.object({ description: z.string(), headers: z.record(z.string(), reference).default({}) }),
  ),
})
type Operation = z.output<typeof operation>
const document = z.object({ paths: z.record(z.string(), z.record(z.string(), operation)) })

let world: World
let all: { method: string; path: string; one: Operation }[]

beforeAll(async () => {
  world = await startWorld()
  const response = await world.app.inject('/openapi.json')
  const { paths } = document.parse(response.json())
  all = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, one]) => ({ method, path, one })),
  )
})
afterAll(() => world.stop())

const entryOf = (code: ErrorCode): ErrorEntry => errorTable[code]
const opens = (one: Operation) => Object.keys(one.security[0] ?? {})[0]
const keyed = () => all.filter(({ one }) => /Key$/.test(opens(one) ?? ''))
const tokened = () => all.filter(({ one }) => /Token$/.test(opens(one) ?? ''))
const names = (some: typeof all) => some.map(({ one }) => one.operationId)

/** For people, with what their pages load. */
const undescribed = [
  'GET /',
  'GET /assets/mark.svg',
  'GET /assets/site.css',
  'GET /gate/consent/{gateSessionId}',
  'GET /gate/receipt/{gateSessionId}',
  'GET /llms.txt',
]
const isFile = (route: string) =>
  route.startsWith('GET /gate/assets/') || /^GET \/docs(?:\/|$)/.test(route)
// Its routes are those of `/v1` once more, for people.
const isOfConsole = (route: string) => route.includes(' /console')

test('it is valid OpenAPI 3.1', async () => {
  const result = await new Validator().validate({ ...world.app.swagger() })
  expect(result.errors).toBeUndefined()
  expect(result.valid).toBe(true)
})

test('every route that the services add is in it, but for pages and preflights', () => {
  const described = new Set(all.map(({ method, path }) => `${method.toUpperCase()} ${path}`))
  const added = world.routes.filter((route) => !/^(HEAD|OPTIONS) /.test(route))
  expect(added.length).toBeGreaterThan(20)
  const missing = added.filter(
    (route) => !described.has(route) && !isFile(route) && !isOfConsole(route),
  )
  expect(missing.sort()).toEqual(undescribed)
})

test('operation ids are unique, and an endpoint without a key says so', () => {
  expect(new Set(names(all)).size).toBe(all.length)
  expect(names(all.filter(({ one }) => one.security.length === 0)).sort()).toEqual([
    'approveGateSession',
    'cancelGateSession',
    'createGateSession',
    'eraseGateSession',
    'getBrowserSdk',
    'getDescription',
    'getGateRegistryService',
    'getGateSessionConsent',
    'getLiveness',
    'getMetrics',
    'getReadiness',
    'listGateRegistryServices',
    'pingCollect',
    'reportNetworkCheck',
  ])
})

test('what an endpoint says in words about its scope is what its hook enforces', () => {
  const secret = keyed().filter(({ one }) => 'secretKey' in (one.security[0] ?? {}))
  expect(secret.length).toBeGreaterThanOrEqual(14)
  for (const { one } of secret)
    expect(one.description).toContain(
      `Requires the \`${one['x-required-scope']}\` secret-key scope`,
    )
})

describe('responses', () => {
  test('all carry a request id, those that wait Retry-After', () => {
    for (const { one } of all)
      for (const [status, { headers, description }] of Object.entries(one.responses)) {
        expect(Object.keys(headers)).toContain('X-Request-Id')
        expect(description).not.toBe('Default Response')
        if (status === '429' || status === '503')
          expect(Object.keys(headers)).toContain('Retry-After')
      }
  })

  test('of endpoints with a key have the rate limit once the key is verified, and 401, 403 and 429', () => {
    const limits = ['X-RateLimit-Cost', 'X-RateLimit-Limit', 'X-RateLimit-Remaining']
    for (const { one } of keyed()) {
      expect(Object.keys(one.responses)).toEqual(
        expect.arrayContaining(['401', '403', '429', '500', '503']),
      )
      for (const [status, { headers }] of Object.entries(one.responses)) {
        const found = Object.keys(headers).filter((name) => name.startsWith('X-RateLimit'))
        expect([one.operationId, status, found.sort()]).toEqual([
          one.operationId,
          status,
          status === '401' ? [] : limits,
        ])
      }
    }
  })

  test('of endpoints with a token have 401 and 429, and no rate limit of keys', () => {
    expect(names(tokened()).sort()).toEqual([
      'acknowledgeGateSessionDelivery',
      'claimGateSession',
      'createGateLoginSession',
      'pollGateSession',
    ])
    for (const { one } of tokened()) {
      expect(Object.keys(one.responses)).toEqual(
        expect.arrayContaining(['401', '429', '500', '503']),
      )
      expect(JSON.stringify(one.responses)).not.toContain('X-RateLimit')
    }
  })

  test('have the codes of Gate where Gate answers with them, and nowhere else', () => {
    const operations = new Set(names(all))
    for (const code of errorCodes.filter((one) => one.startsWith('gate.'))) {
      const expected = Object.entries(entryOf(code).operations ?? {})
      const found = all.flatMap(({ one }) =>
        Object.entries(one.responses)
          .filter(([, { description }]) => description.includes(`\`${code}\`:`))
          .map(([status]) => [one.operationId, Number(status)] as const),
      )
      expect([code, new Map(found)]).toEqual([code, new Map(expected)])
      for (const [operation] of expected) expect(operations).toContain(operation)
    }
  })

  test('to a body may be 400, 413 and 415', () => {
    for (const { one } of all.filter(({ one }) => one.requestBody !== undefined))
      expect(Object.keys(one.responses)).toEqual(expect.arrayContaining(['400', '413', '415']))
  })
})

describe('Idempotency-Key', () => {
  const taking = () =>
    all.filter(({ one }) => one.parameters.some(({ name }) => name === 'Idempotency-Key'))

  test('is described where something is made', () => {
    expect(names(taking()).sort()).toEqual([
      'acknowledgeGateSessionDelivery',
      'addAgentDirectory',
      'approveGateSession',
      'claimGateSession',
      'consumeGateLoginSessionCode',
      'createGateLoginSession',
      'createGateSession',
      'createManagedGateService',
      'createOrganization',
      'createOrganizationApiKey',
      'createWebhookEndpoint',
      'markSessions',
      'mergeVisitors',
      'rotateOrganizationApiKey',
      'rotateWebhookEndpointSecret',
      'sendTestWebhook',
      'splitVisitor',
    ])
  })

  describe('works where it is described', () => {
    let reached: World
    beforeAll(async () => {
      reached = await startWorld()
    })
    afterAll(() => reached.stop())

    test('a repetition has the answer of the first', async () => {
      const asked = await requestsOf(reached)
      for (const { path, one } of taking()) {
        const { ids, token, body } = asked(one.operationId)
        const url = path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? '')
        const success = Object.keys(one.responses).find((status) => status.startsWith('2'))
        const headers = { authorization: `Bearer ${token}`, 'idempotency-key': one.operationId }
        const send = () =>
          reached.app.inject({ method: 'POST', url, headers, ...(body && { payload: body }) })
        const [first, second] = [await send(), await send()]
        expect([one.operationId, first.statusCode, first.headers['idempotent-replayed']]).toEqual([
          one.operationId,
          Number(success),
          undefined,
        ])
        expect([second.statusCode, second.headers['idempotent-replayed']]).toEqual([
          Number(success),
          'true',
        ])
        expect(second.body).toBe(first.body)
      }
    })
  })
})
