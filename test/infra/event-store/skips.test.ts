import { pino } from 'pino'
import { expect, it } from 'vitest'
import { createCodec } from '../../../infra/event-store/codec.ts'
import { consumeEvents } from '../../../infra/event-store/consumer.ts'
import type { EventBatch } from '../../../infra/event-store/event-batch.ts'
import { createSkips, skipInCopy } from '../../../infra/event-store/skips.ts'
import type { Batch, ConsumeOptions, LogRecord, ReadOn } from '../../../infra/log/port.ts'
import { readRecords } from '../../../infra/log/read-topic.ts'
import { createMemoryLog, type MemoryLog } from '../../support/memory-log.ts'
import { metaOf, sessionScored } from '../../support/session-scored.ts'

const codec = createCodec()
const silent = pino({ level: 'silent' })
const cause = { actor: { type: 'operator', id: 'log skip' }, request_id: null } as const
const topic = 'tidegate.sessions.v1'
const decisions = 'tidegate.operations.v1'

function skip(log: MemoryLog, offset: number) {
  const data = {
    skipped_topic: topic,
    skipped_partition: 0,
    skipped_offset: offset,
    reason: 'a typo',
    skipped_by: 'Ada',
    skipped_at: 1,
    why_unreadable: 'not ours',
    record_key: 'k',
    record_headers: {},
    record_value: Buffer.of(1),
  }
  const meta = { eventId: `skip_${offset}`, time: 1, organizationId: null, environment: null }
  return log.append([codec.toCausedRecord({ type: 'RecordSkipped', data }, meta, cause)])
}

const garbage = (to: string) => ({
  topic: to,
  key: 'x',
  value: Buffer.from('not ours'),
  headers: {},
})
const at = (offset: number) => ({ topic, partition: 0, offset })

function listening() {
  const lines: Record<string, unknown>[] = []
  const logger = pino(
    { level: 'warn' },
    { write: (line: string) => void lines.push(JSON.parse(line)) },
  )
  return { lines, logger }
}

it('an unreadable record among the decisions is left out and reported, and takes away no other', async () => {
  const log = createMemoryLog()
  const { lines, logger } = listening()
  await log.append([garbage(decisions)])
  await skip(log, 3)
  const skips = createSkips({ log, codec, logger })
  expect([await skips.has(at(3)), await skips.has(at(4))]).toEqual([true, false])
  await log.append([garbage(decisions)])
  await skip(log, 4)
  await log.settled()
  expect(await skips.has(at(4))).toBe(true)
  const told = lines.map(({ level, topic: of, partition, offset }) => ({
    level,
    of,
    partition,
    offset,
  }))
  expect(told).toEqual([0, 2].map((offset) => ({ level: 50, of: decisions, partition: 0, offset })))
  await skips.close()
})

it('decisions that could not be read once are read when they are asked for again', async () => {
  const log = createMemoryLog()
  await skip(log, 3)
  let failures = 1
  const away = {
    ...log,
    async endPositions(of: string) {
      if (failures-- > 0) throw new Error('the log is away')
      return log.endPositions(of)
    },
  }
  const skips = createSkips({ log: away, codec, logger: silent })
  await expect(skips.has(at(3))).rejects.toThrow('away')
  expect(await skips.has(at(3))).toBe(true)
  await skips.close()
})

it('a copy of the log takes a record that cannot be read as it is, whatever its header says', () => {
  const headers = { event_type: 'RecordSkipped' }
  const record: LogRecord = {
    ...garbage(decisions),
    headers,
    partition: 0,
    offset: 0,
    timestamp: 1,
  }
  expect(skipInCopy(codec, record, topic)).toBe(record)
})

it('a copy of the log has the offset -1 for a skipped record of the topic that gets other offsets', async () => {
  const log = createMemoryLog()
  await skip(log, 3)
  const [record] = await readRecords(log, decisions, await log.firstPositions(decisions))
  if (!record) throw new Error('nothing was appended')
  expect(skipInCopy(codec, record, 'tidegate.collect.v1')).toBe(record)
  const { value, ...place } = skipInCopy(codec, record, topic)
  const { value: original, ...same } = record
  expect(place).toEqual(same)
  const dataOf = (bytes: Buffer) => codec.fromRecord({ ...record, value: bytes }).data
  expect(dataOf(value)).toEqual({ ...dataOf(original), skipped_offset: -1 })
})

/** A consumer whose hand-overs a test makes. */
async function startConsumer(some: Partial<Parameters<typeof consumeEvents>[0]>) {
  let consuming: ConsumeOptions | undefined
  const applied: EventBatch[] = []
  const log = {
    ...createMemoryLog(),
    consume: async (options: ConsumeOptions) => {
      consuming = options
      return { stop: async () => {} }
    },
  }
  const consumer = await consumeEvents({
    who: 'a reader',
    group: 'g',
    topics: [topic],
    log,
    codec,
    logger: silent,
    skips: { has: async () => false },
    async apply(batches) {
      applied.push(...batches)
      return batches.map(({ partition, end: offset }) => ({ topic, partition, offset }))
    },
    ...some,
  })
  const handOver = async (...batches: Batch[]): Promise<ReadOn[]> =>
    (await consuming?.handle(batches)) ?? []
  return { consumer, applied, handOver }
}

function batch(partition: number, record: Pick<LogRecord, 'key' | 'value' | 'headers'>): Batch {
  return { topic, partition, records: [{ ...record, topic, partition, offset: 0, timestamp: 1 }] }
}

const readable = () => {
  const data = sessionScored()
  return codec.toRecord({ type: 'SessionScored', data }, metaOf(data))
}
const stoppedIn = (consumer: { status(): { partition: number; stopped: string | null }[] }) =>
  consumer.status().flatMap(({ partition, stopped }) => (stopped === null ? [] : [partition]))

it('a partition of which nobody knows whether its record is skipped fails alone', async () => {
  const has = () => Promise.reject(new Error('the log is away'))
  const { consumer, applied, handOver } = await startConsumer({ skips: { has } })
  const readOn = await handOver(batch(0, garbage(topic)), batch(1, readable()))
  expect(readOn).toEqual([{ topic, partition: 0, offset: 0, failed: true }])
  expect(applied.map(({ partition, events }) => [partition, events.length])).toEqual([[1, 1]])
  expect(stoppedIn(consumer)).toEqual([])
})
