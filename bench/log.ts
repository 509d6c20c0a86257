import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pino } from 'pino'
import { startEmbeddedPostgres } from '../infra/local/embedded-postgres.ts'
import { openKafkaLog } from '../infra/log/kafka/log.ts'
import type { EventLog, NewRecord } from '../infra/log/port.ts'
import { openPostgresLog } from '../infra/log/postgres/log.ts'
import { createPool } from '../infra/postgres/pool.ts'
import { startKafkaBroker } from '../test/support/kafka-broker.ts'

export interface LogBenchOptions {
  open: () => Promise<EventLog>
  /** Appends of one record that wait for their confirmation at the same time. */
  inFlight?: number
  seconds?: number
  valueBytes?: number
  partitions?: number
}

export interface LogBenchResult {
  appendsPerSecond: number
  /** Milliseconds from calling append to its confirmation, under that load. */
  appendP50: number
  appendP99: number
  /** Milliseconds from calling append to the consumer's handler, one append every 5 ms. */
  consumeP50: number
  consumeP99: number
}

/** Measures durable appends a second, then the time from append to consumer. */
export async function benchLog(options: LogBenchOptions): Promise<LogBenchResult> {
  const { open, inFlight = 256, seconds = 5, valueBytes = 1024, partitions = 12 } = options
  const log = await open()
  const topic = `bench.${randomUUID()}`
  await log.ensureTopics([{ topic, partitions }])
  const record = (): NewRecord => ({
    topic,
    key: randomUUID(),
    value: randomBytes(valueBytes),
    headers: {},
  })
  try {
    await appendFor(log, record, { inFlight, seconds: 1 })
    const load = await appendFor(log, record, { inFlight, seconds })
    const latencies = await consumeLatencies(log, { topic, record, count: 400 })
    return {
      appendsPerSecond: Math.round(load.length / seconds),
      appendP50: quantile(load, 0.5),
      appendP99: quantile(load, 0.99),
      consumeP50: quantile(latencies, 0.5),
      consumeP99: quantile(latencies, 0.99),
    }
  } finally {
    await log.close()
  }
}

interface Load {
  inFlight: number
  seconds: number
}

/** How long each append took, in milliseconds. */
async function appendFor(
  log: EventLog,
  record: () => NewRecord,
  { inFlight, seconds }: Load,
): Promise<number[]> {
  const took: number[] = []
  const end = performance.now() + seconds * 1000
  async function client(): Promise<void> {
    for (let start = performance.now(); start < end; start = performance.now()) {
      await log.append([record()])
      took.push(performance.now() - start)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, client))
  return took
}

interface ConsumeRun {
  topic: string
  record: () => NewRecord
  count: number
}

async function consumeLatencies(
  log: EventLog,
  { topic, record, count }: ConsumeRun,
): Promise<number[]> {
  const starts = new Map<string, number>()
  const took: number[] = []
  const ends = new Map((await log.endPositions(topic)).map((end) => [end.partition, end.offset]))
  const consumer = await log.consume({
    group: randomUUID(),
    topics: [topic],
    startOffset: async (_, partition) => ends.get(partition),
    handle: async (batches) => {
      for (const { key } of batches.flatMap(({ records }) => records))
        took.push(performance.now() - (starts.get(key) ?? Number.NaN))
      return undefined
    },
  })
  await delay(1000)
  for (let i = 0; i < count; i++) {
    const next = record()
    starts.set(next.key, performance.now())
    await log.append([next])
    await delay(5)
  }
  while (took.length < count) await delay(10)
  await consumer.stop()
  return took
}

function quantile(values: number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return Number((sorted[Math.floor((sorted.length - 1) * q)] ?? Number.NaN).toFixed(2))
}

if (import.meta.main) {
  const logger = pino({ level: 'warn' })
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-bench-'))
  const postgres = await startEmbeddedPostgres({ dataDir: path.join(folder, 'postgres'), logger })
  const pool = createPool({ url: postgres.socketUrl })
  console.log(
    'postgres',
    await benchLog({ open: () => openPostgresLog({ pool, url: postgres.socketUrl, logger }) }),
  )
  await pool.end()
  await postgres.stop()
  await rm(folder, { recursive: true })
  const kafka = await startKafkaBroker({ logger })
  console.log(
    'kafka',
    await benchLog({ open: () => openKafkaLog({ brokers: [kafka.brokers], logger }) }),
  )
  await kafka.stop()
}
