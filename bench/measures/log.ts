import { openKafkaLog } from '../../infra/log/kafka/log.ts'
import type { EventLog } from '../../infra/log/port.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { createLogger } from '../../infra/telemetry.ts'
import type { Environment, LogName } from '../environment.ts'
import { benchLog, type LogBenchResult } from '../log.ts'
import type { Aim, Measurement } from '../measurement.ts'
import type { Scale } from '../scale.ts'
import { spreadOf } from '../stats.ts'

const inFlight = 256

/** The log by itself: appends a second and the time from append to consumer. */
export async function measureLog(
  environment: Environment,
  { logRounds, logSeconds }: Scale,
): Promise<Measurement[]> {
  const pool = createPool({ url: environment.databaseUrl, max: 20 })
  const results: LogBenchResult[] = []
  try {
    for (let round = 0; round < logRounds; round++) {
      results.push(
        await benchLog({ open: () => openLog(environment, pool), inFlight, seconds: logSeconds }),
      )
    }
  } finally {
    await pool.end()
  }
  return toMeasurements(environment.logName, results)
}

function toMeasurements(log: LogName, results: LogBenchResult[]): Measurement[] {
  const all = (name: keyof LogBenchResult) => spreadOf(results.map((result) => result[name]))
  // The aims are the embedded log's; Kafka's own numbers are shown beside them.
  const aim = (direction: Aim['direction'], value: number) =>
    log === 'embedded' ? { aim: { direction, value } } : {}
  return [
    {
      name: `log appends of 1 KB, ${inFlight} in flight`,
      log,
      unit: 'per second',
      value: all('appendsPerSecond'),
      ...aim('at least', 20_000),
      details: {
        'append p50 ms': all('appendP50').median,
        'append p99 ms': all('appendP99').median,
      },
    },
    {
      name: 'log append to consumer p50',
      log,
      unit: 'ms',
      value: all('consumeP50'),
      ...aim('at most', 3),
      details: { 'p99 ms': all('consumeP99').median },
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
