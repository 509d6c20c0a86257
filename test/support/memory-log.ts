import { callHandler } from '../../infra/log/call-handler.ts'
import {
  type ConsumeOptions,
  type EventLog,
  type KeyedRecord,
  type LogRecord,
  LogUnavailable,
  type Position,
  partitionName,
  type Topic,
} from '../../infra/log/port.ts'

export interface MemoryLog extends EventLog {
  /** All records in order. */
  records: LogRecord[]
  /** If true, append and check reject with LogUnavailable, and nothing is stored. */
  setDown(down: boolean): void
  /** Resolves when every consumer has handled all records, or waits to retry. */
  settled(): Promise<void>
}

const retryMs = 200

interface Consumer {
  options: ConsumeOptions
  /** Next offset of each topic. */
  next: Map<Topic, number>
  handling: Promise<void>
  /** True while the consumer waits to retry a failed handler. */
  isBackingOff: boolean
}

/** Creates an in-memory event log with one partition per topic, immediate delivery and no stored group offsets. */
export function createMemoryLog({ now = Date.now }: { now?: () => number } = {}): MemoryLog {
  const records: LogRecord[] = []
  const consumers = new Set<Consumer>()
  let down = false

  const recordsOf = (topic: Topic) => records.filter((record) => record.topic === topic)
  const endOf = (topic: Topic) => recordsOf(topic).length

  function store({ value, ...record }: KeyedRecord): LogRecord {
    const stored = {
      ...record,
      value: value ?? Buffer.alloc(0),
      partition: 0,
      offset: endOf(record.topic),
      timestamp: now(),
    }
    records.push(stored)
    return stored
  }

  // Delivers records again if the handler rejects or asks for them, until the consumer stops.
  async function deliver(consumer: Consumer): Promise<void> {
    for (const topic of consumer.options.topics) {
      const nextOf = () => consumer.next.get(topic) ?? 0
      while (isReady(consumer) && nextOf() < endOf(topic)) {
        const mine = recordsOf(topic).slice(nextOf())
        const batch = { topic, partition: 0, records: mine }
        const chosen = (await callHandler(consumer.options, [batch])).get(partitionName(batch))
        consumer.next.set(topic, chosen?.offset ?? nextOf() + mine.length)
        if (chosen?.failed) {
          consumer.isBackingOff = true
          setTimeout(() => {
            consumer.isBackingOff = false
            wake(consumer)
          }, retryMs)
        }
      }
    }
  }

  const isReady = (consumer: Consumer) => consumers.has(consumer) && !consumer.isBackingOff

  function wake(consumer: Consumer): void {
    consumer.handling = consumer.handling.then(() => deliver(consumer))
  }

  const checkUp = () => {
    if (down) throw new LogUnavailable('the log is down')
  }

  return {
    records,
    identity: async () => 'memory',
    warnings: async () => [],
    committedPositions: async () => [],
    setDown: (value) => {
      down = value
    },
    settled: async () => {
      for (;;) {
        const now = [...consumers].map(({ handling }) => handling)
        await Promise.all(now)
        if ([...consumers].every(({ handling }) => now.includes(handling))) return
      }
    },
    async append(some): Promise<Position[]> {
      checkUp()
      const stored = some.map(store)
      for (const consumer of consumers) wake(consumer)
      return stored.map(({ topic, partition, offset }) => ({ topic, partition, offset }))
    },
    async consume(options) {
      const { topics, startOffset = async () => 0 } = options
      const next = new Map<Topic, number>()
      for (const topic of topics) next.set(topic, (await startOffset(topic, 0)) ?? 0)
      const consumer: Consumer = { options, next, handling: Promise.resolve(), isBackingOff: false }
      consumers.add(consumer)
      wake(consumer)
      return {
        async stop() {
          consumers.delete(consumer)
          await consumer.handling
        },
      }
    },
    firstPositions: async (topic) => [{ topic, partition: 0, offset: 0 }],
    endPositions: async (topic) => [{ topic, partition: 0, offset: endOf(topic) }],
    positionsSince: async (topic, time) => {
      const mine = recordsOf(topic)
      const offset = mine.find(({ timestamp }) => timestamp >= time)?.offset ?? mine.length
      return [{ topic, partition: 0, offset }]
    },
    partitionOf: async () => 0,
    ensureTopics: async () => {},
    check: async () => checkUp(),
    close: async () => consumers.clear(),
  }
}
