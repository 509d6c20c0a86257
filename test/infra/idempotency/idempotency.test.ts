import { randomBytes } from 'node:crypto'
import type { FastifyInstance, RouteHandlerMethod } from 'fastify'
import type pg from 'pg'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createKeyring, type Keyring } from '../../../infra/crypto/keyring.ts'
import { ApiError, invalidField, unavailable } from '../../../infra/errors/errors.ts'
import {
  type Command,
  type CommandResponse,
  createIdempotency,
} from '../../../infra/idempotency/idempotency.ts'
import { leaseMs, purgeIdempotencyKeys } from '../../../infra/idempotency/store.ts'
import { timeOrderedId } from '../../../infra/ids.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { silent } from '../../support/projections.ts'
import { createTestApp } from '../http/test-app.ts'

const day = 24 * 60 * 60 * 1000
let counter = 0
const freshKey = () => `order ${++counter}`
const masterKey = () => randomBytes(32).toString('base64')

const { pool, drop } = await createTestDatabase()
const keyring = createKeyring(masterKey())
const clock = { now: 1_760_000_000_000 }
const orders = new Map<string, { id: string; secret: string; at: number }>()
/** A shop whose orders are commands. Like a decider, it recognizes a repeated order by its id. */
const shop = { runs: 0, running: 0, mostAtOnce: 0, work: order, clock, orders }
/** Idempotency-Key of the current test. */
let key = ''
beforeEach(() => {
  key = freshKey()
  orders.clear()
  Object.assign(shop, { runs: 0, running: 0, mostAtOnce: 0, work: order })
})

const apps: FastifyInstance[] = []
const app = await startProcess()
afterAll(async () => {
  await Promise.all(apps.map((app) => app.close()))
  await drop()
})

/** The command's effect, which happens once however often the command runs. */
async function order({ random, now }: Command): Promise<CommandResponse> {
  const id = timeOrderedId('key', now, random)
  const secret = random(20).toString('hex')
  if (!orders.has(id)) orders.set(id, { id, secret, at: now })
  return { status: 201, body: { id, secret, at: now, name: 'Zoë "1"' } }
}

async function counted(command: Command): Promise<CommandResponse> {
  shop.runs++
  shop.mostAtOnce = Math.max(shop.mostAtOnce, ++shop.running)
  try {
    return await shop.work(command)
  } finally {
    shop.running--
  }
}

/** Starts a server process. All processes share the database. */
async function startProcess(options: { keyring?: Keyring; pool?: pg.Pool } = {}) {
  const common = { logger: silent, random: randomBytes, clock: () => clock.now }
  const idempotency = createIdempotency({ pool, keyring, ...common, ...options })
  const app = await createTestApp()
  app.addHook('onRequest', async (request) => {
    const [organizationId, environment] = String(request.headers['x-tenant']).split('/')
    request.principal = {
      keyId: 'key_1',
      organizationId: `org_${organizationId}`,
      environment: environment === 'test' ? 'test' : 'live',
      rateLimit: null,
      type: 'secret',
      scopes: [],
      capabilities: [],
      origins: [],
    }
  })
  const run: RouteHandlerMethod = (request, reply) => idempotency.run({ request, reply }, counted)
  app.post('/orders', run)
  app.post('/orders/:id', run)
  app.post('/described', { schema: { body: z.looseObject({}) } }, run)
  app.put('/orders', run)
  app.post('/public', (request, reply) =>
    idempotency.run({ request, reply, scope: 'public' }, counted),
  )
  apps.push(app)
  return app
}

interface Post {
  key?: string
  body?: object | null
  path?: string
  /** Organization and environment. */
  tenant?: string
  method?: 'POST' | 'PUT'
}

/** Sends an order; `body: null` sends none. */
async function post({ key, body = { name: 'a' }, ...rest }: Post = {}, on = app) {
  const { path: url = '/orders', tenant = '1/live', method = 'POST' } = rest
  const idempotencyKey = key !== undefined && { 'idempotency-key': key }
  const response = await on.inject({
    method,
    url,
    headers: { 'content-type': 'application/json', 'x-tenant': tenant, ...idempotencyKey },
    ...(body && { payload: JSON.stringify(body) }),
  })
  const { statusCode: status, headers, body: text } = response
  const replayed = headers['idempotent-replayed'] === 'true'
  return { status, headers, text, json: response.json(), replayed }
}

const never = () => new Promise<never>(() => {})

/** Runs the order, then hangs like a dead process or fails. The effect has happened. */
const orderThen = (end: () => Promise<never>) => async (command: Command) => {
  await order(command)
  return end()
}
const hangs = orderThen(never)
const fails = (error: Error) => orderThen(() => Promise.reject(error))
const rejects = (error: Error) => () => Promise.reject(error)

