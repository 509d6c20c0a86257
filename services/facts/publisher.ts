import type pg from 'pg'
import type { Logger } from 'pino'
import type { EventCodec } from '../../infra/event-store/codec.ts'
import { type Periodic, runPeriodically } from '../../infra/flow/periodic.ts'
import { type EventLog, type KeyedRecord, outcomeOf } from '../../infra/log/port.ts'
import { type Tx, transaction, tryLock } from '../../infra/postgres/pool.ts'
import { seldom } from '../../infra/timing.ts'
import {
  deleteNotes,
  findDueNotes,
  followPolicies,
  isTopicInUse,
  type Note,
  noteAgain,
  noteRows,
  readPublished,
  repeatNotes,
} from './store.ts'
import { type FactsTopicSettings, factsTopic, factsTopicSpec } from './topic.ts'

export interface PublisherDeps {
  pool: pg.Pool
  log: EventLog
  codec: EventCodec
  config: FactsTopicSettings
  logger: Logger
  /** Milliseconds until it is published once more that a session has no row. Default ten minutes. */
  repeatMs?: number
}

// What has come in between is published together.
const intervalMs = 1000
const tenMinutes = 10 * 60 * 1000
// With the time-out of an append it is less than a transaction may wait.
const unknownMs = 8000

/**
 * Publishes rows of sessions as they are now, where they changed and their organizations have the topic. Several may
 * run, and one works at a time. One that hangs while it appends may be late and write what was erased meanwhile, so
 * that a session has no row is published twice.
 */
export function runFactsPublisher(deps: PublisherDeps): Periodic {
  const { pool, log, config, logger } = deps
  // Made with its settings when it is first used: a broker that refuses them may have organizations without the topic.
  const prepared = seldom(Infinity, () => log.ensureTopics([factsTopicSpec(config)]))
  const appendMarkers = createMarkers(deps)

  async function work(): Promise<boolean> {
    if (!(await isTopicInUse(pool))) return false
    await prepared()
    return transaction(pool, async (tx) => {
      if (!(await tryLock(tx, 'tidegate:facts'))) return false
      await appendMarkers()
      if (await followPolicies(tx)) return true
      const notes = await findDueNotes(tx)
      if (notes.length === 0) return noteRows(tx)
      await publish(tx, deps, notes)
      return true
    })
  }

  const onError = (err: unknown) =>
    logger.warn({ err }, 'facts of sessions were not published; the next run tries again')
  return runPeriodically({ intervalMs, work, onError })
}

async function publish(tx: Tx, deps: PublisherDeps, notes: Note[]): Promise<void> {
  const gone = new Set<string>()
  let left = [...new Set(notes.map(({ session_id }) => session_id))]
  // A row that changed while its record was on its way may have been published by another one meanwhile, as it is now.
  while (left.length > 0) {
    const facts = await readPublished({ tx, codec: deps.codec }, left)
    await append(deps.log, facts, left)
    const now = await readPublished({ tx, codec: deps.codec }, left).catch((error) =>
      lost(deps, left, error),
    )
    for (const id of left) facts.has(id) ? gone.delete(id) : gone.add(id)
    left = left.filter((id) => !isSame(facts.get(id), now.get(id)))
  }
  const again = notes.filter((note) => gone.has(note.session_id) && !note.is_repeat)
  const done = notes.filter((note) => !again.includes(note))
  if (again.length > 0) await repeatNotes(tx, again, { ms: deps.repeatMs ?? tenMinutes })
  if (done.length > 0) await deleteNotes(tx, done)
}

async function append(log: EventLog, facts: Map<string, Buffer>, ids: string[]): Promise<void> {
  try {
    await log.append(ids.map((key) => recordOf(key, facts.get(key))))
  } catch (error) {
    // It would overtake what is published next.
    await outcomeOf(error, unknownMs)
    throw error
  }
}

// Its transaction was given up, so that another one has published the same meanwhile, and its notes are gone.
async function lost({ pool }: PublisherDeps, sessionIds: string[], error: unknown): Promise<never> {
  await noteAgain(pool, sessionIds)
  throw error
}

const recordOf = (key: string, value: Buffer | undefined): KeyedRecord => ({
  topic: factsTopic,
  key,
  value: value ?? null,
  headers: {},
})

const isSame = (one: Buffer | undefined, other: Buffer | undefined): boolean =>
  one && other ? one.equals(other) : one === other

interface MarkerDeps {
  log: EventLog
  config: FactsTopicSettings
}

/**
 * Appends a marker to each partition, four times within the time in which deleted records are to be gone: a broker rolls
 * and cleans a partition only when something is appended to it. A marker says that its key, which is no session's, has
 * nothing, so that readers pass over it as they are.
 */
function createMarkers({ log, config }: MarkerDeps): () => Promise<unknown> {
  const found = seldom(Infinity, () => markersOf(log))
  return seldom(config.FACTS_GONE_WITHIN_MS / 4, async () => log.append(await found()))
}

// The same key of a partition each time, so that one of them stays.
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
