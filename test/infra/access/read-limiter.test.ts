import { setImmediate as settled } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Principal } from '../../../infra/access/principal.ts'
import { createReadLimiter } from '../../../infra/access/read-limiter.ts'

/** Starts reads that run until `end` ends them, oldest first. */
function createReads() {
  const now = { ms: 1_800_000_000_000 }
  const readLimiter = createReadLimiter({ clock: () => now.ms, connections: 4 })
  const running: { organization: string; end: () => void }[] = []
  const read = (organization: `org_${string}`) => {
    const principal: Principal = {
      keyId: 'key_1',
      organizationId: organization,
      environment: 'live',
      rateLimit: null,
      type: 'secret',
      scopes: ['*'],
      capabilities: [],
      origins: [],
    }
    const request = { principal, method: 'GET', url: '/v1/sessions' }
    return readLimiter.run(
      request,
      () => new Promise<void>((resolve) => running.push({ organization, end: resolve })),
    )
  }
  return {
    now,
    /** Returns the numbers of running reads by organization. */
    counts: () =>
      ['org_1', 'org_2'].map(
        (id) => running.filter(({ organization }) => organization === id).length,
      ),
    async start(organization: `org_${string}`, count: number) {
      // Reads that still wait when the test ends are rejected.
      for (let i = 0; i < count; i++) read(organization).catch(() => {})
      await settled()
    },
    async end(count: number) {
      for (const { end } of running.splice(0, count)) end()
      await settled()
    },
  }
}

test('an organization that reads alone gets all connections', async () => {
  const { start, counts } = createReads()
  await start('org_1', 10)
  expect(counts()).toEqual([4, 0])
})

test('a second organization gets the next free connection, and one is kept free for it from then on', async () => {
  const { start, end, counts } = createReads()
  await start('org_1', 100)
  await start('org_2', 1)
  expect(counts()).toEqual([4, 0])
  await end(1)
  expect(counts()).toEqual([3, 1])
  await end(4)
  expect(counts()).toEqual([3, 0])
  await start('org_2', 1)
  expect(counts()).toEqual([3, 1])
})

test('two organizations under constant load get equally many connections', async () => {
  const { start, end, counts } = createReads()
  await start('org_1', 100)
  await start('org_2', 100)
  for (let i = 0; i < 8; i++) await end(1)
  expect(counts()).toEqual([2, 2])
})

test('an organization gets all connections again after no other has read for a minute', async () => {
  const { now, start, end, counts } = createReads()
  await start('org_2', 1)
  await start('org_1', 10)
  await end(1)
  expect(counts()).toEqual([3, 0])
  now.ms += 60_001
  await end(1)
  await start('org_1', 1)
  expect(counts()).toEqual([4, 0])
})
