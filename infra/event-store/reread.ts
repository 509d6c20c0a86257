import type { LogConsumer, Position } from '../log/port.ts'
import { runPeriodically } from '../timing.ts'
import type { PartitionStatus, Partitions } from './partitions.ts'

export interface RereadOptions {
  /** What this process believes; kept up to date only after a commit. */
  partitions: Partitions
  /** The next offsets stored, one not listed being 0; undefined = there are none to compare with now. */
  readStored: () => Promise<Position[] | undefined>
  /** Starts the consumer, which reads from what is stored then. */
  consume: () => Promise<LogConsumer>
  /** Called when the offsets cannot be read or the consumer not be started; the next look tries again. */
  onError: (error: unknown) => void
  /** Called before the partitions are read again, with what was believed of those that went back. */
  onWentBack: (partitions: PartitionStatus[]) => void
  /** Milliseconds between looks (default 2000). */
  lookMs?: number
}

/**
 * Keeps a consumer running that reads again what Postgres lost. Commits are asynchronous, so a crash of Postgres may
 * undo the last of them, while the log still has the records. A partition's next record would show it; but a partition
 * where none comes would stay as it is for ever.
 */
export async function consumeAgainWhenLost(options: RereadOptions): Promise<LogConsumer> {
  const { partitions, consume, onWentBack, onError, lookMs = 2000 } = options
  let consumer: LogConsumer | undefined = await consume()

  async function look(): Promise<boolean> {
    const lost = consumer ? await wentBack(options) : []
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

interface Lost {
  believed: PartitionStatus
  stored: number
}

/**
 * What is believed is noted before what is stored is read, and was stored when it was noted; whoever else works on the
 * partition only moves it forward. So less is stored only if it was lost (or moved back by hand).
 */
async function wentBack({ partitions, readStored }: RereadOptions): Promise<Lost[]> {
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
