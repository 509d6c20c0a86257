import { afterAll, beforeAll, beforeEach } from 'vitest'
import { applyNew } from '../../infra/event-store/apply-batch.ts'
import { liveBuild, useSchema } from '../../infra/event-store/builds.ts'
import type { DomainEvent, RecordedEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { transaction } from '../../infra/postgres/pool.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'

export interface ReadModel {
  readonly database: TestDatabase
  /** Applies the events, recorded one after the other in partition 0, as one batch. */
  given(...events: DomainEvent[]): Promise<void>
  apply(events: RecordedEvent[]): Promise<void>
  /** Every row of the table. */
  rows(table: string): Promise<Record<string, unknown>[]>
}

/** The read model in a database of the test file's own, empty before each test. */
export function useReadModel(
  projection: Projection,
  recorded: (event: DomainEvent) => RecordedEvent,
): ReadModel {
  let database: TestDatabase
  beforeAll(async () => {
    database = await createTestDatabase()
  })
  afterAll(() => database?.drop())
  beforeEach(async () => {
    const build = await liveBuild(database.pool, projection.name)
    const tables = projection.tables.map((table) => `${build?.schema}.${table}`)
    await database.pool.query(`truncate ${tables.join(', ')}`)
  })

  async function apply(events: RecordedEvent[]): Promise<void> {
    await transaction(database.pool, async (tx) => {
      const build = await liveBuild(tx, projection.name)
      if (!build) throw new Error('no live build')
      await tx.query(useSchema(build))
      await applyNew(tx, projection, events)
    })
  }

  return {
    get database() {
      return database
    },
    apply,
    given: (...events) => apply(events.map((event) => recorded(event))),
    rows: async (table) => (await database.pool.query(`select * from read.${table}`)).rows,
  }
}
