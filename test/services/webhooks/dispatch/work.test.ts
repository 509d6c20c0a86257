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
import { type LeaseWorld, openLeaseWorld } from './queue-world.ts'

const nothing = { deliveries: [], hasMore: false, nextAt: Infinity }
let world: LeaseWorld
let inFlight: InFlight

beforeEach(async () => {
  inFlight = createInFlight()
  world = await openLeaseWorld()
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

test('nothing is taken while the read models have not caught up', async () => {
  let takes = 0
  const work = workWith({
    caughtUp: { waitUntilCaughtUp: () => Promise.reject(new Error('behind')), isUnchanged: async () => true },
    async receive() {
      takes++
      return nothing
    },
  })
  await expect(work()).rejects.toThrow('behind')
  expect(takes).toBe(0)
})

test('a take that fails leaves it to the next to tell that requests have ended', async () => {
  inFlight.add('a')
  inFlight.endRequest('a')
  const told: string[][] = []
  const work = workWith({
    async receive({ ended }: FreeRequests) {
      told.push(ended)
      if (told.length === 1) throw new Error('no database')
      return nothing
    },
  })
  await expect(work()).rejects.toThrow('no database')
  await work()
  await work()
  expect(told).toEqual([['a'], ['a'], []])
})

test('where nothing can be taken it is told all the same, so that others may make requests there', async () => {
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
  const trouble = createWorkHealth(logger)
  trouble.succeeded(500)
  for (let i = 0; i < 3; i++) expect(trouble.failed(new Error('no database'))).toBe(500)
  expect(trouble.succeeded(40)).toBe(40)
  trouble.succeeded(40)
  expect(lines).toEqual(['webhooks cannot be taken, trying again', 'webhooks are taken again'])
})

test('a server is not ready when nothing could be taken for ten seconds, until something can', async () => {
  const trouble = createWorkHealth(logger)
  trouble.failed(new Error('no database'))
  vi.advanceTimersByTime(9_999)
  trouble.failed(new Error('no database'))
  await expect(trouble.check()).resolves.toBeUndefined()
  vi.advanceTimersByTime(1)
  await expect(trouble.check()).rejects.toThrow('webhooks cannot be taken')
  trouble.succeeded(500)
  await expect(trouble.check()).resolves.toBeUndefined()
})
