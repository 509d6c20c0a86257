import type pg from 'pg'
import type { Clock } from '../../infra/ids.ts'
import type { Batch, EventLog } from '../../infra/log/port.ts'
import { transaction } from '../../infra/postgres/pool.ts'
import type { Logger } from '../../infra/telemetry.ts'
import type { Applied } from '../../projections/applied.ts'
import type { EventCodec } from '../../schemas/codec.ts'
import { eventTopics } from '../../schemas/events.ts'
import { scoreBatch } from './batch.ts'
import type { NetworkSource } from './network.ts'
import { createRecovery } from './recovery.ts'
import { readOffset } from './store.ts'
import { createScoringTables } from './tables.ts'

export interface ScoringOptions {
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  clock: Clock
  network: NetworkSource
  /** To learn, after a crash, which decisions were recorded already. */
  applied: Pick<Applied, 'waitFor'>
  logger: Logger
  /** Consumer group (default `tidegate-scoring`). */
  group?: string
}

const topic = eventTopics.BatchReceived

/** Scores what collect records, until stopped: consumes the collect topic, appends SessionScored. */
export async function runScoring(options: ScoringOptions): Promise<{ stop(): Promise<void> }> {
  const { log, pool, logger, group = 'tidegate-scoring' } = options
  await transaction(pool, createScoringTables)
  const recovery = createRecovery(options)

  async function startOffset(_topic: string, partition: number): Promise<number> {
    const ends = await log.endPositions(topic)
    recovery.suspect(partition, ends.find((end) => end.partition === partition)?.offset ?? 0)
    return readOffset(pool, { topic, partition })
  }

  async function handleBatch(batch: Batch): Promise<number | undefined> {
    const { partition } = batch
    const offset = batch.records[0]?.offset ?? 0
    const findRecorded = (ids: string[]) => recovery.findRecorded({ partition, offset }, ids)
    try {
      return await scoreBatch(options, { batch, findRecorded })
    } catch (error) {
      recovery.suspect(partition, (batch.records.at(-1)?.offset ?? 0) + 1)
      throw error
    }
  }

  return log.consume({
    group,
    topics: [topic],
    startOffset,
    handleBatch,
    onError: (err, position) =>
      logger.error({ err, position }, 'scoring failed; the records will be repeated'),
  })
}
