import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { transaction } from '../../infra/postgres/pool.ts'
import { applyEvents } from '../../projections/apply-batch.ts'
import { type Build, createBuild, dropBuild, openPartition } from '../../projections/builds.ts'
import { compareTable } from '../../projections/compare.ts'
import { migrate } from '../../projections/migrate.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import type { DomainEvent, RecordedEvent } from '../../schemas/codec.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { metaOf, visitorLink } from '../support/session-scored.ts'
import { decision, id } from './world-events.ts'

const topic = 'tidegate.sessions.v1'
const partitions = 3
// Room in the offsets between two events for repeats of earlier ones, as a producer's retry would leave them.
const spacing = 10
const runs = 20

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
  await migrate(database.pool, [sessionsProjection])
})
afterAll(() => database?.drop())

interface Step {
  session: number
  visitor: number | null
  at: number
  kind: 'scored' | 'attached' | 'cleared'
}

const step = fc.record<Step>({
  session: fc.nat(5),
  visitor: fc.option(fc.nat(2)),
  at: fc.nat(20),
  kind: fc.constantFrom('scored', 'scored', 'scored', 'attached', 'cleared'),
})

function eventOf({ session, visitor, at, kind }: Step, n: number): DomainEvent {
  const { event } = decision(n, {
    session,
    evaluated_at: at,
    visitor: visitor === null ? null : visitorLink({ id: id('vid', visitor), vector: [n] }),
  })
  if (kind === 'scored' || event.type !== 'SessionScored') return event
  const { event_id, session_id, organization_id, environment } = event.data
  const base = { event_id, session_id, organization_id, environment }
  return kind === 'attached'
    ? { type: 'ClientUserAttached', data: { ...base, client_user_id: `user ${n}`, attached_at: at } }
    : { type: 'ClientUserCleared', data: { ...base, cleared_at: at } }
}

/** The log's partitions, each in offset order. */
function partitionsOf(steps: Step[]): RecordedEvent[][] {
  const log: RecordedEvent[][] = Array.from({ length: partitions }, () => [])
  steps.forEach((one, n) => {
    const partition = one.session % partitions
    log[partition]?.push(recorded(eventOf(one, n), { topic, partition, offset: n * spacing }))
  })
  return log
}

function recorded(event: DomainEvent, position: RecordedEvent['position']): RecordedEvent {
  if (!('event_id' in event.data && 'environment' in event.data)) throw new Error('not an event of a session')
  return { ...event, meta: metaOf(event.data), position }
}

async function deliver(build: Build, events: RecordedEvent[]): Promise<void> {
  const last = events.at(-1)
  if (!last) return
  const end = { ...last.position, offset: last.position.offset + 1 }
  const outcome = await applyEvents({
    pool: database.pool,
    projection: sessionsProjection,
    build,
    events,
    end,
  })
  expect(outcome.kind).toBe('applied')
}

async function withBuild<T>(work: (build: Build) => Promise<T>): Promise<T> {
  const build = await transaction(database.pool, (tx) => createBuild(tx, sessionsProjection, 'building'))
  for (let partition = 0; partition < partitions; partition++) {
    await openPartition(database.pool, build, { topic, partition })
  }
  try {
    return await work(build)
  } finally {
    await transaction(database.pool, (tx) => dropBuild(tx, build))
  }
}

/** How one delivery goes wrong: batch by batch, which partition is next, how much of it, how much again, which repeats. */
const delivery = fc.record({
  partition: fc.nat(partitions - 1),
  size: fc.integer({ min: 1, max: 6 }),
  again: fc.nat(4),
  repeat: fc.option(fc.nat(30)),
})

test('events repeated, redelivered and reordered across partitions change nothing', async () => {
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)
  console.log(`fast-check seed ${seed}`)
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 1, maxLength: 40 }),
    fc.array(delivery, { minLength: 5, maxLength: 25 }),
    (steps, deliveries) =>
      withBuild((plain) =>
        withBuild(async (troubled) => {
          const log = partitionsOf(steps)
          for (const events of log) await deliver(plain, events)
          await deliverBadly(troubled, log, deliveries)
          for (const table of sessionsProjection.tables) {
            const compared = await compareTable(database.pool, { table, live: plain, next: troubled })
            expect(compared.differences.map(({ side, row }) => `${side} ${row.slice(0, 200)}`)).toEqual([])
            expect(compared.equal, table).toBe(true)
          }
        }),
      ),
  )
  await fc.assert(property, {
    seed,
    numRuns: runs,
    endOnFailure: true,
    ...(process.env.SEED_PATH ? { path: process.env.SEED_PATH } : {}),
  })
}, 60_000)

type Delivery = { partition: number; size: number; again: number; repeat: number | null }

async function deliverBadly(build: Build, log: RecordedEvent[][], deliveries: Delivery[]): Promise<void> {
  const next = log.map(() => 0)
  for (const { partition, size, again, repeat } of deliveries) {
    const events = log[partition] ?? []
    const from = next[partition] ?? 0
    const to = Math.min(from + size, events.length)
    const batch = events.slice(Math.max(0, from - again), to)
    await deliver(build, [...batch, ...repeated(events.slice(0, to), repeat)])
    next[partition] = to
  }
  for (const [partition, events] of log.entries()) await deliver(build, events.slice(next[partition]))
}

/** An earlier event once more, as a record of its own right after the last. */
function repeated(delivered: RecordedEvent[], which: number | null): RecordedEvent[] {
  const last = delivered.at(-1)
  const event = which === null || !last ? undefined : delivered[which % delivered.length]
  if (!event || !last) return []
  return [{ ...event, position: { ...last.position, offset: last.position.offset + 1 } }]
}