test('without the header, every request is a separate command', async () => {
  const [first, second] = [await post(), await post()]
  expect(first).toMatchObject({ status: 201, replayed: false, json: { at: shop.clock.now } })
  expect(second.json.id).not.toBe(first.json.id)
  expect(shop.orders.size).toBe(2)
})

test('a repeat gets the same response, byte for byte, without running the command', async () => {
  const first = await post({ key })
  shop.clock.now += day - 1
  const again = await post({ key })
  expect(first).toMatchObject({ status: 201, replayed: false })
  expect(again).toMatchObject({ status: 201, replayed: true, text: first.text })
  expect(again.headers['x-request-id']).not.toBe(first.headers['x-request-id'])
  for (const { headers } of [first, again])
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      'content-type': 'application/json; charset=utf-8',
    })
  expect([shop.runs, shop.orders.size]).toEqual([1, 1])
})

test('a key can be reused after 24 hours', async () => {
  const first = await post({ key })
  shop.clock.now += day
  const later = await post({ key, body: { name: 'b' } })
  expect(later).toMatchObject({ status: 201, replayed: false })
  expect(later.json.id).not.toBe(first.json.id)
})

const described = { body: {}, path: '/described' }
const body = { a: 1, b: { c: [1, 2], d: null } }
test.each<['the same' | 'a different', string, Post, Post]>([
  ['the same', 'the order of fields', { body }, { body: { b: { d: null, c: [1, 2] }, a: 1 } }],
  ['the same', 'the query', { body }, { body, path: '/orders?x=1' }],
  ['a different', 'an element', { body }, { body: { ...body, b: { c: [2, 1], d: null } } }],
  ['a different', 'a missing field', { body }, { body: { a: 1 } }],
  ['a different', 'the path', { body }, { body, path: '/orders/1' }],
  ['a different', 'the method', { body }, { body, method: 'PUT' }],
  ['the same', '{} where no body is taken', { body: null }, { body: {} }],
  ['the same', 'no body for {}', { body: {} }, { body: null }],
  ['a different', '[] for no body', { body: null }, { body: [] }],
  ['a different', 'a body for none', { body: null }, { body: { a: 1 } }],
  ['the same', '{} where a body is taken', described, described],
  ['a different', 'a field instead of {} there', described, { ...described, body: { a: 1 } }],
])('%s request: %s', async (expected, _what, first, second) => {
  await post({ key, ...first })
  const again = await post({ key, ...second })
  expect(shop.runs).toBe(1)
  if (expected === 'the same') return expect(again).toMatchObject({ status: 201, replayed: true })
  const fields = [{ name: 'Idempotency-Key', issue: 'reused' }]
  const details = { fields, header_name: 'Idempotency-Key' }
  const error = { code: 'request.validation_failed', details }
  expect(again).toMatchObject({ status: 422, json: { error } })
  expect(again.text).not.toContain(key)
})

test('keys are separate for each organization, environment and scope of a route', async () => {
  const responses = [
    await post({ key }),
    await post({ key, tenant: '2/live' }),
    await post({ key, tenant: '1/test' }),
    await post({ key, path: '/public' }),
  ]
  expect(responses).toMatchObject(Array(4).fill({ status: 201, replayed: false }))
  expect(new Set(responses.map(({ json }) => json.id)).size).toBe(4)
  expect(shop.runs).toBe(4)
  expect((await post({ key, path: '/public', tenant: '3/live' })).replayed).toBe(true)
})

test.each([
  ['1 character', 'x', 201],
  ['255 characters of all kinds', `${' !~az'.repeat(51).slice(1, 254)}z`.padStart(255, '!'), 201],
  ['256 characters', 'x'.repeat(256), 422],
  ['an empty text', '', 422],
  ['beyond ASCII', 'caf\u00e9', 422],
  ['a control character', 'a\tb', 422],
])('%s as key: %#', async (_, key, expected) => {
  const { status, json } = await post({ key, path: `/orders/${++counter}` })
  expect(status).toBe(expected)
  if (expected === 422)
    expect(json.error.details.fields).toMatchObject([{ name: 'Idempotency-Key', issue: 'invalid' }])
})

interface OrderResponse {
  status: number
  replayed: boolean
  text: string
}

