import {
  type BucketStore,
  type Report,
  unit,
} from '../../../../../infra/access/rate-limit/limiter.ts'

/** Outcome of a statement: `lost` = it charged, and its answer never came. */
export type Fate = 'healthy' | 'refused' | 'lost'

export interface MemoryStoreOptions {
  clock: () => number
  /** Awaited before a charge and once more before its answer. */
  travel?: () => Promise<void>
}

export interface Row {
  parts: number
  at: number
}

/** Buckets in memory, with the rule of the store written a second time. Outcomes of statements can be scripted. */
export function createMemoryStore({ clock, travel = async () => {} }: MemoryStoreOptions) {
  const rows = new Map<string, Row>()
  let script: () => Fate = () => 'healthy'
  let statements = 0

  const store: BucketStore = {
    async charge(reports) {
      statements++
      const fate = script()
      const ids = reports.map(({ bucketId }) => bucketId)
      if (new Set(ids).size < ids.length) throw new Error('a statement names a bucket twice')
      await travel()
      if (fate === 'refused') throw new Error('as scripted')
      const left = reports.map((report) => {
        const row = charged(rows.get(report.bucketId), report, clock())
        rows.set(report.bucketId, row)
        return row.parts
      })
      if (fate === 'lost') throw new Error('as scripted')
      await travel()
      return left
    },
  }

  return {
    store,
    statements: () => statements,
    row: (bucketId: string) => rows.get(bucketId),
    /** From now on. */
    script(next: () => Fate): void {
      script = next
    },
  }
}

export function charged(row: Row | undefined, { limit, charge }: Report, now: number): Row {
  const full = limit * unit
  if (!row) return { parts: full - charge, at: now }
  const refilled = Math.max(-full, row.parts) + limit * Math.max(0, now - row.at)
  return { parts: Math.min(full, refilled) - charge, at: now }
}
