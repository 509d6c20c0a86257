import {
  type ConsumeOptions,
  type EventLog,
  type LogRecord,
  LogUnavailable,
  type NewRecord,
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

/** An event log in an array, for unit tests: one partition a topic, delivered at once, no group offsets kept. */
export function createMemoryLog({ now = Date.now }: { now?: () => number } = {}): MemoryLog {
  const records: LogRecord[] = []
  const consumers = new Set<ConsumeOptions>()
  let down = false
  let deliveries: Promise<void> = Promise.resolve()

  const nextOffset = (topic: string) => records.filter((record) => record.topic === topic).length

  function store(record: NewRecord): LogRecord {
    const stored = { ...record, partition: 0, offset: nextOffset(record.topic), timestamp: now() }
    records.push(stored)
    return stored
  }

  async function deliver({ topics, handle, onError }: ConsumeOptions, some: LogRecord[]): Promise<void> {
    for (const topic of topics) {
      const mine = some.filter((record) => record.topic === topic)
      if (mine.length > 0) {
        await handle([{ topic, partition: 0, records: mine }]).catch((error) => onError?.(error))
      }
    }
  }

  function deliverAll(some: LogRecord[]): void {
    for (const consumer of consumers) deliveries = deliveries.then(() => deliver(consumer, some))
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
      for (let last: unknown; last !== deliveries; ) {
        last = deliveries
        await deliveries
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
      deliveries = deliveries.then(() => deliver(options, earlier))
      consumers.add(options)
      return {
        async stop() {
          consumers.delete(options)
          await deliveries
        },
      }
    },
    firstPositions: async (topic) => [{ topic, partition: 0, offset: 0 }],
    endPositions: async (topic) => [{ topic, partition: 0, offset: nextOffset(topic) }],
    partitionOf: async () => 0,
    ensureTopics: async () => {},
    check: async () => checkUp(),
    close: async () => consumers.clear(),
  }
}
