import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { openKafkaLog } from '../../infra/log/kafka/log.ts'
import type { EventLog, NewRecord } from '../../infra/log/port.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { createLogger } from '../../infra/telemetry.ts'
import type { Environment, LogName } from '../environment.ts'
import type { Aim, Measurement } from '../measurement.ts'
import type { Scale } from '../scale.ts'
import { quantile, spreadOf } from '../stats.ts'

const inFlight = 256
const valueBytes = 1024
const partitions = 12
const consumed = 400

/** Measures the log alone: appends per second, and the time from append to consumer. */
export async function measureLog(
  environment: Environment,
  { logRounds, logSeconds }: Scale,
): Promise<Measurement[]> {
  const pool = createPool({ url: environment.databaseUrl, max: 20 })
  const runs: LogRun[] = []
  try {
    for (let round = 0; round < logRounds; round++)
      runs.push(await runOnLog(await openLog(environment, pool), logSeconds))
  } finally {
    await pool.end()
  }
  return toMeasurements(environment.logName, runs)
}

/**
 * Sorted milliseconds from append to confirmation under load, and from append to consumer with an append every 5 ms.
 */
interface LogRun {
  appendsPerSecond: number
  appends: number[]
  arrivals: number[]
}

async function runOnLog(log: EventLog, seconds: number): Promise<LogRun> {
  const topic = `bench.${randomUUID()}`
  const record = (): NewRecord => ({
    topic,
    key: randomUUID(),
    value: randomBytes(valueBytes),
    headers: {},
  })
  try {
    await log.ensureTopics([{ topic, partitions }])
    await appendFor(log, record, 1)
    const appends = await appendFor(log, record, seconds)
    const arrivals = await consumeLatencies(log, topic, record)
    return { appendsPerSecond: appends.length / seconds, appends, arrivals }
  } finally {
    await log.close()
  }
}

async function appendFor(
  log: EventLog,
  record: () => NewRecord,
  seconds: number,
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
  return took.sort((a, b) => a - b)
}

async function consumeLatencies(
  log: EventLog,
  topic: string,
  record: () => NewRecord,
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
  for (let i = 0; i < consumed; i++) {
    const next = record()
    starts.set(next.key, performance.now())
    await log.append([next])
    await delay(5)
  }
  while (took.length < consumed) await delay(10)
  await consumer.stop()
  return took.sort((a, b) => a - b)
}

function toMeasurements(log: LogName, runs: LogRun[]): Measurement[] {
  const quantiles = (times: (run: LogRun) => number[], share: number) =>
    spreadOf(runs.map((run) => quantile(times(run), share)))
  // Only the embedded log has targets; Kafka's numbers are shown for comparison.
  const aim = (direction: Aim['direction'], value: number) =>
    log === 'embedded' ? { aim: { direction, value } } : {}
  const appends = ({ appends }: LogRun) => appends
  const arrivals = ({ arrivals }: LogRun) => arrivals
  return [
    {
      name: `log appends of 1 KB, ${inFlight} in flight`,
      log,
      unit: 'per second',
      value: spreadOf(runs.map(({ appendsPerSecond }) => appendsPerSecond)),
      ...aim('at least', 20_000),
      details: {
        'append p50 ms': quantiles(appends, 0.5).median,
        'append p99 ms': quantiles(appends, 0.99).median,
      },
    },
    {
      name: 'log append to consumer p50',
      log,
      unit: 'ms',
      value: quantiles(arrivals, 0.5),
      ...aim('at most', 3),
      details: { 'p99 ms': quantiles(arrivals, 0.99).median },
    },
  ]
}

function openLog(
  { settings, logName, databaseUrl }: Environment,
  pool: ReturnType<typeof createPool>,
): Promise<EventLog> {
  const logger = createLogger('warn')
  if (logName === 'embedded') return openPostgresLog({ pool, url: databaseUrl, logger })
  return openKafkaLog({
    brokers: settings.KAFKA_BROKERS.split(','),
    topicPrefix: settings.KAFKA_TOPIC_PREFIX,
    logger,
  })
}
