import { afterEach, beforeEach, expect, test } from 'vitest'
import { unavailable } from '../../../../infra/errors/errors.ts'
import { reapExpiredLeases } from '../../../../services/webhooks/dispatch/lease-upkeep.ts'
import { markRecorded, renewLeases, takeDeliveries } from '../../../../services/webhooks/leases.ts'
import { type LeaseWorld, openLeaseWorld } from '../lease-world.ts'

const now = Date.UTC(2026, 10, 21, 12)
let world: LeaseWorld

beforeEach(async () => {
  world = await openLeaseWorld()
  await world.show({ endpointId: 'we', count: 3, dueAt: now - 60_000 })
})
afterEach(() => world.close())

const takeAs = (owner: string, leaseMs: number) =>
  takeDeliveries(world.pool, {
    owner,
    leaseMs,
    quotas: [{ endpointId: 'we', max: 10 }],
    max: 10,
    now,
  })

/** Releases leases while the read model lacks records of these partitions. */
function releaseBehind(
  partitions: readonly number[] = [],
  { inFlight = [], onLook }: { inFlight?: string[]; onLook?: () => Promise<unknown> } = {},
): Promise<number> {
  const log = {
    async endPositions(topic: string) {
      await onLook?.()
      return partitions.map((partition) => ({ topic, partition, offset: 1 }))
    },
    partitionOf: async (_topic: string, eventId: string) => (eventId === 'evt_1' ? 1 : 0),
  }
  const applied = { waitFor: () => Promise.reject(unavailable(new Error('behind'))) }
  return reapExpiredLeases({ pool: world.pool, log, applied }, inFlight)
}

test('the deliveries of a dead process are due again, as the read model has them', async () => {
  await takeAs('dead', -1)
  await world.apply('we/1', { status: 'succeeded', attempts: 1 })
  await world.apply('we/2', { attempts: 1, nextAttemptAt: now - 1 })
  expect(await releaseBehind()).toBe(3)
  const taken = await takeAs('me', 60_000)
  expect(taken.map(({ id, attempts }) => [id, attempts])).toEqual([
    ['we/3', 0],
    ['we/2', 1],
  ])
})

test('no lease is released while the read model lacks records of its partition', async () => {
  await takeAs('dead', -1)
  expect(await releaseBehind([1])).toBe(2)
  expect(await world.leases()).toEqual(['we/1 1 sending'])
  expect(await releaseBehind([0])).toBe(1)
})

test('leases that have not expired, are recorded, or belong to this process are kept', async () => {
  await takeAs('dead', -1)
  await markRecorded(world.pool, { owner: 'dead', deliveryIds: ['we/1'] })
  await renewLeases(world.pool, { owner: 'dead', deliveryIds: ['we/2'], leaseMs: 60_000 })
  expect(await releaseBehind([], { inFlight: ['we/3'] })).toBe(0)
  expect(await world.leases()).toEqual(['we/1 1 recorded', 'we/2 1 sending', 'we/3 1 sending'])
})

test('a lease that is renewed while the log is read is kept', async () => {
  await takeAs('slow', -1)
  const deliveryIds = ['we/1', 'we/2']
  const onLook = () => renewLeases(world.pool, { owner: 'slow', deliveryIds, leaseMs: 60_000 })
  expect(await releaseBehind([], { onLook })).toBe(1)
  expect(await world.leases()).toEqual(['we/1 1 sending', 'we/2 1 sending'])
})
