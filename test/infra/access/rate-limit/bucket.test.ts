import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  addUsage,
  applyUsage,
  type Bucket,
  charged,
  joinUsage,
  noUsage,
  refilled,
  refillUsage,
  unit,
  usageReport,
} from '../../../../infra/access/rate-limit/bucket.ts'
import { type SyncRequest, synchronize } from '../../../../infra/access/rate-limit/shared-bucket.ts'
import { createModel } from './support/model.ts'

const seed = Number(process.env.SEED ?? randomInt(2 ** 31))
console.log(`rate limiter, pure parts: SEED=${seed}`)

const limits = fc.constantFrom(1, 7, 600, 3000, 1_000_000)
const step = fc.record({ gap: fc.integer({ min: 0, max: 40_000 }), cost: fc.integer({ min: 1, max: 900 }) })
const steps = fc.array(step, { maxLength: 40 })
type Steps = { gap: number; cost: number }[]

function spend(bucket: Bucket, taken: Steps): Bucket {
  return taken.reduce(({ limit, total, at }, { gap, cost }) => {
    return { limit, total: charged(refilled(total, limit, gap), limit, cost * unit), at: at + gap }
  }, bucket)
}

/** The same as a report, without knowing the bucket; begins at `now`. */
function spendingOf(limit: number, taken: Steps, now: number) {
  const usage = noUsage(limit, now)
  let at = now
  for (const { gap, cost } of taken) {
    refillUsage(usage, limit, gap)
    addUsage(usage, limit, cost * unit)
    at += gap
  }
  return { usage, at }
}

/** What two processes take, in the order of time. */
function merged(one: Steps, two: Steps): Steps {
  const timed = [one, two].flatMap((taken) => {
    let at = 0
    return taken.map(({ gap, cost }) => {
      at += gap
      return { at, cost }
    })
  })
  timed.sort((a, b) => a.at - b.at)
  return timed.map(({ at, cost }, i) => ({ gap: at - (timed[i - 1]?.at ?? 0), cost }))
}

test('refilling and charging follow the rule of the interface', () => {
  fc.assert(
    fc.property(limits, steps, (limit, taken) => {
      const model = createModel(limit, 0)
      let bucket: Bucket = { limit, total: limit * unit, at: 0 }
      for (const { gap, cost } of taken) {
        const expected = model.request(cost, limit, bucket.at + gap)
        const enough = refilled(bucket.total, limit, gap) >= cost * unit
        bucket = spend(bucket, [{ gap, cost }])
        expect(enough).toBe(expected.admitted)
        expect(Math.max(0, Math.floor(bucket.total / unit))).toBe(expected.remaining)
      }
    }),
    { seed, numRuns: 300 },
  )
})

describe('a report', () => {
  const anyBucket = fc
    .record({ limit: limits, share: fc.double({ min: -1, max: 1, noNaN: true }) })
    .map(({ limit, share }): Bucket => ({ limit, total: Math.round(share * limit * unit), at: 0 }))
  const pause = fc.integer({ min: 0, max: 70_000 })

  test('leads every bucket to where the usage itself would have led it', () => {
    fc.assert(
      fc.property(anyBucket, pause, steps, (bucket, idle, taken) => {
        const { usage, at } = spendingOf(bucket.limit, taken, idle)
        const direct = spend(
          { ...bucket, total: refilled(bucket.total, bucket.limit, idle), at: idle },
          taken,
        )
        expect(applyUsage(bucket, usageReport(usage, at), at)).toEqual(direct)
      }),
      { seed, numRuns: 300 },
    )
  })

  test('of two spendings in a row is that of both', () => {
    fc.assert(
      fc.property(anyBucket, pause, steps, steps, (bucket, idle, first, second) => {
        const earlier = spendingOf(bucket.limit, first, 0)
        const later = spendingOf(bucket.limit, second, earlier.at + idle)
        const joined = joinUsage(bucket.limit, earlier, later)
        const direct = spend(spend(bucket, first), [{ gap: idle, cost: 0 }, ...second])
        expect(applyUsage(bucket, usageReport(joined, later.at), later.at)).toEqual(direct)
      }),
      { seed, numRuns: 300 },
    )
  })

  test('never leaves more than both spendings would, when two processes spend at the same time', () => {
    fc.assert(
      fc.property(limits, steps, steps, (limit, one, two) => {
        const mine = spendingOf(limit, one, 0)
        const theirs = spendingOf(limit, two, 0)
        const end = Math.max(mine.at, theirs.at)
        refillUsage(mine.usage, limit, end - mine.at)
        const full = { limit, total: limit * unit, at: 0 }
        const afterTheirs = applyUsage(full, usageReport(theirs.usage, theirs.at), theirs.at)
        const afterBoth = applyUsage(afterTheirs, usageReport(mine.usage, end), end)
        const both = spend(full, merged(one, two))
        const exact = refilled(both.total, limit, end - both.at)
        expect(Math.max(afterBoth.total, 0)).toBeLessThanOrEqual(Math.max(exact, 0))
      }),
      { seed, numRuns: 300 },
    )
  })
})

describe('a round trip', () => {
  const sync: SyncRequest = {
    node: 'a',
    limit: 600,
    report: undefined,
    serial: undefined,
    keptLease: 0,
    wantsLease: true,
    requests: [],
  }
  const row = { limit: 600, total: 600 * unit, at: 5000, leases: {}, reports: {} }

  test('keeps what another process holds from requests and from new leases', () => {
    const leases = { b: { parts: 6 * unit, until: 7000 } }
    const ask = { limit: 600, cost: 1 }
    const { synced } = synchronize({ ...row, total: 6 * unit, leases }, { ...sync, requests: [ask] }, 5000)
    expect(synced).toMatchObject({ reserved: 6 * unit, lease: 0, decisions: [{ admitted: false }] })
  })

  test('leaves the shares of processes that were there within the last minute', () => {
    const reports = {
      b: { serial: 4, until: 5001 },
      c: { serial: 9, until: 50_000 },
      d: { serial: 1, until: 5000 },
    }
    expect(synchronize({ ...row, reports }, sync, 5000).synced.lease).toBe(2 * unit)
  })

  test('drops leases that have expired, and those from a clock that was set back', () => {
    const leases = { b: { parts: 6 * unit, until: 5000 }, c: { parts: 6 * unit, until: 99_000 } }
    expect(synchronize({ ...row, leases }, sync, 5000).synced).toMatchObject({ reserved: 0, lease: 6 * unit })
  })

  test('does not let time run backwards by a little, and goes on from a clock that was set back', () => {
    const empty = { ...row, total: 0 }
    expect(synchronize(empty, sync, 4999).row).toMatchObject({ total: 0, at: 5000 })
    const { row: moved } = synchronize({ ...empty, at: 9_000_000 }, sync, 5000)
    expect(moved).toMatchObject({ total: 0, at: 5000 })
    expect(synchronize(moved, sync, 6000).row).toMatchObject({ total: 10 * unit, at: 6000 })
  })

  test('with another limit clips what is there, and does not give the difference to a raised one', () => {
    const asking = (limit: number) => ({ ...sync, requests: [{ limit, cost: 1 }] })
    expect(synchronize(row, asking(100), 5000).row).toMatchObject({ limit: 100, total: 99 * unit })
    expect(synchronize(row, asking(1000), 5000).row).toMatchObject({ limit: 1000, total: 599 * unit })
  })
})
