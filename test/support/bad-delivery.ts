import fc from 'fast-check'
import type pg from 'pg'
import { expect } from 'vitest'
import { applyBatches } from '../../infra/event-store/apply-batch.ts'
import {
  type Build,
  createBuild,
  dropBuild,
  initStartOffset,
} from '../../infra/event-store/builds.ts'
import { compareTable } from '../../infra/event-store/compare.ts'
import type { RecordedEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { transaction } from '../../infra/postgres/pool.ts'

/** Batch of a bad delivery: its partition and size, the events delivered again, and an earlier event that repeats. */
export interface BadDelivery {
  partition: number
  size: number
  again: number
  repeat: number | null
}

/** At most `maxSize` new events in a batch. */
function badDeliveries(partitions: number, maxSize: number): fc.Arbitrary<BadDelivery[]> {
  const delivery = fc.record({
    partition: fc.nat(partitions - 1),
    size: fc.integer({ min: 1, max: maxSize }),
    again: fc.nat(4),
    repeat: fc.option(fc.nat(30)),
  })
  return fc.array(delivery, { minLength: 5, maxLength: 25 })
}

export interface ScratchOptions {
  pool: () => pg.Pool
  projection: Projection
  topic: string
  partitions: number
}

/** Creates builds of a projection that a test fills and compares. */
export function scratchBuilds({ pool, projection, topic, partitions }: ScratchOptions) {
  async function deliver(build: Build, events: RecordedEvent[]): Promise<void> {
    const last = events.at(-1)
    if (!last) return
    const { topic, partition, offset } = last.position
    const batch = { topic, partition, events, end: offset + 1, expected: 0, timeBefore: () => 0 }
    const outcome = await applyBatches({ pool: pool(), projection, build, batches: [batch] })
    expect(outcome.kind).toBe('applied')
  }

  return {
    deliver,
    /** Runs `work` with a new, empty build. */
    async withBuild<T>(work: (build: Build) => Promise<T>): Promise<T> {
      const build = await transaction(pool(), (tx) => createBuild(tx, projection, 'building'))
      for (let partition = 0; partition < partitions; partition++) {
        await initStartOffset(pool(), build, { topic, partition, offset: 0 })
      }
      try {
        return await work(build)
      } finally {
        await transaction(pool(), (tx) => dropBuild(tx, build))
      }
    },
    /** Delivers the log by partition, in overlapping batches with repeated events. */
    async deliverBadly(
      build: Build,
      log: RecordedEvent[][],
      deliveries: BadDelivery[],
    ): Promise<void> {
      const next = log.map(() => 0)
      for (const { partition, size, again, repeat } of deliveries) {
        const events = log[partition] ?? []
        const from = next[partition] ?? 0
        const to = Math.min(from + size, events.length)
        const batch = events.slice(Math.max(0, from - again), to)
        await deliver(build, [...batch, ...repeated(events.slice(0, to), repeat)])
        next[partition] = to
      }
      for (const [partition, events] of log.entries())
        await deliver(build, events.slice(next[partition]))
    },
    /** Delivers the log over three connections, each with every third partition, like workers of a rebuild. */
    async deliverSideBySide(build: Build, log: RecordedEvent[][], size: number): Promise<void> {
      const deliverShare = async (share: number) => {
        const own = log.filter((_, partition) => partition % 3 === share)
        for (let from = 0; own.some((events) => from < events.length); from += size)
          for (const events of own) await deliver(build, events.slice(from, from + size))
      }
      await Promise.all([0, 1, 2].map(deliverShare))
    },
    async expectEqual(live: Build, next: Build): Promise<void> {
      for (const table of projection.tables) {
        const rows = projection.comparedRows?.[table]
        if (rows === 'not compared') continue
        const compared = await compareTable(
          { liveDb: pool(), nextDb: pool() },
          { table, live, next, rows },
        )
        expect(compared.differences.map(({ side, row }) => `${side} ${row.slice(0, 200)}`)).toEqual(
          [],
        )
        expect(compared.equal, table).toBe(true)
      }
    },
  }
}

/** Returns an earlier event as another record right after the last. */
function repeated(delivered: RecordedEvent[], which: number | null): RecordedEvent[] {
  const last = delivered.at(-1)
  const event = which === null || !last ? undefined : delivered[which % delivered.length]
  if (!event || !last) return []
  return [{ ...event, position: { ...last.position, offset: last.position.offset + 1 } }]
}

/** Returns settings for fast-check with a random seed, which it prints. SEED and SEED_PATH repeat a failed run. */
export function fastCheckSettings(runs: number): fc.Parameters<unknown> {
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)
  console.log(`fast-check seed ${seed}`)
  return {
    seed,
    numRuns: runs,
    endOnFailure: true,
    ...(process.env.SEED_PATH ? { path: process.env.SEED_PATH } : {}),
  }
}

export interface OrderOptions<Log> extends ScratchOptions {
  logs: fc.Arbitrary<Log>
  /** Returns the log's partitions, each in offset order. */
  partitionsOf: (log: Log) => RecordedEvent[][]
  /** Maximum number of new events in a batch. */
  maxSize: number
  runs: number
}

/**
 * Throws if the read model depends on repeated events, batches, the order of partitions, or concurrent connections.
 */
export async function expectOrderIsNothing<Log>(options: OrderOptions<Log>): Promise<void> {
  const { logs, partitionsOf, maxSize, runs, partitions } = options
  const { deliver, deliverBadly, deliverSideBySide, expectEqual, withBuild } =
    scratchBuilds(options)
  const property = fc.asyncProperty(logs, badDeliveries(partitions, maxSize), (log, deliveries) =>
    withBuild((plain) =>
      withBuild(async (troubled) => {
        const partitioned = partitionsOf(log)
        for (const events of partitioned) await deliver(plain, events)
        await deliverBadly(troubled, partitioned, deliveries)
        await expectEqual(plain, troubled)
        await withBuild(async (hurried) => {
          await deliverSideBySide(hurried, partitioned, maxSize)
          await expectEqual(plain, hurried)
        })
      }),
    ),
  )
  await fc.assert(property, fastCheckSettings(runs))
}
