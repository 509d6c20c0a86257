import { openKafkaLog } from '../../infra/log/kafka/log.ts'
import type { EventLog } from '../../infra/log/port.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import { createLogger } from '../../infra/telemetry.ts'
import type { Environment } from '../environment.ts'
import { benchLog } from '../log.ts'
import type { Measurement } from '../measurement.ts'
import { spreadOf } from '../stats.ts'

const inFlight = 256

/** The log by itself: appends a second and the time from append to consumer. */
export async function measureLog(environment: Environment, seconds: number): Promise<Measurement[]> {
  const pool = createPool({ url: environment.databaseUrl, max: 20 })
  try {
    const result = await benchLog({ open: () => openLog(environment, pool), inFlight, seconds })
    const { appendsPerSecond, appendP50, appendP99, consumeP50, consumeP99 } = result
    const { logName: log } = environment
    return [
      {
        name: `log appends of 1 KB, ${inFlight} in flight`,
        log,
        unit: 'per second',
        value: spreadOf([appendsPerSecond]),
        aim: { direction: 'at least', value: 20_000 },
        details: { 'append p50 ms': appendP50, 'append p99 ms': appendP99 },
      },
      {
        name: 'log append to consumer p50',
        log,
        unit: 'ms',
        value: spreadOf([consumeP50]),
        aim: { direction: 'at most', value: 3 },
        details: { 'p99 ms': consumeP99 },
      },
    ]
  } finally {
    await pool.end()
  }
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
