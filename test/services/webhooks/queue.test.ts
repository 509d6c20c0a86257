import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createPool } from '../../../infra/postgres/pool.ts'
import {
  dueEndpoints,
  enqueue,
  finish,
  inFlightDeliveries,
  putBack,
  renew,
  take,
} from '../../../services/webhooks/queue.ts'
import { createNumbers } from '../../support/hand.ts'
import { hex, openQueueWorld, type QueueWorld } from './dispatch/queue-world.ts'

const now = Date.UTC(2026, 10, 21, 12)
let world: QueueWorld

beforeAll(async () => {
  world = await openQueueWorld()
})
afterAll(async () => {
  await world?.close()
})

/** A request as its owner makes it; long enough for any test. */
type TakeRequest = Parameters<typeof take>[1]

function request(endpointIds: string[], some: Partial<TakeRequest> = {}): TakeRequest {
  const quotas = endpointIds.map((endpointId) => ({ endpointId, max: 10 }))
  return { owner: 'me', leaseMs: 60_000, free: 100, quotas, now, ...some }
}

async function dueEndpoint(count: number, dueAt = now - 10_000): Promise<string> {
  const endpointId = `we_${hex(16)}`
  await world.due({ endpointId, count, dueAt })
  return endpointId
}

const idsOf = (deliveries: { id: string }[]) => deliveries.map(({ id }) => id)
const takeIds = async (...args: Parameters<typeof request>) =>
  idsOf(await take(world.pool, request(...args)))

describe('taking', () => {
  test('hides what is due, oldest first, and not what is not', async () => {
    const endpointId = await dueEndpoint(3, now - 2)
    const taken = await take(world.pool, request([endpointId]))
    const about = {
      endpointId,
      organizationId: 'org',
      attempts: 0,
      attemptsInRound: 0,
      traceparent: null,
    }
    expect(taken).toEqual([
      { ...about, id: `${endpointId}/1`, eventId: 'evt_1', dueAt: now - 1 },
      { ...about, id: `${endpointId}/2`, eventId: 'evt_2', dueAt: now },
    ])
    expect(await inFlightDeliveries(world.pool, [`${endpointId}/1`, `${endpointId}/3`])).toEqual(
      new Set([`${endpointId}/1`]),
    )
  })

  test('gives nothing twice, and at most ten of an endpoint', async () => {
    const endpointId = await dueEndpoint(25)
    const first = await takeIds([endpointId])
    expect(first).toHaveLength(10)
    expect(await takeIds([endpointId], { owner: 'you' })).toEqual([])
    const finished = first.slice(0, 4).map((deliveryId) => ({ deliveryId, nextAttemptAt: null }))
    await finish(world.pool, { owner: 'me', finished })
    const second = await takeIds([endpointId], { owner: 'you' })
    expect(second).toEqual([11, 12, 13, 14].map((n) => `${endpointId}/${n}`))
  })

  test('gives each endpoint one before any gets a second', async () => {
    const crowded = await dueEndpoint(10_000, now - 1_000_000)
    const others = await Promise.all(Array.from({ length: 20 }, () => dueEndpoint(3)))
    const taken = await take(world.pool, request([crowded, ...others], { free: 42 }))
    const counts = new Map<string, number>()
    for (const { endpointId } of taken) counts.set(endpointId, (counts.get(endpointId) ?? 0) + 1)
    expect([...counts.values()].toSorted()).toEqual(Array(21).fill(2))
  })

  test('passes what the read model does not show, has ended there, or was attempted more often', async () => {
    const endpointId = `we_${hex(16)}`
    await world.queue({ endpointId, count: 4, dueAt: now - 10_000 })
    expect(await takeIds([endpointId])).toEqual([])
    await world.show({ endpointId, count: 3, dueAt: now - 10_000 })
    await world.apply(`${endpointId}/1`, { status: 'succeeded', attempts: 1 })
    await world.apply(`${endpointId}/2`, { attempts: 1, nextAttemptAt: now - 5 })
    expect(await takeIds([endpointId])).toEqual([`${endpointId}/3`])
  })

  test('waits for the read model to show the attempt before', async () => {
    const endpointId = await dueEndpoint(1)
    const [deliveryId = ''] = await takeIds([endpointId])
    await finish(world.pool, { owner: 'me', finished: [{ deliveryId, nextAttemptAt: now - 1 }] })
    expect(await takeIds([endpointId])).toEqual([])
    await world.apply(deliveryId, { attempts: 1, nextAttemptAt: now - 1 })
    expect(await take(world.pool, request([endpointId]))).toMatchObject([
      { attempts: 1, dueAt: now - 1 },
    ])
  })
})

