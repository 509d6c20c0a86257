import type { LogConsumer, Position } from '../log/port.ts'
import type { Logger } from '../telemetry.ts'
import { runPeriodically } from '../timing.ts'
import type { Poison } from './apply-batch.ts'

export interface PartitionStatus {
  topic: string
  partition: number
  nextOffset: number
  /** Why the partition is halted at `nextOffset`; null while it goes on. */
  halted: string | null
}

/** A partition met an event that cannot be dealt with. It is tried again, and never skipped. */
export class PartitionHalted extends Error {
  constructor(who: string, { position: { topic, partition, offset }, error }: Poison) {
    super(`${who} stands still at ${topic}/${partition} offset ${offset}`, { cause: error })
    this.name = 'PartitionHalted'
  }
}

export interface Partitions {
  of(place: Omit<Position, 'offset'>): PartitionStatus
  /** Marks the partition as halted, logs it once, and throws PartitionHalted. */
  halt(poison: Poison): never
  all(): PartitionStatus[]
}

export interface PartitionsOptions {
  who: string
  logger: Logger
}

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

export interface ReplayOptions {
  /** What this process knows of; kept up to date only after a commit. */
  partitions: Partitions
  /**
   * The stored next offsets; a partition that is not listed has 0. Undefined = there are none to compare with
   * now.
   */
  readStored: () => Promise<Position[] | undefined>
  consume: () => Promise<LogConsumer>
  onError: (error: unknown) => void
  /** Called before the replay, with the status of the partitions as it was before. */
  onRewind: (partitions: PartitionStatus[]) => void
  /** Milliseconds between looks (default 2000). */
  lookMs?: number
}

/**
 * Keeps a consumer running that replays what Postgres lost. Commits are asynchronous, so a crash of Postgres
 * may undo the last ones, while the log still has the records. The next record of a partition would show it.
 * A partition without new records would stay as it is for ever.
 */
export async function consumeWithReplay(options: ReplayOptions): Promise<LogConsumer> {
  const { partitions, consume, onRewind, onError, lookMs = 2000 } = options
  let consumer: LogConsumer | undefined = await consume()

  async function look(): Promise<boolean> {
    const lost = consumer ? await findRewound(options) : []
    if (lost.length > 0) {
      onRewind(lost.map(({ status }) => status))
      const stopped = consumer
      consumer = undefined
      await stopped?.stop()
      // Not while it ran: a batch after the gap would have passed for the next one. Those of them that another
      // process has now are met no more, and would look lost for ever.
      for (const { stored, status } of lost) partitions.of(status).nextOffset = stored
    }
    consumer ??= await consume()
    return false
  }

  const looking = runPeriodically({ intervalMs: lookMs, look, onError })
  return {
    async stop() {
      await looking.stop()
      await consumer?.stop()
    },
  }
}

interface Rewound {
  status: PartitionStatus
  stored: number
}

/**
 * The status is copied before the stored offsets are read, and others only move a partition forward. So a
 * smaller stored offset means lost commits, or an offset that was moved back by hand.
 */
async function findRewound({ partitions, readStored }: ReplayOptions): Promise<Rewound[]> {
  const noted = partitions.all()
  const positions = await readStored()
  if (!positions) return []
  const storedOf = new Map(positions.map((at) => [`${at.topic}/${at.partition}`, at.offset]))
  return noted.flatMap((status) => {
    const stored = storedOf.get(`${status.topic}/${status.partition}`) ?? 0
    // Its next record may have shown it meanwhile.
    return stored < Math.min(status.nextOffset, partitions.of(status).nextOffset) ? [{ status, stored }] : []
  })
}
