import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createKeyring } from '../../../infra/crypto/keyring.ts'
import { ApiError, invalidField, unavailable } from '../../../infra/errors/errors.ts'
import { leaseMs, purgeIdempotencyKeys } from '../../../infra/idempotency/store.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { masterKey, startShop } from './idempotency-app.ts'

const day = 24 * 60 * 60 * 1000
let started: Awaited<ReturnType<typeof startShop>>
let counter = 0
const freshKey = () => `order ${++counter}`

beforeAll(async () => {
  started = await startShop()
})
afterAll(() => started.stop())
beforeEach(() => {
  started.shop.work = started.order
  started.shop.orders.clear()
  Object.assign(started.shop, { runs: 0, running: 0, mostAtOnce: 0 })
})

const never = () => new Promise<never>(() => {})

describe('without the header', () => {
  test('every request is a command of its own, made now', async () => {
    const { post, shop } = started
    const [one, two] = [await post(), await post()]
    expect([one.status, two.status]).toEqual([201, 201])
    expect(one.json.id).not.toBe(two.json.id)
    expect(one.json.at).toBe(shop.clock.now)
    expect(one.replayed).toBeUndefined()
    expect(shop.orders.size).toBe(2)
  })
})

describe('with the header', () => {
  test('a repetition gets the same answer, byte for byte, and nothing runs', async () => {
    const { post, shop } = started
    const key = freshKey()
    const first = await post({ key })
    shop.clock.now += day - 1
    const again = await post({ key })
    expect([first.status, first.replayed]).toEqual([201, undefined])
    expect([again.status, again.replayed]).toEqual([201, 'true'])
    expect(again.text).toBe(first.text)
    expect(again.headers['x-request-id']).not.toBe(first.headers['x-request-id'])
    expect(again.headers['content-type']).toBe(first.headers['content-type'])
    expect([first, again].map(({ headers }) => headers['cache-control'])).toEqual([
      'no-store',
      'no-store',
    ])
    expect([shop.runs, shop.orders.size]).toEqual([1, 1])
  })

  test('24 hours later the key is free again', async () => {
    const { post, shop } = started
    const key = freshKey()
    const first = await post({ key })
    shop.clock.now += day
    const later = await post({ key, body: { name: 'b' } })
    expect([later.status, later.replayed]).toEqual([201, undefined])
    expect(later.json.id).not.toBe(first.json.id)
  })

  test('another body, path or method under the key is 422 that names the header', async () => {
    const { post, put, shop } = started
    const key = freshKey()
    await post({ key, body: { a: 1, b: { c: [1, 2], d: null } } })
    const others = [
      await post({ key, body: { a: 1, b: { c: [2, 1], d: null } } }),
      await post({ key, body: { a: 1 } }),
      await post({ key, path: '/orders/1', body: { a: 1, b: { c: [1, 2], d: null } } }),
      await put({ key, body: { a: 1, b: { c: [1, 2], d: null } } }),
    ]
    for (const { status, json } of others) {
      expect(status).toBe(422)
      expect(json.error).toMatchObject({
        code: 'request.validation_failed',
        details: {
          fields: [{ name: 'Idempotency-Key', issue: 'reused' }],
          header_name: 'Idempotency-Key',
        },
      })
      expect(JSON.stringify(json)).not.toContain(key)
    }
    expect(shop.runs).toBe(1)
  })

  test('the order of fields and the query do not make another request', async () => {
    const { post } = started
    const key = freshKey()
    await post({ key, body: { a: 1, b: { c: 2, d: 3 } } })
    const again = await post({ key, path: '/orders?x=1', body: { b: { d: 3, c: 2 }, a: 1 } })
    expect([again.status, again.replayed]).toEqual([201, 'true'])
  })

  test('no body and {} are the same where the route takes none', async () => {
    const { post } = started
    const pairs: [object | null, object | null][] = [
      [null, {}],
      [{}, null],
    ]
    for (const [first, second] of pairs) {
      const key = freshKey()
      await post({ key, body: first })
      const again = await post({ key, body: second })
      expect([again.status, again.replayed]).toEqual([201, 'true'])
    }
    const key = freshKey()
    await post({ key, body: null })
    expect((await post({ key, body: { a: 1 } })).status).toBe(422)
    expect((await post({ key, body: [] })).status).toBe(422)
  })

  test('where the route takes a body, {} is one like others', async () => {
    const { post } = started
    const key = freshKey()
    const path = '/described'
    await post({ key, path, body: {} })
    expect((await post({ key, path, body: {} })).replayed).toBe('true')
    expect((await post({ key, path, body: { a: 1 } })).status).toBe(422)
  })

  test('another organization or environment, or a scope of the route, has keys of its own', async () => {
    const { post, shop } = started
    const key = freshKey()
    const answers = [
      await post({ key }),
      await post({ key, organization: 'org_2' }),
      await post({ key, environment: 'test' }),
      await post({ key, path: '/public' }),
    ]
    expect(answers.map(({ status, replayed }) => [status, replayed])).toEqual(
      answers.map(() => [201, undefined]),
    )
    expect(new Set(answers.map(({ json }) => json.id)).size).toBe(4)
    expect(shop.runs).toBe(4)
    expect((await post({ key, path: '/public', organization: 'org_3' })).replayed).toBe('true')
  })

  test.each([
    ['1 character', 'x', 201],
    [
      '255 characters of all kinds',
      `${' !~az'.repeat(51).slice(0, 254)}z`.trim().padStart(255, '!'),
      201,
    ],
    ['256 characters', 'x'.repeat(256), 422],
    ['nothing', '', 422],
    ['beyond ASCII', 'caf\u00e9', 422],
    ['a control character', 'a\tb', 422],
  ])('%s as key: %#', async (_, key, expected) => {
    const { status, json } = await started.post({
      key,
      path: `/orders/${freshKey().replace(' ', '-')}`,
    })
    expect(status).toBe(expected)
    if (expected === 422) {
      expect(json.error.details).toMatchObject({
        fields: [{ name: 'Idempotency-Key', issue: 'invalid' }],
        header_name: 'Idempotency-Key',
      })
    }
  })
})

