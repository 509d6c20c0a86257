import { expect, test } from 'vitest'
import { createPrefetch } from '../../../infra/event-store/prefetch.ts'

function openPrefetch() {
  const now = { ms: 1_800_000_000_000 }
  const batchSizes: number[] = []
  let made = 0
  const prefetch = createPrefetch({
    clock: () => now.ms,
    async create(count) {
      batchSizes.push(count)
      return Array.from({ length: count }, () => made++)
    },
  })
  return {
    now,
    batchSizes,
    take: prefetch.take,
    takeAll: (count: number) => takeAll(prefetch.take, count),
  }
}

async function takeAll(take: () => Promise<number>, count: number): Promise<number[]> {
  const taken: number[] = []
  for (let n = 0; n < count; n++) taken.push(await take())
  return taken
}

test('grows to 64 extra items while it is used up quickly', async () => {
  const { batchSizes, takeAll } = openPrefetch()
  const taken = await takeAll(1000)
  expect(new Set(taken).size).toBe(1000)
  expect(batchSizes.slice(0, 9)).toEqual([1, 2, 4, 8, 16, 32, 64, 65, 65])
})

test('drops items older than an hour', async () => {
  const { now, takeAll } = openPrefetch()
  expect(await takeAll(4)).not.toContain(5)
  now.ms += 3_600_001
  const [later = 0] = await takeAll(1)
  expect(later).toBeGreaterThan(6)
})

test('serves concurrent calls from one batch', async () => {
  const { batchSizes, take } = openPrefetch()
  const taken = await Promise.all(Array.from({ length: 500 }, take))
  expect(new Set(taken).size).toBe(500)
  expect(batchSizes).toEqual([500])
})

test('a failure rejects waiting calls, and the next call succeeds', async () => {
  let isAway = true
  const prefetch = createPrefetch({
    clock: Date.now,
    create: (count: number) =>
      isAway ? Promise.reject(new Error('away')) : Promise.resolve(Array(count).fill('key')),
  })
  const waiting = await Promise.allSettled([prefetch.take(), prefetch.take()])
  expect(waiting.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  isAway = false
  expect(await prefetch.take()).toBe('key')
})
