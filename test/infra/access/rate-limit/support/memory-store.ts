import { type Report, unit } from '../../../../../infra/access/rate-limit/bucket.ts'
import type { BucketStore } from '../../../../../infra/access/rate-limit/limiter.ts'

/** What becomes of a round trip: `lost` = charged, without anybody hearing of it. */
export type Fate = 'healthy' | 'refused' | 'lost'

export interface MemoryStoreOptions {
  clock: () => number
  /** Awaited before a charge and once more before its answer. */
  travel?: () => Promise<void>
}

export interface Row {
  parts: number
  at: number
  reservations: Record<string, [parts: number, until: number]>
}

/** Buckets in memory, with the rule of the store written a second time; what becomes of round trips can be scripted. */
export function createMemoryStore({ clock, travel = async () => {} }: MemoryStoreOptions) {
  const rows = new Map<string, Row>()
  let script: (bucketId: string) => Fate = () => 'healthy'
  let roundTrips = 0

  const storeOf = (node: string): BucketStore => ({
    async charge(report) {
      roundTrips++
      const fate = script(report.bucketId)
      await travel()
      if (fate === 'refused') throw new Error('as scripted')
      const { row, granted } = charged(rows.get(report.bucketId), { report, node, now: clock() })
      rows.set(report.bucketId, row)
      if (fate === 'lost') throw new Error('as scripted')
      await travel()
      return { parts: row.parts, granted }
    },
  })

  return {
    storeOf,
    roundTrips: () => roundTrips,
    row: (bucketId: string) => rows.get(bucketId),
    /** Units that the processes hold of a bucket now, in the order in which they came. */
    reserved: (bucketId: string) =>
      Object.values(rows.get(bucketId)?.reservations ?? {})
        .filter(([, until]) => until >= clock())
        .map(([parts]) => parts / unit),
    /** From now on. */
    script(next: (bucketId: string) => Fate): void {
      script = next
    },
  }
}

interface Charge {
  report: Report
  node: string
  now: number
}

export function charged(
  row: Row | undefined,
  { report, node, now }: Charge,
): { row: Row; granted: number } {
  const { limit, charge, returned, retained, reserves } = report
  const full = limit * unit
  if (!row) return { row: { parts: full - charge, at: now, reservations: {} }, granted: 0 }
  const living = Object.entries(row.reservations).filter(
    ([, [, until]]) => until >= now && until <= now + 3000,
  )
  const others = living.filter(([owner]) => owner !== node)
  const byOthers = sum(others)
  const reserved = sum(living)
  const refilled = Math.max(-full - reserved, row.parts) + limit * Math.max(0, now - row.at)
  const rest = Math.min(full - reserved, refilled) + returned - charge
  const hundredth = Math.floor(limit / 100)
  const share = Math.floor(hundredth / (others.length + 1)) * unit
  const free = Math.min(share, hundredth * unit - byOthers) - retained
  const granted = reserves ? Math.max(0, Math.min(free, Math.floor(rest / unit) * unit)) : 0
  const reservations = {
    ...Object.fromEntries(others),
    [node]: [retained + granted, now + 3000] as [number, number],
  }
  return { row: { parts: rest - granted, at: now, reservations }, granted }
}

const sum = (reservations: [string, [number, number]][]) =>
  reservations.reduce((all, [, [parts]]) => all + parts, 0)
