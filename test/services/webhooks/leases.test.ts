import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createPool } from '../../../infra/postgres/pool.ts'
import {
  findDueEndpoints,
  findExpiredLeases,
  findInFlightDeliveries,
  markRecorded,
  purgeRecorded,
  releaseLeases,
  renewLeases,
  requeueDeliveries,
  takeDeliveries,
} from '../../../services/webhooks/leases.ts'
import { createNumbers } from '../../support/hand.ts'
import { hex, type LeaseWorld, openLeaseWorld } from './lease-world.ts'

const now = Date.UTC(2026, 10, 21, 12)

const world = await openLeaseWorld()
afterAll(() => world.close())

type TakeRequest = Parameters<typeof takeDeliveries>[1]

function request(endpointIds: string[], some: Partial<TakeRequest> = {}): TakeRequest {
  const quotas = endpointIds.map((endpointId) => ({ endpointId, max: 10 }))
  return { owner: 'me', leaseMs: 60_000, max: 100, quotas, now, ...some }
}

async function dueEndpoint(count: number, dueAt = now - 10_000): Promise<string> {
  const endpointId = `we_${hex(16)}`
  await world.show({ endpointId, count, dueAt })
  return endpointId
}

const idsOf = (deliveries: { id: string }[]) => deliveries.map(({ id }) => id)
const takeIds = async (...args: Parameters<typeof request>) =>
  idsOf(await takeDeliveries(world.pool, request(...args)))

describe('taking', () => {
  test('leases only due deliveries, oldest first', async () => {
    const endpointId = await dueEndpoint(3, now - 2)
    const taken = await takeDeliveries(world.pool, request([endpointId]))
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
    expect(
      await findInFlightDeliveries(world.pool, [`${endpointId}/1`, `${endpointId}/3`]),
    ).toEqual(new Set([`${endpointId}/1`]))
  })

  test('leases each delivery once, and at most ten per endpoint, not counting recorded attempts', async () => {
    const endpointId = await dueEndpoint(25)
    const first = await takeIds([endpointId])
    expect(first).toHaveLength(10)
    expect(await takeIds([endpointId], { owner: 'you' })).toEqual([])
    await markRecorded(world.pool, { owner: 'me', deliveryIds: first.slice(0, 4) })
    const second = await takeIds([endpointId], { owner: 'you' })
    expect(second).toEqual([11, 12, 13, 14].map((n) => `${endpointId}/${n}`))
  })

  test('leases one delivery of each endpoint before a second of any', async () => {
    const crowded = await dueEndpoint(10_000, now - 1_000_000)
    const others = await Promise.all(Array.from({ length: 20 }, () => dueEndpoint(3)))
    const taken = await takeDeliveries(world.pool, request([crowded, ...others], { max: 42 }))
    const counts = new Map<string, number>()
    for (const { endpointId } of taken) counts.set(endpointId, (counts.get(endpointId) ?? 0) + 1)
    expect([...counts.values()].toSorted()).toEqual(Array(21).fill(2))
  })

  test('waits for the read model to have a recorded attempt', async () => {
    const endpointId = await dueEndpoint(1)
    const [deliveryId = ''] = await takeIds([endpointId])
    await markRecorded(world.pool, { owner: 'me', deliveryIds: [deliveryId] })
    await purgeRecorded(world.pool)
    expect(await takeIds([endpointId])).toEqual([])
    await world.apply(deliveryId, { attempts: 1, nextAttemptAt: now - 1 })
    const [again] = await takeDeliveries(world.pool, request([endpointId]))
    expect(again).toMatchObject({ attempts: 1, dueAt: now - 1 })
    // After a skip and a redelivery, the same attempt is due at another time.
    await markRecorded(world.pool, { owner: 'me', deliveryIds: [deliveryId] })
    await world.apply(deliveryId, { status: 'skipped', attempts: 1 })
    expect(await takeIds([endpointId])).toEqual([])
    await world.apply(deliveryId, { attempts: 1, nextAttemptAt: now - 2 })
    expect(await takeIds([endpointId])).toEqual([deliveryId])
  })
})

