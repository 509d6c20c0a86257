import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createPool } from '../../../../infra/postgres/pool.ts'
import {
  createEndpointLocks,
  type ReceiveRequest,
  receiveDue,
} from '../../../../services/webhooks/dispatch/queue.ts'
import {
  endRequests,
  findExpired,
  inFlightDeliveries,
  makeExpiredVisible,
  makeVisible,
  releaseApplied,
  renewVisibility,
} from '../../../../services/webhooks/dispatch/visibility.ts'
import { createNumbers } from '../../../support/hand.ts'
import { hex, openQueueWorld, type QueueWorld } from './queue-world.ts'

const now = Date.UTC(2026, 10, 21, 12)
let world: QueueWorld

beforeAll(async () => {
  world = await openQueueWorld()
})
afterAll(async () => {
  await world?.close()
})

/** A request as its owner makes it; long enough for any test. */
function request(endpointIds: string[], some: Partial<ReceiveRequest> = {}): ReceiveRequest {
  const quotas = endpointIds.map((endpointId) => ({ endpointId, max: 10 }))
  return { owner: 'me', visibilityTimeoutMs: 60_000, ended: [], free: 100, quotas, now, ...some }
}

async function dueEndpoint(count: number, dueAt = now - 10_000): Promise<string> {
  const endpointId = `we_${hex(16)}`
  await world.due({ endpointId, count, dueAt })
  await createEndpointLocks(world.pool, [endpointId])
  return endpointId
}

const idsOf = (deliveries: { id: string }[]) => deliveries.map(({ id }) => id)

describe('receiving', () => {
  test('hides what is due, oldest first, and not what is not', async () => {
    const endpointId = await dueEndpoint(3, now - 2)
    const { deliveries } = await receiveDue(world.pool, request([endpointId]))
    expect(deliveries.map(({ id, dueAt }) => [id, dueAt])).toEqual([
      [`${endpointId}/1`, now - 1],
      [`${endpointId}/2`, now],
    ])
    expect(await inFlightDeliveries(world.pool, [`${endpointId}/1`, `${endpointId}/3`])).toEqual(
      new Set([`${endpointId}/1`]),
    )
  })

  test('gives nothing twice, and at most ten of an endpoint whose requests run', async () => {
    const endpointId = await dueEndpoint(25)
    const first = await receiveDue(world.pool, request([endpointId]))
    expect(first.deliveries).toHaveLength(10)
    expect((await receiveDue(world.pool, request([endpointId], { owner: 'you' }))).deliveries).toEqual([])
    const ids = idsOf(first.deliveries)
    await endRequests(world.pool, { owner: 'me', deliveryIds: ids.slice(0, 4) })
    const second = await receiveDue(world.pool, request([endpointId], { owner: 'you' }))
    expect(idsOf(second.deliveries)).toEqual([11, 12, 13, 14].map((n) => `${endpointId}/${n}`))
    const third = await receiveDue(world.pool, request([endpointId], { ended: ids.slice(4, 6) }))
    expect(idsOf(third.deliveries)).toEqual([15, 16].map((n) => `${endpointId}/${n}`))
    const foreign = await receiveDue(world.pool, request([endpointId], { owner: 'you', ended: ids.slice(6) }))
    expect(foreign.deliveries).toEqual([])
  })

  test('passes an endpoint that another process has locked, and says so', async () => {
    const [free, locked] = [await dueEndpoint(1), await dueEndpoint(1)]
    const other = await world.pool.connect()
    await other.query('begin')
    await other.query('select from tidegate.webhook_lanes where endpoint_id = $1 for update', [locked])
    const received = await receiveDue(world.pool, request([locked, free]))
    await other.query('rollback')
    other.release()
    expect(received.contended).toBe(true)
    expect(idsOf(received.deliveries)).toEqual([`${free}/1`])
    expect(await receiveDue(world.pool, request([locked, free]))).toMatchObject({ contended: false })
  })

  test('gives each endpoint one before any gets a second', async () => {
    const crowded = await dueEndpoint(10_000, now - 1_000_000)
    const others = await Promise.all(Array.from({ length: 20 }, () => dueEndpoint(3)))
    const { deliveries } = await receiveDue(world.pool, request([crowded, ...others], { free: 42 }))
    const counts = new Map<string, number>()
    for (const { endpointId } of deliveries) counts.set(endpointId, (counts.get(endpointId) ?? 0) + 1)
    expect([...counts.values()].toSorted()).toEqual(Array(21).fill(2))
  })
})

