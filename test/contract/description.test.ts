import { Validator } from '@seriousme/openapi-schema-validator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type ErrorEntry, errorTable } from '../../infra/errors/error-table.ts'
import { type ErrorCode, errorCodes } from '../../infra/errors/errors.ts'
import { sendExample } from '../authorization/call.ts'
import { bearer, secretKey } from '../authorization/credential.ts'
import { endpoints, openEndpoints } from '../authorization/examples.ts'
import { createExampleContext } from '../authorization/things.ts'
import { startWorld, type World } from '../authorization/world.ts'
import { freshAddress } from '../support/gate-flow.ts'
import type { Answer } from '../support/raw-http.ts'

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
  'GET /llms-full.txt',
  'GET /llms.txt',
  'GET /test/fixtures/collect-protocol/vectors.json',
  'GET /test/fixtures/gate-delivery/vector.v1.json',
  'GET /test/fixtures/sealed-token/vector.v1.json',
  'GET /test/fixtures/sealed-token/vector.v2.json',
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

// Which of them need no key, and which a token, is in the authorization matrix.
test('operation ids are unique', () => {
  expect(new Set(names(all)).size).toBe(all.length)
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
    expect(tokened().length).toBeGreaterThan(0)
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
      'createAlert',
      'createGateLoginSession',
      'createGateSession',
      'createManagedGateService',
      'createOrganization',
      'createOrganizationApiKey',
      'createView',
      'createWebhookEndpoint',
      'markSessions',
      'mergeVisitors',
      'resendWebhookDeliveries',
      'retryWebhookDelivery',
      'rotateOrganizationApiKey',
      'rotateWebhookEndpointSecret',
      'sendTestWebhook',
      'splitVisitor',
    ])
  })

  test('a repetition has the answer of the first, wherever it is described', async () => {
    const own = await world.organization('repeating')
    const context = await createExampleContext(world, {
      own,
      other: await world.organization('other'),
    })
    const { serviceId, signup } = context.gate
    const secret = await secretKey(world, { organizationId: own })
    const keys = { poll: bearer(signup.pollToken), agent: bearer(signup.agentToken ?? '') }
    const service = await world.app.inject({
      url: `/v1/gate/services/${serviceId}`,
      headers: secret,
    })
    // The service of the example is there already.
    const changes: Record<string, object> = {
      createManagedGateService: {
        id: 'twice',
        webhook_endpoint_id: service.json().data.webhook_endpoint_id,
      },
    }
    for (const { operationId, responses } of taking().map(({ one }) => one)) {
      const endpoint = { ...openEndpoints, ...endpoints }[operationId]
      const example = await endpoint?.example({ ...context, succeeds: true })
      if (!example) throw new Error(`${operationId} has no example`)
      const body = Object.assign({}, example.body, changes[operationId])
      const key = endpoints[operationId]?.token
      const given = { ...(key ? keys[key] : secret), 'idempotency-key': operationId }
      const from = freshAddress()
      const send = () => sendExample(world.app, { ...example, body, from }, given)
      const [first, second] = [await send(), await send()]
      const success = Object.keys(responses).find((status) => status.startsWith('2'))
      const told = ({ status, headers }: Answer) => [String(status), headers['idempotent-replayed']]
      expect([operationId, told(first), told(second)]).toEqual([
        operationId,
        [success, undefined],
        [success, 'true'],
      ])
      expect(second.body).toBe(first.body)
    }
  })
})
