import pino from 'pino'
import { expect, test } from 'vitest'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { consumeEvents } from '../../../infra/event-store/consumer.ts'
import type { EventBatch } from '../../../infra/event-store/event-batch.ts'
import type { Batch, ConsumeOptions, NewRecord } from '../../../infra/log/port.ts'
import { createMemoryLog } from '../../support/memory-log.ts'
import { noSkips } from '../../support/no-skips.ts'
import { metaOf, sessionScored } from '../../support/session-scored.ts'

const topic = 'tidegate.sessions.v1'
const codec = createCodec()
const garbage = { topic, key: 'x', value: Buffer.from('not ours'), headers: {} }
const readable = () => {
  const data = sessionScored()
  return codec.toRecord({ type: 'SessionScored', data }, metaOf(data))
}

/** Starts a consumer that gets its batches from the test. */
async function startConsumer(some: Partial<Parameters<typeof consumeEvents>[0]>) {
  const errors: unknown[] = []
  const applied: EventBatch[] = []
  const now = { ms: 0 }
  const first = { offset: 0 }
  let consuming: ConsumeOptions | undefined
  const consumer = await consumeEvents({
    consumerName: 'a reader',
    group: 'g',
    topics: [topic],
    codec,
    logger: pino({ level: 'error' }, { write: (line) => void errors.push(JSON.parse(line)) }),
    skips: noSkips,
    clock: () => now.ms,
    log: {
      ...createMemoryLog(),
      firstPositions: async () => [{ topic, partition: 0, ...first }],
      async consume(options) {
        consuming = options
        await options.startOffset?.(topic, 0)
        return { stop: async () => {} }
      },
    },
    async apply(batches) {
      applied.push(...batches)
      return batches.map(({ partition, end: offset }) => ({ topic, partition, offset }))
    },
    ...some,
  })
  const handOver = async (...batches: Batch[]) => (await consuming?.handle(batches)) ?? []
  return { consumer, applied, errors, now, first, handOver }
}

const batch = (partition: number, record: NewRecord, ...offsets: number[]): Batch => ({
  topic,
  partition,
  records: offsets.map((offset) => ({ ...record, topic, partition, offset, timestamp: 1 })),
})

test('a failed lookup of skips fails only its own partition', async () => {
  const has = () => Promise.reject(new Error('the log is away'))
  const { consumer, applied, handOver } = await startConsumer({ skips: { has } })
  const readOn = await handOver(batch(0, garbage, 0), batch(1, readable(), 0))
  expect(readOn).toEqual([{ topic, partition: 0, offset: 0, failed: true }])
  expect(applied.map(({ partition, events }) => [partition, events.length])).toEqual([[1, 1]])
  expect(consumer.status().filter(({ stopped }) => stopped !== null)).toEqual([])
})

test('records that expire before a lagging consumer reads them are counted once', async () => {
  let expired = 0
  let isAway = true
  const { errors, now, first, handOver } = await startConsumer({
    types: new Set<string>(),
    startOffset: async () => 2,
    onExpired(records) {
      expired += records
    },
    async apply(batches) {
      if (isAway) throw new Error('the database is away')
      return batches.map(({ end }) => ({ topic, partition: 0, offset: end }))
    },
  })
  first.offset = 7
  now.ms = 2000
  // Offset 7 is missing for another reason.
  await handOver(batch(0, garbage, 8, 9))
  await handOver(batch(0, garbage, 8, 9))
  isAway = false
  await handOver(batch(0, garbage, 8, 9))
  await handOver(batch(0, garbage, 10, 12))
  expect(expired).toBe(5)
  expect(errors).toEqual([expect.objectContaining({ from: 2, to: 7, records: 5 })])
})
