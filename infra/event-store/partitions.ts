import type { LogConsumer, Position } from '../log/port.ts'
import type { Logger } from '../telemetry.ts'
import { runPeriodically } from '../timing.ts'
import type { Poison } from './apply-batch.ts'

export interface PartitionStatus {
  topic: string
  partition: number
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
  /** What this process believes; kept up to date only after a commit. */
  partitions: Partitions
  /** The next offsets stored, one not listed being 0; undefined = there are none to compare with now. */
  readStored: () => Promise<Position[] | undefined>
  consume: () => Promise<LogConsumer>
  onError: (error: unknown) => void
  /** Called before the partitions are read again, with what was believed of those that went back. */
  onRewind: (partitions: PartitionStatus[]) => void
  /** Milliseconds between looks (default 2000). */
  lookMs?: number
}

/**
 * Keeps a consumer running that reads again what Postgres lost. Commits are asynchronous, so a crash of Postgres may
 * undo the last of them, while the log still has the records. A partition's next record would show it; but a partition
 * where none comes would stay as it is for ever.
 */
export async function consumeWithReplay(options: ReplayOptions): Promise<LogConsumer> {
  const { partitions, consume, onRewind: onWentBack, onError, lookMs = 2000 } = options
  let consumer: LogConsumer | undefined = await consume()

  async function look(): Promise<boolean> {
    const lost = consumer ? await findRewound(options) : []
    if (lost.length > 0) {
      onWentBack(lost.map(({ believed }) => believed))
      const stopped = consumer
      consumer = undefined
      await stopped?.stop()
      // Not while it ran: a batch after the gap would have been taken for the next one. Those of them that another
      // process has now are met no more, and would look lost for ever.
      for (const { stored, believed } of lost) partitions.of(believed).nextOffset = stored
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
  believed: PartitionStatus
  stored: number
}

/**
 * What is believed is noted before what is stored is read, and was stored when it was noted; whoever else works on the
 * partition only moves it forward. So less is stored only if it was lost (or moved back by hand).
 */
async function findRewound({ partitions, readStored }: ReplayOptions): Promise<Rewound[]> {
  const noted = partitions.all()
  const positions = await readStored()
  if (!positions) return []
  const storedOf = new Map(positions.map((at) => [`${at.topic}/${at.partition}`, at.offset]))
  return noted.flatMap((believed) => {
    const stored = storedOf.get(`${believed.topic}/${believed.partition}`) ?? 0
    // Its next record may have shown it meanwhile.
    return stored < Math.min(believed.nextOffset, partitions.of(believed).nextOffset)
      ? [{ believed, stored }]
      : []
  })
}
