import type { Position } from '../log/port.ts'
import type { Logger } from '../telemetry.ts'
import type { Poison } from './decode-batch.ts'

export interface PartitionStatus {
  topic: string
  partition: number
  /** The next offset to deal with. */
  nextOffset: number
  /** Why the partition stands still, at `nextOffset`; null while it goes on. */
  halted: string | null
}

/** A partition met an event that cannot be dealt with. It is tried again from there, and never skipped. */
export class PartitionHalted extends Error {
  constructor(who: string, { position: { topic, partition, offset }, error }: Poison) {
    super(`${who} stands still at ${topic}/${partition} offset ${offset}`, { cause: error })
    this.name = 'PartitionHalted'
  }
}

export interface Partitions {
  /** Where the partition stands; a caller keeps it up to date. */
  of(place: Omit<Position, 'offset'>): PartitionStatus
  /** Notes what the partition stands still at, says so once in the log, and throws PartitionHalted. */
  halt(poison: Poison): never
  /** Copies of all that were met, for readiness and metrics. */
  all(): PartitionStatus[]
}

export interface PartitionsOptions {
  /** Who consumes, as errors and log lines name it. */
  who: string
  logger: Logger
}

/** What this process knows of the partitions that one of its consumers has met. */
export function createPartitions({ who, logger }: PartitionsOptions): Partitions {
  const known = new Map<string, PartitionStatus>()

  function of({ topic, partition }: Omit<Position, 'offset'>): PartitionStatus {
    const key = `${topic}/${partition}`
    const status = known.get(key) ?? { topic, partition, nextOffset: 0, halted: null }
    known.set(key, status)
    return status
  }

  return {
    of,
    halt(poison) {
      const error = new PartitionHalted(who, poison)
      const status = of(poison.position)
      // It is tried again and again; one line says so.
      if (!status.halted) logger.error({ err: error, consumer: who, ...poison.position }, error.message)
      status.halted = String(poison.error)
      throw error
    },
    all: () => [...known.values()].map((status) => ({ ...status })),
  }
}
