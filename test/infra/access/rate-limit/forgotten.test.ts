import { expect, test } from 'vitest'
import { unit } from '../../../../infra/access/rate-limit/bucket.ts'
import type { RateLimiter } from '../../../../infra/access/rate-limit/limiter.ts'
import { createScriptedProcess, requestOf } from './support/scripted-process.ts'
import { healthy, late, refused } from './support/scripted-store.ts'

async function takeTwice(limiter: RateLimiter, name: string) {
  await limiter.consume(requestOf(name))
  await limiter.consume(requestOf(name))
}

const leasesOf = (row: { leases: Record<string, { parts: number }> }) =>
  Object.values(row.leases).map(({ parts }) => parts / unit)

test('organizations pushed out by others give back what they hold, a bounded number at a time', async () => {
  const { limiter, script, wait, release, mostRunning, row } = createScriptedProcess({
    maxBuckets: 10,
    answerWithinMs: 60_000,
  })
  for (let i = 0; i < 30; i++) await takeTwice(limiter, `${i}`)
  script(() => late)
  await wait(100)
  expect(mostRunning()).toBe(20)
  release()
  script(() => healthy)
  await wait(100)
  expect(leasesOf(row('org_0:secret'))).toEqual([])
  expect(leasesOf(row('org_29:secret'))).toEqual([6])
})

test('hundreds pushed out between two sweeps do not start hundreds of round trips at once', async () => {
  const { limiter, script, wait, mostRunning, release } = createScriptedProcess({
    maxBuckets: 300,
    answerWithinMs: 60_000,
  })
  for (let i = 0; i < 300; i++) await takeTwice(limiter, `${i}`)
  script((bucketId) => (bucketId.startsWith('org_other') ? healthy : late))
  for (let i = 0; i < 300; i++) await limiter.consume(requestOf(`other_${i}`))
  expect(mostRunning()).toBe(1)
  await wait(0)
  await wait(100)
  expect(mostRunning()).toBe(64)
  release()
})

test('an organization that comes back before that goes on with what it holds', async () => {
  const { limiter, wait, row, roundTrips } = createScriptedProcess({ maxBuckets: 1, answerWithinMs: 60_000 })
  await takeTwice(limiter, 'a')
  await limiter.consume(requestOf('b'))
  const before = roundTrips()
  expect(limiter.consume(requestOf('a'))).toMatchObject({ admitted: true, remaining: 597 })
  expect(roundTrips()).toBe(before)
  await wait(100)
  expect(leasesOf(row('org_a:secret'))).toEqual([6])
})

test('an organization that comes back while its lease is given back waits for that', async () => {
  const { limiter, script, wait, release, row } = createScriptedProcess({
    maxBuckets: 1,
    answerWithinMs: 60_000,
  })
  await takeTwice(limiter, 'a')
  await limiter.consume(requestOf('b'))
  script((bucketId) => (bucketId === 'org_a:secret' ? late : healthy))
  await wait(100)
  const taken = limiter.consume(requestOf('a'))
  script(() => healthy)
  release()
  // One unit has been refilled, which a bucket that began anew would not know of the two that were taken.
  expect(await taken).toMatchObject({ admitted: true, remaining: 598 })
  await wait(10)
  expect(limiter.consume(requestOf('a'))).toMatchObject({ admitted: true, remaining: 597 })
  expect(leasesOf(row('org_a:secret'))).toEqual([6])
})

test('what is pushed out while the store is away is remembered within bounds', async () => {
  const { limiter, script } = createScriptedProcess({ maxBuckets: 10 })
  script(() => refused)
  await takeTwice(limiter, 'first')
  for (let i = 0; i < 20; i++) await limiter.consume(requestOf(`${i}`))
  expect(limiter.consume(requestOf('first'))).toMatchObject({ remaining: 597 })
  for (let i = 0; i < 40; i++) await limiter.consume(requestOf(`other_${i}`))
  expect(limiter.consume(requestOf('first'))).toMatchObject({ remaining: 599 })
})
