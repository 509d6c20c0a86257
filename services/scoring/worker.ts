import type pg from 'pg'
import type { Applied } from '../../infra/event-store/applied.ts'
import { type DecodedBatch, decodeBatch } from '../../infra/event-store/apply-batch.ts'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import {
  consumeWithReplay,
  createPartitions,
  PartitionHalted,
  type PartitionStatus,
} from '../../infra/event-store/partitions.ts'
import type { Clock } from '../../infra/ids.ts'
import type { NetworkSource } from '../../infra/ip/network.ts'
import type { Batch, EventLog, Position } from '../../infra/log/port.ts'
import { transaction } from '../../infra/postgres/pool.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { findDecisions } from '../../projections/sessions/queries.ts'
import { eventTopics } from '../../schemas/events.ts'
import { type ScoreOutcome, scoreBatch, Unscorable } from './batch.ts'
import { createScoringTables, readOffset, readOffsets } from './store.ts'
import type { RecordedVisitor } from './visitors/resolve.ts'

interface ScoringOptions {
  log: EventLog
  pool: pg.Pool
  codec: EventCodec
  clock: Clock
  network: NetworkSource
  applied: Pick<Applied, 'waitFor'>
  logger: Logger
  group?: string
}

export interface RunningScoring {
  status(): PartitionStatus[]
  stop(): Promise<void>
}

const topic = eventTopics.BatchReceived

/**
 * Scores what collect records, until stopped: consumes the collect topic, appends SessionScored. An event that cannot
 * be decoded or scored halts its partition there, and no other.
 */
export async function runScoring(options: ScoringOptions): Promise<RunningScoring> {
  const { log, pool, codec, logger, group = 'tidegate-scoring' } = options
  await transaction(pool, createScoringTables)
  const recovery = createRecovery(options)
  const partitions = createPartitions({ who: 'scoring', logger })

  async function startOffset(_topic: string, partition: number): Promise<number> {
    const ends = await log.endPositions(topic)
    recovery.suspect(partition, ends.find((end) => end.partition === partition)?.offset ?? 0)
    const next = await readOffset(pool, { topic, partition })
    partitions.of({ topic, partition }).nextOffset = next
    return next
  }

  async function score({ events, end }: DecodedBatch, logTime: number): Promise<ScoreOutcome> {
    const { partition } = end
    const status = partitions.of(end)
    const expected = status.nextOffset
    const offset = events[0]?.position.offset ?? end.offset
    const findRecorded = (ids: string[]) => recovery.findRecorded({ partition, offset }, ids)
    try {
      const outcome = await scoreBatch(options, { events, end, logTime, expected, findRecorded })
      if (outcome.kind === 'behind') recovery.suspect(partition, expected)
      status.nextOffset = outcome.nextOffset
      return outcome
    } catch (error) {
      // It may have been appended and not committed.
      recovery.suspect(partition, end.offset)
      throw error
    }
  }

  /** One by one, so that what precedes the event that fails is scored and its position is known. */
  async function scoreSingly({ events }: DecodedBatch, timeAt: (next: number) => number): Promise<void> {
    for (const event of events) {
      const end = { ...event.position, offset: event.position.offset + 1 }
      try {
        await score({ events: [event], end, poison: undefined }, timeAt(end.offset))
      } catch (error) {
        if (error instanceof Unscorable) partitions.halt({ position: event.position, error: error.cause })
        throw error
      }
    }
  }

  async function handleBatch(batch: Batch): Promise<number | undefined> {
    const decoded = decodeBatch(codec, batch)
    const timeAt = (next: number) => batch.records.findLast(({ offset }) => offset < next)?.timestamp ?? 0
    const status = partitions.of(batch)
    try {
      const { kind, nextOffset } = await score(decoded, timeAt(decoded.end.offset))
      if (kind === 'behind') return nextOffset
    } catch (error) {
      if (!(error instanceof Unscorable)) throw error
      await scoreSingly(decoded, timeAt)
    }
    // An operator may have moved the offset past it by hand.
    if (decoded.poison && decoded.poison.position.offset >= status.nextOffset) partitions.halt(decoded.poison)
    status.halted = null
    const read = (batch.records.at(-1)?.offset ?? 0) + 1
    return status.nextOffset === read ? undefined : status.nextOffset
  }

  function onError(err: unknown, position?: Position): void {
    if (err instanceof PartitionHalted) return
    logger.error({ err, position }, 'scoring failed; the records will be repeated')
  }

  const consumer = await consumeWithReplay({
    partitions,
    readStored: () => readOffsets(pool, topic),
    consume: () => log.consume({ group, topics: [topic], startOffset, handleBatch, onError }),
    onError: (err) =>
      logger.warn({ err }, 'not known whether the database lost what was scored; looks again'),
    onRewind: (lost) => logger.warn({ lost }, 'lost by Postgres, scored again'),
  })
  return { status: partitions.all, stop: () => consumer.stop() }
}

interface RecoveryDeps {
  log: EventLog
  pool: pg.Pool
  applied: Pick<Applied, 'waitFor'>
  logger: Logger
}

interface Recovery {
  /** Records before `until` (a next offset) of the partition may have been scored by someone who then crashed. */
  suspect(partition: number, until: number): void
  findRecorded(
    at: { partition: number; offset: number },
    ids: string[],
  ): Promise<Map<string, RecordedVisitor>>
}

const waitMs = 2000

/**
 * Between appending decisions and committing its state, scoring can crash. Whoever repeats the records makes the same
 * decision ids but might find another visitor, since other sessions were scored meanwhile: so it adopts the visitors
 * that are recorded.
 */
export function createRecovery({ log, pool, applied, logger }: RecoveryDeps): Recovery {
  const suspects = new Map<number, { until: number; ready?: Promise<void> }>()

  async function readable(): Promise<void> {
    const ends = await log.endPositions(eventTopics.SessionScored)
    const last = ends.filter(({ offset }) => offset > 0).map((end) => ({ ...end, offset: end.offset - 1 }))
    await applied.waitFor('sessions', last, { timeoutMs: waitMs }).catch((err) => {
      // Scoring goes on: without the read model it can at worst link a repeated session to a new visitor.
      logger.warn({ err }, 'earlier decisions are not readable yet')
    })
  }

  return {
    suspect(partition, until) {
      suspects.set(partition, { until: Math.max(until, suspects.get(partition)?.until ?? 0) })
    },
    async findRecorded({ partition, offset }, ids) {
      const suspect = suspects.get(partition)
      if (!suspect || offset >= suspect.until) {
        suspects.delete(partition)
        return new Map()
      }
      if (ids.length === 0) return new Map()
      suspect.ready ??= readable()
      await suspect.ready
      const decisions = await findDecisions(pool, ids)
      return new Map(
        decisions.flatMap(({ event_id, visitor }) => (visitor ? [[event_id, visitor] as const] : [])),
      )
    },
  }
}
