import type { Consumer } from 'kafkajs'
import { backoffMs } from '../backoff.ts'
import type { ConsumeOptions } from '../port.ts'

export interface StartsOptions {
  consumer: Consumer
  /** Partitions are named with Kafka's names of topics here, the caller's in `options`. */
  callersName: (topic: string) => string
  options: ConsumeOptions
}

/**
 * Finds where to start after each assignment. kafkajs has no hook that it waits for, so new partitions are paused
 * in its event for a new assignment, which comes before the first fetch, and go on once their offset is known.
 */
export function createStarts({ consumer, callersName, options }: StartsOptions) {
  const { startOffset, onError } = options
  const ready = new Set<string>()
  let generation = 0

  async function start(topic: string, partition: number, mine: number, failures = 0): Promise<void> {
    try {
      const offset = await startOffset?.(callersName(topic), partition)
      if (mine !== generation) return
      if (offset !== undefined) consumer.seek({ topic, partition, offset: String(offset) })
      ready.add(`${topic} ${partition}`)
      consumer.resume([{ topic, partitions: [partition] }])
    } catch (error) {
      onError?.(error, { topic: callersName(topic), partition, offset: 0 })
      const again = () => mine === generation && void start(topic, partition, mine, failures + 1)
      setTimeout(again, backoffMs(failures + 1)).unref()
    }
  }

  return {
    assigned(assignment: Record<string, number[]>): void {
      generation += 1
      ready.clear()
      for (const [topic, partitions] of Object.entries(assignment)) {
        if (startOffset) consumer.pause([{ topic, partitions }])
        for (const partition of partitions) {
          if (startOffset) void start(topic, partition, generation)
          else ready.add(`${topic} ${partition}`)
        }
      }
    },
    isReady: (topic: string, partition: number): boolean => ready.has(`${topic} ${partition}`),
    stop(): void {
      generation += 1
    },
  }
}

export type Starts = ReturnType<typeof createStarts>
