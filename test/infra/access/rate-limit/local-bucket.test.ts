import { describe, expect, test } from 'vitest'
import { unit } from '../../../../infra/access/rate-limit/bucket.ts'
import {
  advance,
  applySynced,
  decideHere,
  type LocalBucket,
  localBucket,
  reportAgain,
  startReport,
} from '../../../../infra/access/rate-limit/local-bucket.ts'
import { leaseMs, type SyncResult, synchronize } from '../../../../infra/access/rate-limit/shared-bucket.ts'

const limit = 600
const one = { limit, cost: 1 }

const answer = (total: number, lease: number): SyncResult => ({
  bucket: { limit, total: total * unit, at: 77 },
  lease: lease * unit,
  reserved: 0,
  serial: undefined,
  decisions: [],
})

/** Knows of 100 units and holds 6 of them since 1000. */
function holder(): LocalBucket {
  const bucket = localBucket('b', limit, 1000)
  applySynced(bucket, startReport(bucket, { exact: true }), answer(100, 6))
  return bucket
}

function takeHere(bucket: LocalBucket, count: number): boolean[] {
  return Array.from({ length: count }, () => decideHere(bucket, one)?.admitted ?? false)
}

describe('a round trip seen from the process', () => {
  test('what is taken from the lease while it is renewed counts against the new lease', () => {
    const bucket = holder()
    expect(takeHere(bucket, 3)).toEqual([true, true, true])
    const sent = startReport(bucket, { exact: false })
    expect(sent.sync).toMatchObject({ keptLease: 3 * unit, report: { spent: 3 * unit } })
    takeHere(bucket, 2)
    applySynced(bucket, sent, answer(97, 6))
    expect(bucket).toMatchObject({ lease: 4 * unit, total: 95 * unit, usage: { spent: 2 * unit } })
  })

  test('a lease is not taken back while the process may still use it', () => {
    const leases = { a: { parts: 3 * unit, until: 9000 } }
    const sync = {
      node: 'a',
      limit,
      report: undefined,
      serial: undefined,
      keptLease: 3 * unit,
      wantsLease: true,
      requests: [],
    }
    const { row, synced } = synchronize(
      { limit, total: -50 * unit, at: 7000, leases, reports: {} },
      sync,
      7000,
    )
    expect(synced.lease).toBe(3 * unit)
    expect(row.leases).toEqual({ a: { parts: 3 * unit, until: 7000 + leaseMs } })
  })

  test('a lease is not used after it has expired, nor held on to', () => {
    const bucket = holder()
    advance(bucket, 1000 + leaseMs - 1)
    expect(decideHere(bucket, one)).toMatchObject({ admitted: true })
    advance(bucket, 1000 + leaseMs)
    expect(decideHere(bucket, one)).toBeUndefined()
    expect(startReport(bucket, { exact: false }).sync.keptLease).toBe(0)
  })

  test('while requests wait for the exact answer nothing is held', () => {
    const bucket = holder()
    expect(startReport(bucket, { exact: true }).sync.keptLease).toBe(0)
    expect(decideHere(bucket, one)).toBeUndefined()
  })

  test('a report that was lost goes with the next one', () => {
    const bucket = holder()
    takeHere(bucket, 3)
    const lost = startReport(bucket, { exact: false })
    advance(bucket, 1010)
    takeHere(bucket, 2)
    reportAgain(bucket, lost)
    advance(bucket, 1020)
    const { report } = startReport(bucket, { exact: false }).sync
    // What a full bucket would hold: 600 parts are gained a millisecond, and it did not get full again.
    const high = (limit - 3) * unit + 20 * limit - 2 * unit
    expect(report).toMatchObject({ durationMs: 20, spent: 5 * unit, high })
  })
})
