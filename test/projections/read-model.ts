import type pg from 'pg'
import { afterAll, beforeEach } from 'vitest'
import { applyNewEvents } from '../../infra/event-store/apply-batch.ts'
import { findLiveBuild, useSchema } from '../../infra/event-store/builds.ts'
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
  /** The log's event id; a new one unless given. */
  id?: string
  partition?: number
  offset?: number
}

/** The event as it is in the log, by default behind all others made so, and without its bytes. */
export const recordedIn =
  (topic: string) =>
  (event: DomainEvent, at: At = {}): RecordedEvent => {
    const { partition = 0, offset = placed++, id: eventId = `log_${offset}` } = at
    const meta = { eventId, time: 1, organizationId: null, environment: null }
    return { ...event, meta, value: Buffer.alloc(0), position: { topic, partition, offset } }
  }

const recordedOfSession = recordedIn('tidegate.sessions.v1')

/** An event of a session, with its bytes, under the id that it has itself. */
export function recordedSession(event: DomainEvent): RecordedEvent {
  if (!('event_id' in event.data && 'environment' in event.data))
    throw new Error(`not an event of a session: ${event.type}`)
  const [meta, value] = [metaOf(event.data), codec.encode(event, testCause)]
  return { ...recordedOfSession(event), meta, value }
}

/** Works on the tables of the projection's live build. */
export const inLiveBuild = <T>(
  pool: pg.Pool,
  { name }: Projection,
  work: (tx: Tx) => Promise<T>,
): Promise<T> =>
  transaction(pool, async (tx) => {
    const build = await findLiveBuild(tx, name)
    if (!build) throw new Error('no live build')
    await tx.query(useSchema(build))
    return work(tx)
  })

/** The read model in a database of the test file's own, empty before each test. */
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
    /** Applies the events, recorded one after the other in partition 0, as one batch. */
    given: (...events: DomainEvent[]) => apply(events.map((event) => recorded(event))),
    /** Every row of the table. */
    rows: async (table: string): Promise<Record<string, unknown>[]> =>
      (await pool.query(`select * from read.${table}`)).rows,
  }
}