/** Expects that one request created the order, and that all others got its response or 409. */
function expectOneOrder(responses: OrderResponse[]): void {
  const created = responses.filter(({ status }) => status === 201)
  const conflicts = responses.filter(({ status }) => status === 409)
  expect(created.length + conflicts.length).toBe(responses.length)
  expect(created.filter(({ replayed }) => !replayed)).toHaveLength(1)
  expect(new Set(created.map(({ text }) => text)).size).toBe(1)
}

describe('concurrent requests', () => {
  test('get 409 with Retry-After while the first one runs', async () => {
    const { promise: gate, resolve: proceed } = Promise.withResolvers<void>()
    const { promise: runs, resolve: isRunning } = Promise.withResolvers<void>()
    shop.work = async (command) => {
      isRunning()
      await gate
      return order(command)
    }
    const first = post({ key })
    await runs
    const second = await post({ key })
    const details = { header_name: 'Idempotency-Key', next_action: 'retry' }
    const error = { code: 'request.conflict', retryable: true, details }
    expect(second).toMatchObject({ status: 409, headers: { 'retry-after': '1' }, json: { error } })
    proceed()
    const response = await first
    expect((await post({ key })).text).toBe(response.text)
  })

  test('have one effect: of 64 to two processes, all get its response or 409', async () => {
    const other = await startProcess()
    const race = Array.from({ length: 64 }, (_, i) => post({ key }, i % 2 ? other : undefined))
    expectOneOrder(await Promise.all(race))
    expect([shop.runs, shop.mostAtOnce, shop.orders.size]).toEqual([1, 1, 1])
  })

  test('for a command whose process died: one of 64 resumes it', async () => {
    shop.work = never
    void post({ key })
    await expect.poll(() => shop.runs).toBe(1)
    shop.work = order
    Object.assign(shop, { runs: 0, running: 0, mostAtOnce: 0 })
    shop.clock.now += leaseMs
    expectOneOrder(await Promise.all(Array.from({ length: 64 }, () => post({ key }))))
    expect([shop.runs, shop.mostAtOnce, shop.orders.size]).toEqual([1, 1, 1])
  })
})

describe('after a failure', () => {
  test.each<[string, () => Promise<CommandResponse>, number]>([
    ['a thrown error', rejects(invalidField({ name: 'name', issue: 'invalid' })), 422],
    ['a returned 404', async () => ({ status: 404, body: {} }), 404],
  ])('%s is not stored, so the key works for a corrected request', async (_, work, status) => {
    shop.work = work
    expect((await post({ key, body: { name: '' } })).status).toBe(status)
    shop.work = order
    const corrected = await post({ key, body: { name: 'good' } })
    expect(corrected).toMatchObject({ status: 201, replayed: false })
  })

  test.each([
    ['503', unavailable(new Error('no log'))],
    ['500', new Error('a bug')],
  ])('a repeat after a %s whose effect has happened is the same command', async (_, failure) => {
    shop.work = fails(failure)
    expect((await post({ key })).status).toBeGreaterThanOrEqual(500)
    expect(shop.orders.size).toBe(1)
    shop.work = order
    shop.clock.now += 10_000
    const again = await post({ key })
    const { id, secret, at } = again.json
    expect(again).toMatchObject({ status: 201, replayed: false })
    expect([...shop.orders.values()]).toEqual([{ id, secret, at }])
  })

  test('a process that died after its effect blocks repeats only until its lease expires, and the effect happens once', async () => {
    shop.work = hangs
    void post({ key })
    await expect.poll(() => shop.orders.size).toBe(1)
    shop.work = order
    shop.clock.now += leaseMs - 1
    expect((await post({ key })).status).toBe(409)
    shop.clock.now += 1
    const again = await post({ key })
    expect(again.status).toBe(201)
    expect([...shop.orders.keys()]).toEqual([again.json.id])
    expect((await post({ key })).text).toBe(again.text)
  })

  test('a command that is resumed at the end of its 24 hours keeps its key until the lease expires', async () => {
    shop.work = rejects(unavailable(new Error('no log')))
    await post({ key })
    shop.clock.now += day - 1
    shop.work = never
    void post({ key })
    await expect.poll(() => shop.runs).toBe(2)
    shop.work = order
    shop.clock.now += leaseMs - 1
    expect((await post({ key })).status).toBe(409)
    expect((await post({ key, body: { other: 1 } })).status).toBe(422)
    shop.clock.now += 1
    expect((await post({ key, body: { other: 1 } })).status).toBe(201)
  })

  test('a rejected attempt after one of unknown outcome does not make the next one a new command', async () => {
    shop.work = fails(unavailable(new Error('the log timed out')))
    await post({ key })
    shop.work = rejects(new ApiError('request.conflict'))
    expect((await post({ key })).status).toBe(409)
    shop.work = order
    const third = await post({ key })
    expect([third.status, shop.orders.size]).toEqual([201, 1])
    expect(shop.orders.has(third.json.id)).toBe(true)
  })

  test('a slow attempt that was taken over returns the response that the faster one stored', async () => {
    const { promise: gate, resolve: proceed } = Promise.withResolvers<void>()
    shop.work = async (command) => {
      await gate
      const { status, body } = await order(command)
      return { status, body: { ...body, late: true } }
    }
    const slow = post({ key })
    await expect.poll(() => shop.runs).toBe(1)
    shop.work = order
    shop.clock.now += leaseMs
    const quick = await post({ key })
    proceed()
    expect((await slow).text).toBe(quick.text)
    expect(shop.orders.size).toBe(1)
  })

  test('the caller gets a response that cannot be stored, and a repeat finds the effect', async () => {
    shop.work = async (command) => {
      const response = await order(command)
      await pool.query('alter table tidegate.idempotency_keys rename to gone')
      return response
    }
    const first = await post({ key }).finally(() =>
      pool.query('alter table tidegate.gone rename to idempotency_keys'),
    )
    expect(first.status).toBe(201)
    shop.work = order
    shop.clock.now += leaseMs
    expect((await post({ key })).text).toBe(first.text)
    expect(shop.orders.size).toBe(1)
  })
})