describe('a delivery in flight', () => {
  test('is released only by its owner, and only when the read model shows the record', async () => {
    const endpointId = await dueEndpoint(2)
    await receiveDue(world.pool, request([endpointId]))
    const [a, b] = [`${endpointId}/1`, `${endpointId}/2`]
    const recorded = [
      { deliveryId: a, position: { topic: 'tidegate.webhooks.v1', partition: 7, offset: 41 } },
      { deliveryId: b, position: { topic: 'tidegate.webhooks.v1', partition: 7, offset: 42 } },
    ]
    expect(await releaseApplied(world.pool, { owner: 'me', recorded })).toEqual(new Set())
    await world.appliedUpTo(7, 42)
    await releaseApplied(world.pool, { owner: 'you', recorded })
    expect(await inFlightDeliveries(world.pool, [a, b])).toEqual(new Set([a, b]))
    expect(await releaseApplied(world.pool, { owner: 'me', recorded })).toEqual(new Set([a]))
    expect(await inFlightDeliveries(world.pool, [a, b])).toEqual(new Set([b]))
  })

  test('that is made visible is due at once', async () => {
    const endpointId = await dueEndpoint(1)
    await receiveDue(world.pool, request([endpointId]))
    await makeVisible(world.pool, { owner: 'you', deliveryIds: [`${endpointId}/1`] })
    expect((await receiveDue(world.pool, request([endpointId]))).deliveries).toEqual([])
    await makeVisible(world.pool, { owner: 'me', deliveryIds: [`${endpointId}/1`] })
    expect((await receiveDue(world.pool, request([endpointId]))).deliveries).toHaveLength(1)
  })

  test('that expired still excludes everybody, until it is deleted', async () => {
    const endpointId = await dueEndpoint(1)
    await receiveDue(world.pool, request([endpointId], { visibilityTimeoutMs: 0, owner: 'dead' }))
    expect((await receiveDue(world.pool, request([endpointId]))).deliveries).toEqual([])
    const expired = await findExpired(world.pool, { except: [] })
    expect(expired).toMatchObject([{ deliveryId: `${endpointId}/1`, owner: 'dead' }])
    expect(await makeExpiredVisible(world.pool, expired)).toBe(1)
    expect((await receiveDue(world.pool, request([endpointId]))).deliveries).toHaveLength(1)
  })

  test('that was renewed after it was seen expired is not deleted', async () => {
    const endpointId = await dueEndpoint(2)
    await receiveDue(world.pool, request([endpointId], { visibilityTimeoutMs: 0, owner: 'slow' }))
    const [a, b] = [`${endpointId}/1`, `${endpointId}/2`]
    expect(await findExpired(world.pool, { except: [a, b] })).toEqual([])
    const expired = await findExpired(world.pool, { except: [] })
    const renewed = await renewVisibility(world.pool, {
      owner: 'slow',
      deliveryIds: [a, 'unknown'],
      visibilityTimeoutMs: 60_000,
    })
    expect(renewed).toEqual(new Set([a]))
    expect(await makeExpiredVisible(world.pool, expired)).toBe(1)
    expect(await inFlightDeliveries(world.pool, [a, b])).toEqual(new Set([a]))
  })
})

test('many processes at once: no delivery is received twice, and no endpoint ever has more than ten requests', async () => {
  const seed = Number(process.env.SEED ?? Date.now() % 1_000_000)
  console.log(`leasers: seed ${seed}`)
  const next = createNumbers(seed)
  const own = await openQueueWorld()
  const endpoints = Array.from({ length: 2 }, (_, i) => `we_${i}`)
  for (const endpointId of endpoints) await own.due({ endpointId, count: 400, dueAt: now - 100_000 })
  await createEndpointLocks(own.pool, endpoints)
  const pool = createPool({ url: own.pool.options.connectionString ?? '', max: 24 })
  const made: string[] = []
  const running = new Map<string, number>()
  let most = 0

  async function make({ id, endpointId }: { id: string; endpointId: string }, owner: string): Promise<void> {
    const count = (running.get(endpointId) ?? 0) + 1
    running.set(endpointId, count)
    most = Math.max(most, count)
    made.push(id)
    await pool.query('select pg_sleep($1)', [next() / 100])
    running.set(endpointId, (running.get(endpointId) ?? 0) - 1)
    if (next() < 0.5) await endRequests(pool, { owner, deliveryIds: [id] })
    await own.finish([id])
    await makeVisible(pool, { owner, deliveryIds: [id] })
  }

  async function leaser(owner: string): Promise<void> {
    while (made.length < 800) {
      const quotas = endpoints.map((endpointId) => ({ endpointId, max: 1 + Math.floor(next() * 10) }))
      const free = 1 + Math.floor(next() * 20)
      const received = await receiveDue(pool, {
        owner,
        visibilityTimeoutMs: 60_000,
        ended: [],
        free,
        quotas,
        now,
      })
      await Promise.all(received.deliveries.map((delivery) => make(delivery, owner)))
    }
  }

  await Promise.all(Array.from({ length: 12 }, (_, i) => leaser(`leaser ${i}`)))
  await pool.end()
  const left = await own.inFlight()
  await own.close()
  expect(new Set(made).size).toBe(800)
  expect(made).toHaveLength(800)
  expect(left).toEqual([])
  expect(most).toBeGreaterThan(5)
  expect(most).toBeLessThanOrEqual(10)
})
