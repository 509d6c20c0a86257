import { expect, test } from 'vitest'
import { unit } from '../../../../infra/access/rate-limit/bucket.ts'
import type { RateLimiter } from '../../../../infra/access/rate-limit/limiter.ts'
import { createToldProcess, requestOf } from './support/told-process.ts'
import { healthy, late, refused } from './support/told-store.ts'

async function takeTwice(limiter: RateLimiter, name: string) {
  await limiter.take(requestOf(name))
  await limiter.take(requestOf(name))
}

const leasesOf = (row: { leases: Record<string, { parts: number }> }) =>
  Object.values(row.leases).map(({ parts }) => parts / unit)

test('organizations pushed out by others give back what they hold, a bounded number at a time', async () => {
  const { limiter, tell, wait, release, mostRunning, row } = createToldProcess({
    maxBuckets: 10,
    answerWithinMs: 60_000,
  })
  for (let i = 0; i < 30; i++) await takeTwice(limiter, `${i}`)
  tell(() => late)
  await wait(100)
  expect(mostRunning()).toBe(20)
  release()
  tell(() => healthy)
  await wait(100)
  expect(leasesOf(row('org_0:secret'))).toEqual([])
  expect(leasesOf(row('org_29:secret'))).toEqual([6])
})

test('hundreds pushed out between two sweeps do not start hundreds of round trips at once', async () => {
  const { limiter, tell, wait, mostRunning, release } = createToldProcess({
    maxBuckets: 300,
    answerWithinMs: 60_000,
  })
  for (let i = 0; i < 300; i++) await takeTwice(limiter, `${i}`)
  tell((bucketId) => (bucketId.startsWith('org_other') ? healthy : late))
  for (let i = 0; i < 300; i++) await limiter.take(requestOf(`other_${i}`))
  expect(mostRunning()).toBe(1)
  await wait(0)
  await wait(100)
  expect(mostRunning()).toBe(64)
  release()
})

test('an organization that comes back before that goes on with what it holds', async () => {
  const { limiter, wait, row, roundTrips } = createToldProcess({ maxBuckets: 1, answerWithinMs: 60_000 })
  await takeTwice(limiter, 'a')
  await limiter.take(requestOf('b'))
  const before = roundTrips()
  expect(limiter.take(requestOf('a'))).toMatchObject({ admitted: true, remaining: 597 })
  expect(roundTrips()).toBe(before)
  await wait(100)
  expect(leasesOf(row('org_a:secret'))).toEqual([6])
})

test('an organization that comes back while its lease is given back waits for that', async () => {
  const { limiter, tell, wait, release, row } = createToldProcess({ maxBuckets: 1, answerWithinMs: 60_000 })
  await takeTwice(limiter, 'a')
  await limiter.take(requestOf('b'))
  tell((bucketId) => (bucketId === 'org_a:secret' ? late : healthy))
  await wait(100)
  const taken = limiter.take(requestOf('a'))
  tell(() => healthy)
  release()
  // One unit has been refilled, which a bucket that began anew would not know of the two that were taken.
  expect(await taken).toMatchObject({ admitted: true, remaining: 598 })
  await wait(10)
  expect(limiter.take(requestOf('a'))).toMatchObject({ admitted: true, remaining: 597 })
  expect(leasesOf(row('org_a:secret'))).toEqual([6])
})

test('what is pushed out while the store is away is remembered within bounds', async () => {
  const { limiter, tell } = createToldProcess({ maxBuckets: 10 })
  tell(() => refused)
  await takeTwice(limiter, 'first')
  for (let i = 0; i < 20; i++) await limiter.take(requestOf(`${i}`))
  expect(limiter.take(requestOf('first'))).toMatchObject({ remaining: 597 })
  for (let i = 0; i < 40; i++) await limiter.take(requestOf(`other_${i}`))
  expect(limiter.take(requestOf('first'))).toMatchObject({ remaining: 599 })
})