describe('a lease', () => {
  let own: LeaseWorld

  beforeEach(async () => {
    own = await openLeaseWorld()
    return () => own.close()
  })

  async function taken(count: number, leaseMs = 60_000): Promise<string[]> {
    await own.show({ endpointId: 'we', count, dueAt: now - 10_000 })
    return idsOf(await takeDeliveries(own.pool, request(['we'], { leaseMs })))
  }

  test('is deleted, marked as recorded or renewed only by its owner', async () => {
    const [a = '', b = ''] = await taken(2)
    await requeueDeliveries(own.pool, { owner: 'you', deliveryIds: [a, b] })
    await markRecorded(own.pool, { owner: 'you', deliveryIds: [a] })
    const renewal = { deliveryIds: [a, 'unknown'], leaseMs: 1 }
    expect(await renewLeases(own.pool, { owner: 'you', ...renewal })).toEqual(new Set())
    expect(await renewLeases(own.pool, { owner: 'me', ...renewal })).toEqual(new Set([a]))
    expect(await own.leases()).toEqual(['we/1 1 sending', 'we/2 1 sending'])
    await requeueDeliveries(own.pool, { owner: 'me', deliveryIds: [a, b] })
    expect(idsOf(await takeDeliveries(own.pool, request(['we'])))).toEqual([a, b])
  })

  test('of a recorded attempt is deleted once the read model has the attempt', async () => {
    const deliveryIds = await taken(4)
    await markRecorded(own.pool, { owner: 'me', deliveryIds: deliveryIds.slice(0, 3) })
    await own.apply('we/1', { status: 'succeeded', attempts: 1 })
    await own.apply('we/2', { attempts: 1, nextAttemptAt: now + 5 })
    await own.apply('we/4', { status: 'succeeded', attempts: 1 })
    expect(await purgeRecorded(own.pool)).toBe(false)
    expect(await own.leases()).toEqual(['we/3 1 recorded', 'we/4 1 sending'])
  })

  test('that has expired is released, unless it was renewed or taken again since', async () => {
    const deliveryIds = await taken(3, -1)
    const { leases, asOf } = await findExpiredLeases(own.pool, ['we/9'])
    expect(leases.map(({ deliveryId }) => deliveryId).toSorted()).toEqual(deliveryIds)
    await renewLeases(own.pool, { owner: 'me', deliveryIds: ['we/1'], leaseMs: 60_000 })
    await requeueDeliveries(own.pool, { owner: 'me', deliveryIds: ['we/2'] })
    const again = request(['we'], { owner: 'you', leaseMs: 1 })
    expect(idsOf(await takeDeliveries(own.pool, again))).toEqual(['we/2'])
    expect(await releaseLeases(own.pool, { deliveryIds, asOf })).toBe(1)
    expect(await own.leases()).toEqual(['we/1 1 sending', 'we/2 1 sending'])
  })
})

describe('due endpoints', () => {
  const ids = Array.from({ length: 12 }, (_, i) => `we_${String.fromCharCode(97 + i)}`)
  const dueOf = (i: number) => 1 + 4 * i
  let own: LeaseWorld

  beforeEach(async () => {
    own = await openLeaseWorld()
    for (const [i, endpointId] of ids.entries())
      await own.show({ endpointId, count: dueOf(i), dueAt: now - 1000 })
    await own.show({ endpointId: 'we_b1', count: 3, dueAt: now + 70 })
    return () => own.close()
  })

  test.each([
    ['found with one query if few deliveries are due', 1000, Infinity],
    ['found endpoint by endpoint if many deliveries are due', 100, 10],
  ])('is %s', async (_what, firstRows, most) => {
    const found = await findDueEndpoints(own.pool, { now, firstRows })
    expect(found.map(({ due }) => due)).toEqual(ids.map((_, i) => Math.min(most, dueOf(i))))
    expect(found.map(({ endpointId }) => endpointId)).toEqual(ids)
  })

  test('are none if nothing is due or everything is leased', async () => {
    expect(await findDueEndpoints(own.pool, { now: now - 5000 })).toEqual([])
    await own.pool.query(
      `insert into tidegate.webhook_leases
       select delivery_id, 1, next_attempt_at, event_id, endpoint_id, 'sending', 'you', 0
       from read.webhook_deliveries where next_attempt_at <= $1`,
      [now],
    )
    expect(await findDueEndpoints(own.pool, { now })).toEqual([])
  })
})

test('concurrent processes take no attempt twice, and at most ten deliveries per endpoint are in flight', async () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
  console.log(`takers: seed ${seed}`)
  const next = createNumbers(seed)
  const own = await openLeaseWorld()
  const endpoints = Array.from({ length: 2 }, (_, i) => `we_${i}`)
  for (const endpointId of endpoints)
    await own.show({ endpointId, count: 200, dueAt: now - 100_000 })
  const pool = createPool({ url: own.pool.options.connectionString ?? '', max: 24 })
  const made: string[] = []
  const running = new Map<string, number>()
  let most = 0

  type Taken = Awaited<ReturnType<typeof takeDeliveries>>[number]
  async function make({ id, endpointId, attempts }: Taken, owner: string): Promise<void> {
    const count = (running.get(endpointId) ?? 0) + 1
    running.set(endpointId, count)
    most = Math.max(most, count)
    await pool.query('select pg_sleep($1)', [next() / 200])
    running.set(endpointId, (running.get(endpointId) ?? 0) - 1)
    if (next() < 0.1) return requeueDeliveries(pool, { owner, deliveryIds: [id] })
    made.push(`${id} ${attempts}`)
    await markRecorded(pool, { owner, deliveryIds: [id] })
    const isLast = attempts === 1
    const shown = { attempts: attempts + 1, nextAttemptAt: isLast ? null : now - 1 }
    await own.apply(id, { ...shown, status: isLast ? 'succeeded' : 'pending' })
    await purgeRecorded(pool)
  }

  async function taker(owner: string): Promise<void> {
    while (made.length < 800) {
      const quotas = endpoints.map((endpointId) => ({
        endpointId,
        max: 1 + Math.floor(next() * 10),
      }))
      const max = 1 + Math.floor(next() * 20)
      const taken = await takeDeliveries(pool, { owner, leaseMs: 60_000, max, quotas, now })
      await Promise.all(taken.map((delivery) => make(delivery, owner)))
    }
  }

  await Promise.all(Array.from({ length: 12 }, (_, i) => taker(`taker ${i}`)))
  await purgeRecorded(pool)
  await pool.end()
  const left = await own.leases()
  await own.close()
  expect(new Set(made).size).toBe(800)
  expect(made).toHaveLength(800)
  expect(left).toEqual([])
  expect(most).toBeGreaterThan(5)
  expect(most).toBeLessThanOrEqual(10)
})
