import { afterEach, beforeEach, expect, test } from 'vitest'
import { unavailable } from '../../../../infra/errors/errors.ts'
import { createSweep } from '../../../../services/webhooks/dispatch/sweep.ts'
import { take } from '../../../../services/webhooks/queue.ts'
import { openQueueWorld, type QueueWorld } from './queue-world.ts'

const now = Date.UTC(2026, 10, 21, 12)
const endpointId = 'we_1'
const dueAt = now - 60_000
let world: QueueWorld
let elapsed: number

beforeEach(async () => {
  elapsed = 0
  world = await openQueueWorld()
})
afterEach(() => world.close())

/** Sweeps as on a log without records; `behind` while the read model does not show them. */
function sweepOf({ behind = () => false }: { behind?: () => boolean } = {}) {
  return createSweep({
    pool: world.pool,
    log: {
      async endPositions(topic) {
        return behind() ? [{ topic, partition: 0, offset: 1 }] : []
      },
      partitionOf: async () => 0,
    },
    applied: { waitFor: () => Promise.reject(unavailable(new Error('behind'))) },
    clock: () => now,
    monotonic: () => elapsed,
  })
}

const takeAs = (owner: string, leaseMs: number) =>
  take(world.pool, { owner, leaseMs, quotas: [{ endpointId, max: 10 }], free: 10, now })

test('the first sweep queues all that is pending and not in the queue, due or not', async () => {
  await world.show({ endpointId, count: 1, dueAt })
  await world.show({ endpointId: 'we_2', count: 1, dueAt: now + 60_000 })
  await world.apply('we_2/1', { attempts: 3, nextAttemptAt: now + 60_000 })
  expect(await sweepOf()([])).toMatchObject({ count: 2, hasMore: false })
  expect(await world.rows()).toEqual({
    'we_1/1': { dueAt: dueAt + 1, attempts: 0, owner: null },
    'we_2/1': { dueAt: now + 60_000, attempts: 3, owner: null },
  })
})

test('what is due for ten seconds and missing, ended, or attempted meanwhile is put right every twenty seconds', async () => {
  const sweep = sweepOf()
  await sweep([])
  await world.show({ endpointId, count: 4, dueAt })
  await world.queue({ endpointId, count: 5, dueAt })
  await world.pool.query(`delete from tidegate.webhook_queue where delivery_id = 'we_1/1'`)
  await world.apply('we_1/2', { status: 'succeeded', attempts: 1 })
  await world.apply('we_1/3', { attempts: 2, nextAttemptAt: now + 5 })
  elapsed = 19_999
  expect(await sweep([])).toMatchObject({ count: 0 })
  elapsed = 20_000
  expect(await sweep([])).toMatchObject({ count: 4 })
  expect(await world.rows()).toEqual({
    'we_1/1': { dueAt: dueAt + 1, attempts: 0, owner: null },
    'we_1/3': { dueAt: now + 5, attempts: 2, owner: null },
    'we_1/4': { dueAt: dueAt + 4, attempts: 0, owner: null },
  })
})

test('a delivery whose process died is taken again as the log knows it, once its timeout has expired', async () => {
  await world.due({ endpointId, count: 3, dueAt })
  const sweep = sweepOf()
  await sweep([])
  await takeAs('dead', 0)
  await world.apply('we_1/1', { status: 'succeeded', attempts: 1 })
  await world.apply('we_1/2', { attempts: 1, nextAttemptAt: now - 1 })
  expect(await takeAs('me', 60_000)).toEqual([])
  expect(await sweep([])).toMatchObject({ count: 3 })
  const taken = await takeAs('me', 60_000)
  expect(taken.map(({ id, attempts }) => [id, attempts])).toEqual([
    ['we_1/3', 0],
    ['we_1/2', 1],
  ])
})

test('nothing is put right while the read model does not show what the log has', async () => {
  await world.due({ endpointId, count: 1, dueAt })
  await takeAs('dead', 0)
  let isBehind = true
  const sweep = sweepOf({ behind: () => isBehind })
  expect(await sweep([])).toMatchObject({ count: 0 })
  expect(await world.inFlight()).toEqual(['we_1/1'])
  isBehind = false
  await sweep([])
  expect(await world.inFlight()).toEqual([])
})

test('a look for what is late that fails keeps nobody from taking over, and rests before the next', async () => {
  await world.due({ endpointId, count: 1, dueAt })
  await takeAs('dead', 0)
  let isBroken = true
  const sweep = createSweep({
    pool: world.pool,
    log: {
      async endPositions() {
        if (isBroken) throw new Error('no log')
        return []
      },
      partitionOf: async () => 0,
    },
    applied: { waitFor: async () => {} },
    clock: () => now,
    monotonic: () => elapsed,
  })
  await world.show({ endpointId: 'we_2', count: 1, dueAt })
  await expect(sweep([])).rejects.toThrow('no log')
  isBroken = false
  expect(await sweep([])).toMatchObject({ count: 1 })
  expect(await world.inFlight()).toEqual([])
  elapsed = 19_999
  expect(await sweep([])).toMatchObject({ count: 0 })
  elapsed = 20_000
  expect(await sweep([])).toMatchObject({ count: 1 })
})

test('what lives is left alone: a timeout that runs, and what the sweeper itself has in flight', async () => {
  await world.due({ endpointId, count: 1, dueAt })
  await world.due({ endpointId: 'we_2', count: 1, dueAt })
  await takeAs('slow', 0)
  await take(world.pool, {
    owner: 'busy',
    leaseMs: 60_000,
    quotas: [{ endpointId: 'we_2', max: 1 }],
    free: 1,
    now,
  })
  expect(await sweepOf()(['we_1/1'])).toMatchObject({ count: 0 })
  expect(await world.inFlight()).toEqual(['we_1/1', 'we_2/1'])
})

test('one process sweeps at a time', async () => {
  await world.show({ endpointId, count: 1, dueAt })
  const looking = Promise.withResolvers<void>()
  const going = Promise.withResolvers<void>()
  const first = createSweep({
    pool: world.pool,
    log: {
      async endPositions() {
        looking.resolve()
        await going.promise
        return []
      },
      partitionOf: async () => 0,
    },
    applied: { waitFor: async () => {} },
    clock: () => now,
  })
  const sweeping = first([])
  await looking.promise
  const second = sweepOf()
  expect(await second([])).toMatchObject({ count: 0 })
  going.resolve()
  expect(await sweeping).toMatchObject({ count: 1 })
  // It has not had its own first look, and does not rest before that.
  await world.show({ endpointId: 'we_2', count: 1, dueAt: now + 60_000 })
  expect(await second([])).toMatchObject({ count: 1 })
})
