import type { Applied } from '../../infra/event-store/applied.ts'
import {
  consumeEvents,
  type EventConsumer,
  type EventConsumerOptions,
} from '../../infra/event-store/consumer.ts'
import type { EventBatch } from '../../infra/event-store/event-batch.ts'
import type { Skips } from '../../infra/event-store/skips.ts'
import type { Position } from '../../infra/log/port.ts'
import type { Logger } from '../../infra/telemetry.ts'
import { createRepeatCounter } from '../../projections/repeats/queries.ts'
import { findDecisions, findLatestDecisions } from '../../projections/sessions/queries.ts'
import { eventTopics } from '../../schemas/events.ts'
import { type ScoreDeps, scoreBatches } from './batch.ts'
import { restoreVisitors } from './restore.ts'
import { createWrittenStates, readOffset } from './store.ts'
import type { MadeDecision, Recorded } from './visitors/split.ts'

interface ScoringOptions extends ScoreDeps {
  applied: Pick<Applied, 'waitFor'>
  logger: Logger
  skips: Pick<Skips, 'has'>
  onExpired?: EventConsumerOptions['onExpired']
  group?: string
}

export type RunningScoring = Pick<EventConsumer, 'status' | 'stop'>

const topic = eventTopics.BatchReceived

// Nobody waits for a provisional decision. That of a hand-off is all there is of a session that hands off at once.
const linger = { ms: 250, urgent: new Set(['ResultRequested']) }

/**
 * Scores what collect records, until stopped: consumes the collect topic, appends SessionScored. An event that cannot
 * be decoded or scored stops its partition there, and no other.
 */
export async function runScoring(options: ScoringOptions): Promise<RunningScoring> {
  const { log, pool, codec, logger, skips, onExpired, group = 'tidegate-scoring' } = options
  const restored = await restoreVisitors({ pool, log, codec, skips })
  if (restored?.visitors) logger.info(restored, 'visitors were restored from the log')
  const recovery = createRecovery(options)
  const countRepeats = createRepeatCounter()
  const written = createWrittenStates()

  async function startOffset({ partition, offset: first }: Position): Promise<number> {
    const ends = await log.endPositions(topic)
    recovery.suspect(partition, ends.find((end) => end.partition === partition)?.offset ?? 0)
    return readOffset(pool, { topic, partition }, first)
  }

  async function apply(batches: EventBatch[]): Promise<Position[]> {
    const starts = batches.map(({ partition, events, end }) => ({
      partition,
      offset: events[0]?.position.offset ?? end,
    }))
    const findRecorded = (made: MadeDecision[]) => recovery.findRecorded(starts, made)
    try {
      const next = await scoreBatches(options, { batches, findRecorded, countRepeats, written })
      for (const { partition, expected } of batches) {
        const stored = next.find((position) => position.partition === partition)?.offset ?? expected
        if (stored < expected) recovery.suspect(partition, expected)
      }
      return next
    } catch (error) {
      written.clear()
      // It may have been appended and not committed.
      for (const { partition, end } of batches) recovery.suspect(partition, end)
      throw error
    }
  }

  const reading = { group, topics: [topic], log, codec, logger, skips, onExpired, linger }
  return consumeEvents({ who: 'scoring', ...reading, startOffset, apply })
}

interface Recovery {
  /** Records before `until` (a next offset) of the partition may have been scored by someone who then crashed. */
  suspect(partition: number, until: number): void
  /** Returns no facts unless a batch starts before what is suspected. */
  findRecorded(
    starts: { partition: number; offset: number }[],
    made: MadeDecision[],
  ): Promise<Recorded>
}

const waitMs = 2000

const nothingRecorded: Recorded = {
  decisionIds: new Set(),
  final: new Set(),
  visitors: new Map(),
}

/**
 * Between appending decisions and committing its state, scoring can crash. Whoever repeats the records might find another
 * visitor, since other sessions were scored meanwhile: so it adopts the visitors that are recorded. Decisions have the
 * same ids. Where the records come in other batches, a provisional one may be left out, and none follows a final one.
 */
export function createRecovery({
  log,
  pool,
  applied,
  logger,
}: Pick<ScoringOptions, 'log' | 'pool' | 'applied' | 'logger'>): Recovery {
  const suspects = new Map<number, { until: number; ready?: Promise<void> | undefined }>()

  async function readable(): Promise<void> {
    const ends = await log.endPositions(eventTopics.SessionScored)
    const last = ends
      .filter(({ offset }) => offset > 0)
      .map((end) => ({ ...end, offset: end.offset - 1 }))
    await applied.waitFor('sessions', last, { timeoutMs: waitMs }).catch((err) => {
      // Scoring goes on: without the read model it can at worst link a repeated session to a new visitor.
      logger.warn({ err }, 'earlier decisions are not readable yet')
    })
  }

  return {
    suspect(partition, until) {
      suspects.set(partition, { until: Math.max(until, suspects.get(partition)?.until ?? 0) })
    },
    async findRecorded(starts, made) {
      const suspected = starts.flatMap(({ partition, offset }) => {
        const suspect = suspects.get(partition)
        if (suspect && offset < suspect.until) return [suspect]
        suspects.delete(partition)
        return []
      })
      if (suspected.length === 0 || made.length === 0) return nothingRecorded
      const unread = suspected.filter((suspect) => !suspect.ready)
      const reading = unread.length > 0 ? readable() : undefined
      for (const suspect of unread) suspect.ready = reading
      await Promise.all(suspected.map(({ ready }) => ready))
      const [recorded, latest] = await Promise.all([
        findDecisions(
          pool,
          made.map(({ decisionId }) => decisionId),
        ),
        // A session keeps its visitor, and stays final.
        findLatestDecisions(pool, [...new Set(made.map(({ sessionId }) => sessionId))]),
      ])
      const final = latest.filter(({ is_provisional }) => !is_provisional)
      const withVisitor = latest.flatMap(({ session_id, visitor }) =>
        visitor ? [[session_id, visitor] as const] : [],
      )
      return {
        decisionIds: new Set(recorded.map(({ event_id }) => event_id)),
        final: new Set(final.map(({ session_id }) => session_id)),
        visitors: new Map(withVisitor),
      }
    },
  }
}
