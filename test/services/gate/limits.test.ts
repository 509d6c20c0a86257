import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { ApiError } from '../../../infra/errors/errors.ts'
import { toApiError } from '../../../infra/http/error-response.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { createGateLimits, type GateLimits } from '../../../services/gate/limits.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'

type Limit = Parameters<GateLimits['count']>[0]

interface Specified {
  name: Limit
  /** Requests. */
  most: number
  /** Seconds until the first is forgotten, as far as callers are told. */
  wait: number
  /** What the count is for. */
  key: string[]
}

/** As the specification has them; that of cancels is our own. */
const limits: Specified[] = [
  { name: 'create_session', most: 5, wait: 60, key: ['address'] },
  { name: 'poll', most: 30, wait: 60, key: ['token'] },
  { name: 'consent', most: 30, wait: 60, key: ['address'] },
  { name: 'approve', most: 3, wait: 900, key: ['address', 'session'] },
  { name: 'cancel', most: 60, wait: 60, key: ['address'] },
  { name: 'ack', most: 20, wait: 60, key: ['token'] },
  { name: 'create_login', most: 10, wait: 60, key: ['token'] },
  { name: 'verify', most: 60, wait: 60, key: ['organization', 'token'] },
  { name: 'revoke', most: 20, wait: 60, key: ['organization', 'token'] },
  { name: 'consume', most: 30, wait: 60, key: ['organization', 'code'] },
]

let database: TestDatabase
/** Of two processes. */
let processes: [GateLimits, GateLimits]
let closeOther: () => Promise<void>

beforeAll(async () => {
  database = await createTestDatabase()
  const other = createPool({ url: database.url, max: 4 })
  closeOther = () => other.end()
  processes = [createGateLimits(database.pool), createGateLimits(other)]
})
afterAll(async () => {
  await closeOther()
  await database.drop()
})

type Key = [string, ...string[]]

/** Nobody else's, one value for each part. */
function freshKey(parts: string[]): Key {
  const [first = '', ...rest] = parts.map((part) => `${part}-${randomBytes(6).toString('hex')}`)
  return [first, ...rest]
}

/** So many requests at once, to both processes in turn; those that were refused. */
async function refusedOf(name: Limit, key: Key, count: number): Promise<ApiError[]> {
  const taken = Array.from({ length: count }, (_, i) =>
    processes[i % 2 === 0 ? 0 : 1].count(name, ...key),
  )
  const results = await Promise.allSettled(taken)
  return results.flatMap((result) =>
    result.status === 'rejected' ? [toApiError(result.reason)] : [],
  )
}

/** As if so many seconds had gone by. */
async function wait(seconds: number): Promise<void> {
  await database.pool.query('update tidegate.gate_limits set expire = expire - $1', [
    seconds * 1000,
  ])
}

const waitOf = (error: ApiError | undefined) => Number(error?.headers['retry-after'])

describe.each(limits)(
  '$name: $most in $wait s by $key',
  ({ name, most, wait: window, key: parts }) => {
    test('as many pass, in two processes together, and not one more', async () => {
      const key = freshKey(parts)
      const refused = await refusedOf(name, key, most + 7)
      expect(refused.map(({ code, status }) => [code, status])).toEqual(
        Array(7).fill(['gate.rate_limit', 429]),
      )
      for (const one of refused) {
        expect(waitOf(one)).toBeGreaterThan(window - 10)
        expect(waitOf(one)).toBeLessThanOrEqual(window)
      }
    })

    test('each part of the key has counts of its own, and so has each limit', async () => {
      const key = freshKey(parts)
      await refusedOf(name, key, most)
      for (const i of key.keys()) {
        const other: Key = [...key]
        other[i] = `other-${key[i]}`
        expect(await refusedOf(name, other, 1)).toEqual([])
      }
      const others = limits.filter((limit) => limit.name !== name)
      for (const one of others) expect(await refusedOf(one.name, key, 1)).toEqual([])
      expect(await refusedOf(name, key, 1)).toHaveLength(1)
    })

    test('is free again when its window is over, which what was refused does not lengthen', async () => {
      const key = freshKey(parts)
      await refusedOf(name, key, most)
      await wait(window - 20)
      const [refused] = await refusedOf(name, key, 1)
      expect(waitOf(refused)).toBeLessThanOrEqual(name === 'approve' ? 80 : 20)
      // That of approvals is a minute longer than a session: clocks of two processes may differ.
      await wait(name === 'approve' ? 80 : 20)
      expect(await refusedOf(name, key, most)).toEqual([])
      expect(await refusedOf(name, key, 1)).toHaveLength(1)
    })
  },
)

test('a key is stored as a hash: tokens are among them', async () => {
  const key = freshKey(['organization', 'token'])
  await refusedOf('verify', key, 1)
  const { rows } = await database.pool.query<{ key: string }>(
    'select key from tidegate.gate_limits',
  )
  const stored = rows.map((row) => row.key).join()
  for (const part of key) expect(stored).not.toContain(part)
})

test('without the database nothing passes: 503', async () => {
  const gone = createPool({ url: 'postgres://nobody@127.0.0.1:1/none', max: 1 })
  const refused = await createGateLimits(gone)
    .count('poll', 'token')
    .catch((error: unknown) => toApiError(error))
  await gone.end()
  expect(refused).toMatchObject({ code: 'service.unavailable', status: 503 })
})
