import { beforeEach, expect, test } from 'vitest'
import { createHeld, type HeldLeases } from '../../../../services/webhooks/dispatch/held.ts'
import type { Take } from '../../../../services/webhooks/dispatch/taker.ts'
import { createWindows } from '../../../../services/webhooks/dispatch/window.ts'
import { createWork, type WorkOptions } from '../../../../services/webhooks/dispatch/work.ts'
import { silent } from '../../../support/projections.ts'
import { type LeaseWorld, openLeaseWorld } from './lease-world.ts'

const nothing = { deliveries: [], hasMore: false, nextAt: Infinity }
let world: LeaseWorld
let held: HeldLeases

beforeEach(async () => {
  held = createHeld()
  world = await openLeaseWorld()
  return () => world.close()
})

function workWith(some: Partial<WorkOptions>) {
  return createWork({
    pool: world.pool,
    owner: 'me',
    leaseMs: 1000,
    held,
    windows: createWindows(),
    caughtUp: { waitUntilCaughtUp: async () => 'same', isUnchanged: async () => true },
    take: async () => nothing,
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
    async take() {
      takes++
      return nothing
    },
  })
  await expect(work()).rejects.toThrow('behind')
  expect(takes).toBe(0)
})

test('a take that fails leaves it to the next to tell that requests have ended', async () => {
  held.add('a')
  held.endSending('a')
  const told: string[][] = []
  const work = workWith({
    async take({ ended }: Take) {
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
  for (const id of ids) held.add(id)
  for (const id of ids) held.endSending(id)
  await world.pool.query(
    `insert into tidegate.webhook_leases (delivery_id, endpoint_id, owner, expires_at)
     select id, 'we_1', 'me', clock_timestamp() from unnest($1::text[]) id`,
    [ids],
  )
  await workWith({ take: () => Promise.reject(new Error('taken')) })()
  const { rowCount } = await world.pool.query('select from tidegate.webhook_leases where sending')
  expect(rowCount).toBe(0)
})
