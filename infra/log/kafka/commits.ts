import type { Consumer } from 'kafkajs'
import type { Position } from '../port.ts'

const commitEveryMs = 250

/** Gathers handled offsets and commits them together: what a crash leaves uncommitted is delivered again. */
export function createCommits(consumer: Consumer, onError: (error: unknown) => void) {
  const pending = new Map<string, Position>()
  let timer: NodeJS.Timeout | undefined

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const offsets = [...pending.values()].map((position) => ({
      ...position,
      offset: String(position.offset),
    }))
    pending.clear()
    if (offsets.length > 0) await consumer.commitOffsets(offsets).catch(onError)
  }

  return {
    flush,
    /** `position.offset` is the next offset to read. */
    add(position: Position): void {
      pending.set(`${position.topic} ${position.partition}`, position)
      timer ??= setTimeout(() => void flush(), commitEveryMs)
    },
    /** Forgets what is not committed: other members may own the partitions by now. */
    clear(): void {
      pending.clear()
    },
  }
}

export type Commits = ReturnType<typeof createCommits>