test('without the database, nothing runs and the caller gets 503 with Retry-After', async () => {
  const nowhere = createPool({ url: 'postgres://nobody@127.0.0.1:1/nothing' })
  const disconnected = await startProcess({ pool: nowhere })
  const { status, headers } = await post({ key: freshKey() }, disconnected)
  expect([status, headers['retry-after'], shop.runs]).toEqual([503, '1', 0])
  await nowhere.end()
})

describe('a master key rotation', () => {
  const [older, newer] = [masterKey(), masterKey()]
  const startWith = (...keys: string[]) => startProcess({ keyring: createKeyring(keys.join(',')) })

  test('keeps stored responses and unfinished commands', async () => {
    const [before, after] = [await startWith(older), await startWith(newer, older)]
    const [done, failed] = [freshKey(), freshKey()]
    const first = await post({ key: done }, before)
    shop.work = fails(unavailable(new Error('no log')))
    await post({ key: failed }, before)
    shop.work = order
    expect(await post({ key: done }, after)).toMatchObject({ text: first.text, replayed: true })
    expect((await post({ key: failed }, after)).status).toBe(201)
    expect(shop.orders.size).toBe(2)
    expect((await post({ key: done, body: { other: 1 } }, after)).status).toBe(422)
  })

  test('does not run a command again where its master key is unknown', async () => {
    await post({ key }, await startWith(older))
    const { status, headers } = await post({ key }, await startWith(newer))
    expect([status, headers['retry-after'], shop.runs]).toEqual([503, '1', 1])
  })

  test('keeps one command while processes differ in their current key', async () => {
    const [prepared, after] = [await startWith(older, newer), await startWith(newer, older)]
    const responses = await Promise.all(
      Array.from({ length: 16 }, (_, i) => post({ key }, i % 2 ? prepared : after)),
    )
    expectOneOrder(responses)
    expect([shop.runs, shop.orders.size]).toEqual([1, 1])
  })
})

test('the table reveals neither the key, the request nor the response', async () => {
  const key = `a very recognisable key ${counter++}`
  const { json } = await post({ key, body: { name: 'a very recognisable name' } })
  const { rows } = await pool.query<{ row: string; answer: Buffer | null }>(
    `select t::text as row, answer from tidegate.idempotency_keys t`,
  )
  const dump = rows
    .map(({ row, answer }) => row + answer?.toString('latin1') + answer?.toString('base64'))
    .join('\n')
  expect(rows.length).toBeGreaterThan(0)
  for (const text of [key, 'recognisable', json.secret, json.id]) {
    expect(dump).not.toContain(text)
    expect(dump).not.toContain(Buffer.from(text).toString('hex'))
  }
})

test('purges only expired rows', async () => {
  await pool.query('truncate tidegate.idempotency_keys')
  const old = freshKey()
  await post({ key: old })
  shop.clock.now += day / 2
  const recent = freshKey()
  await post({ key: recent })
  shop.clock.now += day / 2 - 1
  expect(await purgeIdempotencyKeys(pool, shop.clock.now)).toBe(0)
  shop.clock.now += 1
  expect(await purgeIdempotencyKeys(pool, shop.clock.now)).toBe(1)
  expect((await post({ key: recent })).replayed).toBe(true)
})
