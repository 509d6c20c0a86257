import type pg from 'pg'
import { afterAll, beforeEach } from 'vitest'
import { applyNewEvents } from '../../infra/event-store/apply-batch.ts'
import { findLiveBuild, searchPath } from '../../infra/event-store/builds.ts'
import { createCodec } from '../../infra/event-store/codec.ts'
import type { DomainEvent, RecordedEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { type Tx, transaction } from '../../infra/postgres/pool.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { testCause } from '../support/projections.ts'
import { metaOf } from '../support/session-scored.ts'

const codec = createCodec()
let placed = 0

export interface At {
  /** Event id in the record; a new one by default. */
  id?: string
  partition?: number
  offset?: number
}

/** Returns a function that makes recorded events without bytes, by default after all earlier ones. */
export const recordedIn =
  (topic: string) =>
  (event: DomainEvent, at: At = {}): RecordedEvent => {
    const { partition = 0, offset = placed++, id: eventId = `log_${offset}` } = at
    const meta = { eventId, time: 1, organizationId: null, environment: null }
    return { ...event, meta, value: Buffer.alloc(0), position: { topic, partition, offset } }
  }

const recordedOfSession = recordedIn('tidegate.sessions.v1')

/** Returns the recorded event of a session, with its bytes and its own id. */
export function recordedSession(event: DomainEvent): RecordedEvent {
  if (!('event_id' in event.data && 'environment' in event.data))
    throw new Error(`not an event of a session: ${event.type}`)
  const [meta, value] = [metaOf(event.data), codec.encode(event, testCause)]
  return { ...recordedOfSession(event), meta, value }
}

/** Runs `work` in a transaction on the tables of the projection's live build. */
export const inLiveBuild = <T>(
  pool: pg.Pool,
  { name }: Projection,
  work: (tx: Tx) => Promise<T>,
): Promise<T> =>
  transaction(pool, async (tx) => {
    const build = await findLiveBuild(tx, name)
    if (!build) throw new Error('no live build')
    await tx.query(searchPath(build))
    return work(tx)
  })

/** Creates a database with the read model for the test file. Empties it before each test. */
export async function useReadModel(
  projection: Projection,
  recorded: (event: DomainEvent) => RecordedEvent,
) {
  const database = await createTestDatabase()
  const { pool } = database
  afterAll(() => database.drop())
  beforeEach(async () => {
    const build = await findLiveBuild(pool, projection.name)
    const tables = projection.tables.map((table) => `${build?.schema}.${table}`)
    await pool.query(`truncate ${tables.join(', ')}`)
  })

  const apply = (events: RecordedEvent[]): Promise<void> =>
    inLiveBuild(pool, projection, (tx) => applyNewEvents(tx, projection, events))

  return {
    database,
    pool,
    apply,
    /** Applies the events as one batch. */
    given: (...events: DomainEvent[]) => apply(events.map((event) => recorded(event))),
    rows: async (table: string): Promise<Record<string, unknown>[]> =>
      (await pool.query(`select * from read.${table}`)).rows,
  }
}
