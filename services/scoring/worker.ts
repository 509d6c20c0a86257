import type { AppliedOffsets } from '../../infra/event-store/applied.ts'
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
import { createStateCache, ensureOffset } from './store.ts'
import type { DecisionRef, RecordedDecisions } from './visitors/split.ts'

interface ScoringOptions extends ScoreDeps {
  applied: Pick<AppliedOffsets, 'waitFor'>
  logger: Logger
  skips: Pick<Skips, 'has'>
  onExpired?: EventConsumerOptions['onExpired']
  group?: string
}

export type RunningScoring = Pick<EventConsumer, 'status' | 'stop'>

const topic = eventTopics.BatchReceived

// Batches may wait for more records, except after a hand-off, whose client waits for the decision.
const linger = { ms: 250, urgent: new Set(['ResultRequested']) }

/**
 * Consumes the collect topic and appends SessionScored events until stopped. An event that can't be decoded or scored
 * stops only its partition.
 */
export async function runScoring(options: ScoringOptions): Promise<RunningScoring> {
  const { log, pool, codec, logger, skips, onExpired, group = 'tidegate-scoring' } = options
  const restored = await restoreVisitors({ pool, log, codec, skips })
  if (restored?.visitors) logger.info(restored, 'restored visitors from the log')
  const recovery = createRecovery(options)
  const countRepeats = createRepeatCounter()
  const stateCache = createStateCache()

  async function startOffset({ partition, offset: first }: Position): Promise<number> {
    const ends = await log.endPositions(topic)
    recovery.markSuspect(partition, ends.find((end) => end.partition === partition)?.offset ?? 0)
    return ensureOffset(pool, { topic, partition }, first)
  }

  async function apply(batches: EventBatch[]): Promise<Position[]> {
    const starts = batches.map(({ partition, events, end }) => ({
      partition,
      offset: events[0]?.position.offset ?? end,
    }))
    const findRecorded = (decisions: DecisionRef[]) => recovery.findRecorded(starts, decisions)
    try {
      const next = await scoreBatches(options, { batches, findRecorded, countRepeats, stateCache })
      for (const { partition, expected } of batches) {
        const stored = next.find((position) => position.partition === partition)?.offset ?? expected
        // Scoring restarts from the stored offset, and decisions about later records may already be on the log.
        if (stored < expected) recovery.markSuspect(partition, expected)
      }
      return next
    } catch (error) {
      stateCache.clear()
      // The decisions may have been appended before the failure.
      for (const { partition, end } of batches) recovery.markSuspect(partition, end)
      throw error
    }
  }

  const subscription = { group, topics: [topic], log, codec, logger, skips, onExpired, linger }
  return consumeEvents({ consumerName: 'scoring', ...subscription, startOffset, apply })
}

interface Recovery {
  /** Records that a crashed process may have already scored the partition's records before the offset `until`. */
  markSuspect(partition: number, until: number): void
  /** Returns the decisions already on the log if a batch starts in a suspect range; otherwise none. */
  findRecorded(
    starts: { partition: number; offset: number }[],
    decisions: DecisionRef[],
  ): Promise<RecordedDecisions>
}

const maxWaitMs = 2000

const noRecordedDecisions: RecordedDecisions = {
  decisionIds: new Set(),
  final: new Set(),
  visitors: new Map(),
}

/**
 * Keeps decisions stable when records are scored again after a crash between append and commit. Other sessions may have
 * been scored since and could change the visitor match, so the recorded visitor is reused. Decision ids are
 * deterministic. Other batch boundaries may skip a provisional decision, but no decision follows a final one.
 */
export function createRecovery({
  log,
  pool,
  applied,
  logger,
}: Pick<ScoringOptions, 'log' | 'pool' | 'applied' | 'logger'>): Recovery {
  const suspects = new Map<number, { until: number; ready?: Promise<void> | undefined }>()

  async function waitForReadModel(): Promise<void> {
    const ends = await log.endPositions(eventTopics.SessionScored)
    const last = ends
      .filter(({ offset }) => offset > 0)
      .map((end) => ({ ...end, offset: end.offset - 1 }))
    await applied.waitFor('sessions', last, { timeoutMs: maxWaitMs }).catch((err) => {
      // Don't stop scoring: at worst a repeated session is linked to a new visitor.
      logger.warn({ err }, 'read model is behind: continuing without earlier decisions')
    })
  }

  return {
    markSuspect(partition, until) {
      suspects.set(partition, { until: Math.max(until, suspects.get(partition)?.until ?? 0) })
    },
    async findRecorded(starts, decisions) {
      const suspected = starts.flatMap(({ partition, offset }) => {
        const suspect = suspects.get(partition)
        if (suspect && offset < suspect.until) return [suspect]
        suspects.delete(partition)
        return []
      })
      if (suspected.length === 0 || decisions.length === 0) return noRecordedDecisions
      const unready = suspected.filter((suspect) => !suspect.ready)
      const caughtUp = unready.length > 0 ? waitForReadModel() : undefined
      for (const suspect of unready) suspect.ready = caughtUp
      await Promise.all(suspected.map(({ ready }) => ready))
      const [recorded, latest] = await Promise.all([
        findDecisions(
          pool,
          decisions.map(({ decisionId }) => decisionId),
        ),
        // The latest decision is enough: a session keeps its visitor and stays final.
        findLatestDecisions(pool, [...new Set(decisions.map(({ sessionId }) => sessionId))]),
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
