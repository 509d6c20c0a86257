import { pino } from 'pino'
import { openKafkaLog } from '../../infra/log/kafka/log.ts'
import type { EventLog, NewRecord, Position } from '../../infra/log/port.ts'
import { openPostgresLog } from '../../infra/log/postgres/log.ts'
import { createPool } from '../../infra/postgres/pool.ts'
import type { Cluster } from './cluster.ts'

/** As another program writes that was given the wrong topic, and as a later version of this one does. */
export const foreignValues = {
  'that no schema wrote': Buffer.from('not ours'),
  'of an unknown schema': Buffer.from([0, 0, 1, 134, 159, 2]),
}

/** Writes to the log of a cluster as a program beside it, and returns where the records are. */
export async function appendForeign(
  { settings }: Pick<Cluster, 'settings'>,
  records: NewRecord[],
): Promise<Position[]> {
  const logger = pino({ level: 'silent' })
  const {
    DATABASE_URL: url = '',
    KAFKA_BROKERS: brokers,
    KAFKA_TOPIC_PREFIX: topicPrefix = '',
  } = settings
  const pool = createPool({ url, max: 2 })
  const log: EventLog = brokers
    ? await openKafkaLog({ brokers: brokers.split(','), topicPrefix, logger })
    : await openPostgresLog({ pool, url, logger })
  const positions = await log.append(records)
  await log.close()
  await pool.end()
  return positions
}
