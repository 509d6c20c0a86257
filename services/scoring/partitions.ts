import type { Logger } from '../../infra/telemetry.ts'
import type { Poison } from '../../projections/decode-batch.ts'
import type { PartitionStatus } from '../../projections/runner.ts'
import type { Place } from './store.ts'

/** A partition met an event that cannot be scored. It is tried again from there, and never skipped. */
export class ScoringHalted extends Error {
  constructor({ position: { topic, partition, offset }, error }: Poison) {
    super(`scoring stands still at ${topic}/${partition} offset ${offset}`, { cause: error })
    this.name = 'ScoringHalted'
  }
}

export interface Partitions {
  /** Where the partition stands; a caller keeps it up to date. */
  of(place: Place): PartitionStatus
  /** Notes what the partition stands still at, says so once in the log, and throws. */
  halt(poison: Poison): never
  all(): PartitionStatus[]
}

/** What this process knows of the partitions that it scores. */
export function createPartitions(logger: Logger): Partitions {
  const known = new Map<string, PartitionStatus>()

  function of({ topic, partition }: Place): PartitionStatus {
    const key = `${topic}/${partition}`
    const status = known.get(key) ?? { topic, partition, nextOffset: 0, halted: null }
    known.set(key, status)
    return status
  }

  return {
    of,
    halt(poison) {
      const error = new ScoringHalted(poison)
      const status = of(poison.position)
      if (!status.halted) logger.error({ err: error, ...poison.position }, error.message)
      status.halted = String(poison.error)
      throw error
    },
    all: () => [...known.values()].map((status) => ({ ...status })),
  }
}
