import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createConcurrencyLimits } from '../../../../services/webhooks/dispatch/concurrency.ts'
import { createInFlight, type InFlight } from '../../../../services/webhooks/dispatch/in-flight.ts'
import type { FreeRequests } from '../../../../services/webhooks/dispatch/queue.ts'
import {
  createWork,
  createWorkHealth,
  type WorkOptions,
} from '../../../../services/webhooks/dispatch/work.ts'
import { silent } from '../../../support/projections.ts'
import { openQueueWorld, type QueueWorld } from './queue-world.ts'

const nothing = { deliveries: [], hasMore: false, nextAt: Infinity }
let world: QueueWorld
let inFlight: InFlight

beforeEach(async () => {
  inFlight = createInFlight()
  world = await openQueueWorld()
  return () => world.close()
})

function workWith(some: Partial<WorkOptions>) {
  return createWork({
    pool: world.pool,
    owner: 'me',
    visibilityTimeoutMs: 1000,
    inFlight,
    limits: createConcurrencyLimits(),
    caughtUp: { waitUntilCaughtUp: async () => 'same', isUnchanged: async () => true },
    receive: async () => nothing,
    deliver: async () => {},
    clock: () => 0,
    logger: silent,
    signal: new AbortController().signal,
    meter: { onAttempt: () => {}, onDelivered: () => {}, onSending: () => {} },
    onFree: () => {},
    ...some,
  })
}

test('nothing is received while the read models have not caught up', async () => {
  let calls = 0
  const work = workWith({
    caughtUp: { waitUntilCaughtUp: () => Promise.reject(new Error('behind')), isUnchanged: async () => true },
    async receive() {
      calls++
      return nothing
    },
  })
  await expect(work()).rejects.toThrow('behind')
  expect(calls).toBe(0)
})

test('a look that fails leaves it to the next to report that requests have ended', async () => {
  inFlight.add('a')
  inFlight.endRequest('a')
  const reported: string[][] = []
  const work = workWith({
    async receive({ ended }: FreeRequests) {
      reported.push(ended)
      if (reported.length === 1) throw new Error('no database')
      return nothing
    },
  })
  await expect(work()).rejects.toThrow('no database')
  await work()
  await work()
  expect(reported).toEqual([['a'], ['a'], []])
})

test('where nothing can be received the ends are reported all the same, so that others may make requests there', async () => {
  const ids = Array.from({ length: 512 }, (_, i) => `d${i}`)
  for (const id of ids) inFlight.add(id)
  for (const id of ids) inFlight.endRequest(id)
  await world.pool.query(
    `insert into tidegate.webhook_leases (delivery_id, endpoint_id, owner, expires_at)
     select id, 'we_1', 'me', clock_timestamp() from unnest($1::text[]) id`,
    [ids],
  )
  await workWith({ receive: () => Promise.reject(new Error('taken')) })()
  const { rowCount } = await world.pool.query('select from tidegate.webhook_leases where sending')
  expect(rowCount).toBe(0)
})

const lines: string[] = []
const logger = pino(
  { base: null, timestamp: false },
  { write: (line) => void lines.push(JSON.parse(line).msg) },
)

beforeEach(() => {
  vi.useFakeTimers()
  lines.length = 0
})
afterEach(() => {
  vi.useRealTimers()
})

test('one line says that it began and one that it is over', () => {
  const health = createWorkHealth(logger)
  health.succeeded(500)
  for (let i = 0; i < 3; i++) expect(health.failed(new Error('no database'))).toBe(500)
  expect(health.succeeded(40)).toBe(40)
  health.succeeded(40)
  expect(lines).toEqual(['webhooks cannot be taken, trying again', 'webhooks are taken again'])
})

test('a server is not ready when nothing could be received for ten seconds, until something can', async () => {
  const health = createWorkHealth(logger)
  health.failed(new Error('no database'))
  vi.advanceTimersByTime(9_999)
  health.failed(new Error('no database'))
  await expect(health.check()).resolves.toBeUndefined()
  vi.advanceTimersByTime(1)
  await expect(health.check()).rejects.toThrow('webhooks cannot be taken')
  health.succeeded(500)
  await expect(health.check()).resolves.toBeUndefined()
})