describe('a delivery in flight', () => {
  test('is put back, finished or renewed only by its owner', async () => {
    const endpointId = await dueEndpoint(2)
    const [a = '', b = ''] = await takeIds([endpointId])
    await putBack(world.pool, { owner: 'you', deliveryIds: [a, b] })
    await finish(world.pool, { owner: 'you', finished: [{ deliveryId: a, nextAttemptAt: null }] })
    expect(await renew(world.pool, { owner: 'you', deliveryIds: [a], leaseMs: 1 })).toEqual(
      new Set(),
    )
    expect(await inFlightDeliveries(world.pool, [a, b])).toEqual(new Set([a, b]))
    expect(
      await renew(world.pool, { owner: 'me', deliveryIds: [a, 'unknown'], leaseMs: 1 }),
    ).toEqual(new Set([a]))
    await putBack(world.pool, { owner: 'me', deliveryIds: [a, b] })
    expect(await takeIds([endpointId])).toEqual([a, b])
  })
})

test('an event is queued once for each endpoint, and one that is called directly never', async () => {
  const own = await openQueueWorld()
  const event = {
    event_id: 'evt_1',
    organization_id: 'org_1',
    environment: 'live' as const,
    type: 'webhook.test',
    subject_type: 'session',
    subject_id: 'sid_1',
    data: '{}',
    created_at: 5,
    endpoint_ids: ['we_1', 'we_2'],
    route: 'queued' as const,
  }
  await enqueue(own.pool, [event, event, { ...event, event_id: 'evt_2', route: 'direct' as const }])
  await enqueue(own.pool, [event])
  expect(Object.values(await own.rows())).toEqual(
    Array(2).fill({ dueAt: 5, attempts: 0, owner: null }),
  )
  await own.close()
})

describe('what is due', () => {
  const ids = Array.from({ length: 12 }, (_, i) => `we_${String.fromCharCode(97 + i)}`)
  const dueOf = (i: number) => 1 + 4 * i
  let own: QueueWorld

  beforeEach(async () => {
    own = await openQueueWorld()
    for (const [i, endpointId] of ids.entries())
      await own.due({ endpointId, count: dueOf(i), dueAt: now - 1000 })
    await own.due({ endpointId: 'we_b1', count: 3, dueAt: now + 70 })
    return () => own.close()
  })

  const expected = (most: number) =>
    ids.map((endpointId, i) => ({
      endpointId,
      organizationId: 'org',
      due: Math.min(most, dueOf(i)),
    }))

  test.each([
    ['all there is of it where that is little', 1000, Infinity],
    ['found endpoint by endpoint where it is much', 100, 10],
  ])('is %s', async (_what, firstRows, most) => {
    const found = await dueEndpoints(own.pool, { now, firstRows })
    expect(found).toEqual(expected(most))
  })

  test('is nothing when nothing waits, and when all is taken', async () => {
    expect(await dueEndpoints(own.pool, { now: now - 5000 })).toEqual([])
    await own.pool.query(`update tidegate.webhook_queue set owner = 'you' where due_at <= $1`, [
      now,
    ])
    expect(await dueEndpoints(own.pool, { now })).toEqual([])
  })
})

test('many processes at once: no delivery is taken twice, and no endpoint ever has more than ten requests', async () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
  console.log(`takers: seed ${seed}`)
  const next = createNumbers(seed)
  const own = await openQueueWorld()
  const endpoints = Array.from({ length: 2 }, (_, i) => `we_${i}`)
  for (const endpointId of endpoints)
    await own.due({ endpointId, count: 400, dueAt: now - 100_000 })
  const pool = createPool({ url: own.pool.options.connectionString ?? '', max: 24 })
  const made: string[] = []
  const running = new Map<string, number>()
  let most = 0

  async function make(
    { id, endpointId }: { id: string; endpointId: string },
    owner: string,
  ): Promise<void> {
    const count = (running.get(endpointId) ?? 0) + 1
    running.set(endpointId, count)
    most = Math.max(most, count)
    await pool.query('select pg_sleep($1)', [next() / 100])
    running.set(endpointId, (running.get(endpointId) ?? 0) - 1)
    if (next() < 0.1) return putBack(pool, { owner, deliveryIds: [id] })
    made.push(id)
    await finish(pool, { owner, finished: [{ deliveryId: id, nextAttemptAt: null }] })
  }

  async function taker(owner: string): Promise<void> {
    while (made.length < 800) {
      const quotas = endpoints.map((endpointId) => ({
        endpointId,
        max: 1 + Math.floor(next() * 10),
      }))
      const free = 1 + Math.floor(next() * 20)
      const taken = await take(pool, { owner, leaseMs: 60_000, free, quotas, now })
      await Promise.all(taken.map((delivery) => make(delivery, owner)))
    }
  }

  await Promise.all(Array.from({ length: 12 }, (_, i) => taker(`taker ${i}`)))
  await pool.end()
  const left = await own.rows()
  await own.close()
  expect(new Set(made).size).toBe(800)
  expect(made).toHaveLength(800)
  expect(left).toEqual({})
  expect(most).toBeGreaterThan(5)
  expect(most).toBeLessThanOrEqual(10)
})
