import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { BucketStore } from '../../../../infra/access/rate-limit/shared-bucket.ts'
import { createScriptedProcess, requestOf } from './support/scripted-process.ts'
import { healthy, late, refused } from './support/scripted-store.ts'

const warned = 40
const informed = 30
const away = 'rate limits: the shared buckets are away, this process limits alone'

/** Answers that come in several parts, as those of a transaction do. */
const inParts = (store: BucketStore): BucketStore => ({
  async update(bucketId, change) {
    for (let part = 0; part < 3; part++) await turn()
    return store.update(bucketId, change)
  },
})

test('a process that stood still longer than a request waits does not mistake that for an outage', async () => {
  const { limiter, lines, row, roundTrips } = createScriptedProcess({ answerWithinMs: 50, wrap: inParts })
  const taken = limiter.consume(requestOf('a'))
  const end = performance.now() + 75
  while (performance.now() < end);
  expect(await taken).toMatchObject({ admitted: true, remaining: 599 })
  expect(roundTrips()).toBe(1)
  expect(row('org_a:secret')).toMatchObject({ total: 599 * 60_000 })
  expect(lines).toEqual([])
})

test('a bucket whose answers are late is limited alone, without waiting again; all others are shared', async () => {
  const { limiter, lines, script, release, wait, roundTrips, row } = createScriptedProcess()
  await limiter.consume(requestOf('fine'))
  script((bucketId) => (bucketId === 'org_slow:secret' ? late : healthy))
  await limiter.consume(requestOf('slow'))
  expect(limiter.consume(requestOf('slow'))).not.toBeInstanceOf(Promise)
  const before = roundTrips()
  expect(await limiter.consume(requestOf('new'))).toMatchObject({ admitted: true, remaining: 599 })
  expect(roundTrips()).toBe(before + 1)
  expect(row('org_new:secret')).toMatchObject({ total: 599 * 60_000 })
  script((bucketId) => (bucketId === 'org_slow:secret' ? refused : healthy))
  release()
  for (let i = 0; i < 5; i++) {
    await wait(1100)
    expect(limiter.consume(requestOf('slow'))).not.toBeInstanceOf(Promise)
  }
  expect(lines).toMatchObject([{ level: warned, bucket: 'org_slow:secret' }])
  script(() => healthy)
  await wait(3000)
  expect(lines.slice(1)).toMatchObject([{ level: informed, bucket: 'org_slow:secret' }])
})

test('once a second bucket fails none is waited for', async () => {
  const { limiter, lines, script, roundTrips } = createScriptedProcess()
  script(() => refused)
  await limiter.consume(requestOf('a'))
  await limiter.consume(requestOf('b'))
  const before = roundTrips()
  for (const name of ['a', 'b', 'c', 'd'])
    expect(limiter.consume(requestOf(name))).toMatchObject({ admitted: true })
  expect(roundTrips()).toBe(before)
  expect(lines.at(-1)).toMatchObject({ level: warned, msg: away })
})

test('an outage ends with the first bucket that answers, even if another one never does', async () => {
  const { limiter, lines, script, wait } = createScriptedProcess()
  script(() => refused)
  const take = async () => {
    for (const name of ['held', 'b', 'c']) await limiter.consume(requestOf(name))
  }
  await take()
  script((bucketId) => (bucketId === 'org_held:secret' ? refused : healthy))
  for (let i = 0; i < 30; i++) {
    await wait(100)
    await take()
  }
  expect(lines.map(({ level }) => level)).toEqual([warned, warned, informed])
  expect(limiter.consume(requestOf('d'))).toBeInstanceOf(Promise)
})

test('while the store is away there is one round trip a second', async () => {
  const { limiter, script, wait, roundTrips } = createScriptedProcess()
  script(() => refused)
  for (let i = 0; i < 20; i++) await limiter.consume(requestOf(`${i}`))
  const before = roundTrips()
  await wait(10_000)
  expect(roundTrips() - before).toBeLessThanOrEqual(10)
  expect(roundTrips() - before).toBeGreaterThanOrEqual(8)
})
