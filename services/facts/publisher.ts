// Publishes the outbox (outbox.ts) to the compacted topic tidegate.facts.v1, keyed by session: the current row, or a
// tombstone if the session has no row. Invariants:
//   - Any number of publishers may run; an advisory lock lets one work at a time.
//   - A publisher can lose the lock while it hangs in an append, which may then land after a newer record. So it reads
//     the rows again after each append and publishes changed ones; if its transaction is gone, it enqueues them again.
//   - A publisher that dies after such a late append cannot repair it, and an erased row could reappear. Therefore
//     every tombstone is published twice, ten minutes apart.

import type pg from 'pg'
import type { Logger } from 'pino'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import { type Periodic, runPeriodically } from '../../infra/flow/periodic.ts'
import { type EventLog, type KeyedRecord, waitForOutcome } from '../../infra/log/port.ts'
import { type Tx, transaction, tryLock } from '../../infra/postgres/pool.ts'
import { cachedFor } from '../../infra/timing.ts'
import { backfillBatch, isTopicInUse, startBackfills } from './backfill.ts'
import {
  deleteEntries,
  enqueueFacts,
  findDueEntries,
  type OutboxEntry,
  readCurrentFacts,
  rescheduleTombstones,
} from './outbox.ts'
import { type FactsTopicSettings, factsTopic, factsTopicSpec } from './topic.ts'

export interface PublisherDeps {
  pool: pg.Pool
  log: EventLog
  codec: EventCodec
  config: FactsTopicSettings
  logger: Logger
  /** Delay before a tombstone is published a second time, milliseconds (default ten minutes). */
  repeatMs?: number
}

const intervalMs = 1000
const defaultRepeatMs = 10 * 60 * 1000
// Plus the append's own timeout (5 s), this is less than the idle-in-transaction timeout (15 s).
const appendOutcomeTimeoutMs = 8000

export function runFactsPublisher(deps: PublisherDeps): Periodic {
  const { pool, log, config, logger } = deps
  // Creates the topic on first use, so that brokers that refuse its settings still work for organizations without it.
  const createTopic = cachedFor(Infinity, () => log.ensureTopics([factsTopicSpec(config)]))
  const triggerCompaction = createCompactionTrigger(deps)

  async function work(): Promise<boolean> {
    if (!(await isTopicInUse(pool))) return false
    await createTopic()
    return transaction(pool, async (tx) => {
      if (!(await tryLock(tx, 'tidegate:facts'))) return false
      await triggerCompaction()
      if (await startBackfills(tx)) return true
      const entries = await findDueEntries(tx)
      if (entries.length === 0) return backfillBatch(tx)
      await publish(tx, deps, entries)
      return true
    })
  }

  const onError = (err: unknown) =>
    logger.warn({ err }, 'failed to publish session facts; retrying')
  return runPeriodically({ intervalMs, work, onError })
}

async function publish(tx: Tx, deps: PublisherDeps, entries: OutboxEntry[]): Promise<void> {
  const published = new Map<string, Buffer | undefined>()
  let sessionIds = [...new Set(entries.map(({ session_id }) => session_id))]
  // If a row changed during the append, our record may have overwritten a newer one of another publisher.
  while (sessionIds.length > 0) {
    const facts = await readCurrentFacts({ tx, codec: deps.codec }, sessionIds)
    await append(deps.log, facts, sessionIds)
    const current = await readCurrentFacts({ tx, codec: deps.codec }, sessionIds).catch((error) =>
      enqueueAndRethrow(deps, sessionIds, error),
    )
    for (const id of sessionIds) published.set(id, facts.get(id))
    sessionIds = sessionIds.filter((id) => !isSameRow(published.get(id), current.get(id)))
  }
  const isTombstone = ({ session_id }: OutboxEntry) => published.get(session_id) === undefined
  const toRepeat = entries.filter((entry) => isTombstone(entry) && !entry.is_repeat)
  const finished = entries.filter((entry) => !toRepeat.includes(entry))
  if (toRepeat.length > 0)
    await rescheduleTombstones(tx, toRepeat, { delayMs: deps.repeatMs ?? defaultRepeatMs })
  if (finished.length > 0) await deleteEntries(tx, finished)
}

async function append(log: EventLog, facts: Map<string, Buffer>, ids: string[]): Promise<void> {
  try {
    await log.append(ids.map((key) => recordOf(key, facts.get(key))))
  } catch (error) {
    // Wait for the outcome, because an append that lands after the next one would overwrite a newer record.
    await waitForOutcome(error, appendOutcomeTimeoutMs)
    throw error
  }
}

// The transaction is lost, so another publisher may have handled and deleted the entries before our append landed.
async function enqueueAndRethrow(
  { pool }: PublisherDeps,
  sessionIds: string[],
  error: unknown,
): Promise<never> {
  await enqueueFacts(pool, sessionIds)
  throw error
}

const recordOf = (key: string, value: Buffer | undefined): KeyedRecord => ({
  topic: factsTopic,
  key,
  value: value ?? null,
  headers: {},
})

const isSameRow = (a: Buffer | undefined, b: Buffer | undefined): boolean =>
  a && b ? a.equals(b) : a === b

interface CompactionDeps {
  log: EventLog
  config: FactsTopicSettings
}

/**
 * Returns a function that appends a marker to each partition, at most four times per FACTS_GONE_WITHIN_MS, because
 * brokers compact a partition only after an append. A marker is a tombstone whose key is not a session id, so readers
 * of the topic ignore it.
 */
function createCompactionTrigger({ log, config }: CompactionDeps): () => Promise<unknown> {
  const findMarkers = cachedFor(Infinity, () => markersOf(log))
  return cachedFor(config.FACTS_GONE_WITHIN_MS / 4, async () => log.append(await findMarkers()))
}

// Returns one marker for each partition, always with the same key, so that compaction keeps only the newest.
async function markersOf(log: EventLog): Promise<KeyedRecord[]> {
  const partitions = (await log.endPositions(factsTopic)).length
  const keys = new Map<number, string>()
  for (let i = 0; keys.size < partitions; i++) {
    const key = `marker-${i}`
    const partition = await log.partitionOf(factsTopic, key)
    if (!keys.has(partition)) keys.set(partition, key)
  }
  return [...keys.values()].map((key) => ({ topic: factsTopic, key, value: null, headers: {} }))
}
