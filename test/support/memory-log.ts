import { setTimeout as delay } from 'node:timers/promises'
import {
  type ConsumeOptions,
  type EventLog,
  type KeyedRecord,
  type LogRecord,
  LogUnavailable,
  type Position,
} from '../../infra/log/port.ts'

export interface MemoryLog extends EventLog {
  /** Everything appended, in order. */
  records: LogRecord[]
  /** true: append and check reject with LogUnavailable, nothing is stored. */
  setDown(down: boolean): void
  /** Resolves when every consumer has handled all that was appended. */
  settled(): Promise<void>
}

const retryMs = 20

/** An event log in an array, for unit tests: one partition a topic, delivered at once, no group offsets kept. */
export function createMemoryLog({ now = Date.now }: { now?: () => number } = {}): MemoryLog {
  const records: LogRecord[] = []
  // With what each is handling. One may read another topic meanwhile.
  const consumers = new Map<ConsumeOptions, Promise<void>>()
  let down = false

  const nextOffset = (topic: string) => records.filter((record) => record.topic === topic).length

  function store({ value, ...record }: KeyedRecord): LogRecord {
    const stored = {
      ...record,
      value: value ?? Buffer.alloc(0),
      partition: 0,
      offset: nextOffset(record.topic),
      timestamp: now(),
    }
    records.push(stored)
    return stored
  }

  // A batch that a handler rejects comes again, until the consumer stops.
  async function deliver(consumer: ConsumeOptions, some: LogRecord[]): Promise<void> {
    for (const topic of consumer.topics) {
      const mine = some.filter((record) => record.topic === topic)
      while (mine.length > 0 && consumers.has(consumer)) {
        try {
          await consumer.handle([{ topic, partition: 0, records: mine }])
          break
        } catch (error) {
          consumer.onError?.(error)
          await delay(retryMs)
        }
      }
    }
  }

  function deliverNext(consumer: ConsumeOptions, some: LogRecord[]): void {
    const before = consumers.get(consumer) ?? Promise.resolve()
    consumers.set(
      consumer,
      before.then(() => deliver(consumer, some)),
    )
  }

  function deliverAll(some: LogRecord[]): void {
    for (const consumer of consumers.keys()) deliverNext(consumer, some)
  }

  const checkUp = () => {
    if (down) throw new LogUnavailable('the log is down')
  }

  return {
    records,
    identity: async () => 'memory',
    warnings: async () => [],
    committed: async () => [],
    setDown: (value) => {
      down = value
    },
    settled: async () => {
      for (;;) {
        const now = [...consumers.values()]
        await Promise.all(now)
        if ([...consumers.values()].every((one) => now.includes(one))) return
      }
    },
    async append(some): Promise<Position[]> {
      checkUp()
      const stored = some.map(store)
      deliverAll(stored)
      return stored.map(({ topic, partition, offset }) => ({ topic, partition, offset }))
    },
    async consume(options) {
      const { topics, startOffset = async () => 0 } = options
      const starts = new Map<string, number>()
      for (const topic of topics) starts.set(topic, (await startOffset(topic, 0)) ?? 0)
      const earlier = records.filter(({ topic, offset }) => offset >= (starts.get(topic) ?? 0))
      deliverNext(options, earlier)
      return {
        async stop() {
          const handling = consumers.get(options)
          consumers.delete(options)
          await handling
        },
      }
    },
    firstPositions: async (topic) => [{ topic, partition: 0, offset: 0 }],
    endPositions: async (topic) => [{ topic, partition: 0, offset: nextOffset(topic) }],
    positionsSince: async (topic, time) => {
      const mine = records.filter((record) => record.topic === topic)
      const offset = mine.find(({ timestamp }) => timestamp >= time)?.offset ?? mine.length
      return [{ topic, partition: 0, offset }]
    },
    partitionOf: async () => 0,
    ensureTopics: async () => {},
    check: async () => checkUp(),
    close: async () => consumers.clear(),
  }
}