describe('at the same time', () => {
  test('the request that comes while the first runs is 409 and may come again after a second', async () => {
    const { post, order, shop } = started
    const key = freshKey()
    const { promise: gate, resolve: goOn } = Promise.withResolvers<void>()
    const { promise: runs, resolve: isRunning } = Promise.withResolvers<void>()
    shop.work = async (command) => {
      isRunning()
      await gate
      return order(command)
    }
    const first = post({ key })
    await runs
    const second = await post({ key })
    expect(second.status).toBe(409)
    expect(second.headers['retry-after']).toBe('1')
    expect(second.json.error).toMatchObject({
      code: 'request.conflict',
      retryable: true,
      details: { header_name: 'Idempotency-Key', next_action: 'retry' },
    })
    goOn()
    const answer = await first
    expect((await post({ key })).text).toBe(answer.text)
  })

  test('64 equal requests to two processes have one effect, and every answer is that one or 409', async () => {
    const { post, open, shop } = started
    const other = await open()
    const key = freshKey()
    const race = Array.from({ length: 64 }, (_, i) => post({ key }, i % 2 ? other : undefined))
    const answers = await Promise.all(race)
    const created = answers.filter(({ status }) => status === 201)
    const refused = answers.filter(({ status }) => status === 409)
    expect(created.length + refused.length).toBe(64)
    expect(created.filter(({ replayed }) => !replayed)).toHaveLength(1)
    expect(new Set(created.map(({ text }) => text)).size).toBe(1)
    expect([shop.runs, shop.mostAtOnce, shop.orders.size]).toEqual([1, 1, 1])
    await other.close()
  })

  test('64 requests for a command whose process died: one goes on with it', async () => {
    const { post, shop } = started
    const key = freshKey()
    shop.work = never
    void post({ key })
    await expect.poll(() => shop.runs).toBe(1)
    shop.work = started.order
    Object.assign(shop, { runs: 0, running: 0, mostAtOnce: 0 })
    shop.clock.now += leaseMs
    const answers = await Promise.all(Array.from({ length: 64 }, () => post({ key })))
    expect(answers.filter(({ status }) => status !== 201 && status !== 409)).toEqual([])
    expect(answers.filter(({ status, replayed }) => status === 201 && !replayed)).toHaveLength(1)
    expect([shop.runs, shop.mostAtOnce, shop.orders.size]).toEqual([1, 1, 1])
  })
})

describe('after a failure', () => {
  test('a refusal is not stored: the key takes a corrected request', async () => {
    const { post, shop, order } = started
    const key = freshKey()
    shop.work = () => Promise.reject(invalidField({ name: 'name', issue: 'invalid' }))
    expect((await post({ key, body: { name: '' } })).status).toBe(422)
    shop.work = order
    const corrected = await post({ key, body: { name: 'good' } })
    expect([corrected.status, corrected.replayed]).toEqual([201, undefined])
  })

  test('a refusal that is an answer is not stored either', async () => {
    const { post, shop, order } = started
    const key = freshKey()
    shop.work = async () => ({ status: 404, body: { nothing: true } })
    const refused = await post({ key })
    expect([refused.status, refused.json]).toEqual([404, { nothing: true }])
    shop.work = order
    expect((await post({ key, body: { other: 1 } })).status).toBe(201)
  })

  test.each([
    ['503', unavailable(new Error('no log'))],
    ['500', new Error('a defect')],
  ])(
    'a %s whose effect has happened: the repetition is the same command, at once',
    async (_, failure) => {
      const { post, shop, order } = started
      const key = freshKey()
      shop.work = async (command) => {
        await order(command)
        throw failure
      }
      expect((await post({ key })).status).toBeGreaterThanOrEqual(500)
      expect(shop.orders.size).toBe(1)
      shop.work = order
      shop.clock.now += 10_000
      const again = await post({ key })
      expect([again.status, again.replayed]).toEqual([201, undefined])
      expect([...shop.orders.values()]).toEqual([
        { id: again.json.id, secret: again.json.secret, at: again.json.at },
      ])
    },
  )

  test('a process that died after its effect blocks for the time of its lock only, and its command is not done again', async () => {
    const { post, shop, order } = started
    const key = freshKey()
    shop.work = async (command) => {
      await order(command)
      return never()
    }
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

  test('a command that is taken over at the end of its 24 hours keeps its key until that has ended', async () => {
    const { post, shop } = started
    const key = freshKey()
    shop.work = () => Promise.reject(unavailable(new Error('no log')))
    await post({ key })
    shop.clock.now += day - 1
    shop.work = never
    void post({ key })
    await expect.poll(() => shop.runs).toBe(2)
    shop.work = started.order
    shop.clock.now += leaseMs - 1
    expect((await post({ key })).status).toBe(409)
    expect((await post({ key, body: { other: 1 } })).status).toBe(422)
    shop.clock.now += 1
    expect((await post({ key, body: { other: 1 } })).status).toBe(201)
  })

  test('a refusal after an attempt of unknown outcome does not make the next attempt another command', async () => {
    const { post, shop, order } = started
    const key = freshKey()
    shop.work = async (command) => {
      await order(command)
      throw unavailable(new Error('no answer from the log'))
    }
    await post({ key })
    shop.work = () => Promise.reject(new ApiError('request.conflict'))
    expect((await post({ key })).status).toBe(409)
    shop.work = order
    const third = await post({ key })
    expect([third.status, shop.orders.size]).toEqual([201, 1])
    expect(shop.orders.has(third.json.id)).toBe(true)
  })

  test('the one who was overtaken while it ran answers what the overtaker stored', async () => {
    const { post, shop, order } = started
    const key = freshKey()
    const { promise: gate, resolve: goOn } = Promise.withResolvers<void>()
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
    goOn()
    expect((await slow).text).toBe(quick.text)
    expect(shop.orders.size).toBe(1)
  })

  test('when the answer cannot be stored the caller has it all the same, and a repetition finds the effect', async () => {
    const { post, shop, order, pool } = started
    const key = freshKey()
    shop.work = async (command) => {
      const answer = await order(command)
      await pool.query('alter table tidegate.idempotency_keys rename to gone')
      return answer
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

test('without the database nothing runs, and the caller is told to come again', async () => {
  const { post, open, shop } = started
  const nowhere = createPool({ url: 'postgres://nobody@127.0.0.1:1/nothing' })
  const cutOff = await open({ reach: nowhere })
  const { status, headers } = await post({ key: freshKey() }, cutOff)
  expect([status, headers['retry-after'], shop.runs]).toEqual([503, '1', 0])
  await Promise.all([cutOff.close(), nowhere.end()])
})

describe('rotation of the master key', () => {
  const [older, newer] = [masterKey(), masterKey()]
  const keyrings = {
    before: createKeyring(older),
    prepared: createKeyring(`${older},${newer}`),
    after: createKeyring(`${newer},${older}`),
  }

  test('an answer and a half-done command outlive it', async () => {
    const { post, open, order, shop } = started
    const [before, after] = [
      await open({ keyring: keyrings.before }),
      await open({ keyring: keyrings.after }),
    ]
    const [done, failed] = [freshKey(), freshKey()]
    const first = await post({ key: done }, before)
    shop.work = async (command) => {
      await order(command)
      throw unavailable(new Error('no log'))
    }
    await post({ key: failed }, before)
    shop.work = order
    const replay = await post({ key: done }, after)
    expect([replay.text, replay.replayed]).toEqual([first.text, 'true'])
    expect((await post({ key: failed }, after)).status).toBe(201)
    expect(shop.orders.size).toBe(2)
    expect((await post({ key: done, body: { other: 1 } }, after)).status).toBe(422)
    await Promise.all([before.close(), after.close()])
  })

  test('where its master key is not known a command waits: it is not done once more', async () => {
    const { post, open, shop } = started
    const [before, only] = [
      await open({ keyring: keyrings.before }),
      await open({ keyring: createKeyring(newer) }),
    ]
    const key = freshKey()
    await post({ key }, before)
    const { status, headers } = await post({ key }, only)
    expect([status, headers['retry-after'], shop.runs]).toEqual([503, '1', 1])
    await Promise.all([before.close(), only.close()])
  })

  test('while processes differ in which key is current there is still one command', async () => {
    const { post, open, shop } = started
    const [prepared, after] = [
      await open({ keyring: keyrings.prepared }),
      await open({ keyring: keyrings.after }),
    ]
    const key = freshKey()
    const answers = await Promise.all(
      Array.from({ length: 16 }, (_, i) => post({ key }, i % 2 ? prepared : after)),
    )
    expect(answers.filter(({ status, replayed }) => status === 201 && !replayed)).toHaveLength(1)
    expect([shop.runs, shop.orders.size]).toEqual([1, 1])
    await Promise.all([prepared.close(), after.close()])
  })
})

describe('the table', () => {
  test('shows neither the key, nor the request, nor the answer', async () => {
    const { post, pool } = started
    const key = `a very recognisable key ${counter++}`
    const { json } = await post({ key, body: { name: 'a very recognisable name' } })
    const { rows } = await pool.query<{ row: string; answer: Buffer | null }>(
      `select t::text as row, answer from tidegate.idempotency_keys t`,
    )
    const dump = rows
      .map(
        ({ row, answer }) => `${row} ${answer?.toString('latin1')} ${answer?.toString('base64')}`,
      )
      .join('\n')
    expect(rows.length).toBeGreaterThan(0)
    for (const text of [key, 'recognisable', json.secret, json.id]) {
      expect(dump).not.toContain(text)
      expect(dump).not.toContain(Buffer.from(text).toString('hex'))
    }
  })

  test('loses what has expired, and nothing else', async () => {
    const { post, pool, shop } = started
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
    expect((await post({ key: recent })).replayed).toBe('true')
  })
})
