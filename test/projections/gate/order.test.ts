import fc from 'fast-check'
import { afterAll, beforeAll, test } from 'vitest'
import { gateProjection } from '../../../projections/gate/projection.ts'
import { migrate } from '../../../projections/migrate.ts'
import type { RecordedEvent } from '../../../schemas/codec.ts'
import { badDeliveries, scratchBuilds } from '../../support/bad-delivery.ts'
import { createTestDatabase, type TestDatabase } from '../../support/postgres.ts'
import { events, start, topic } from './events.ts'

const partitions = 3
// Room in the offsets between two events for repeats of earlier ones, as a producer's retry would leave them.
const spacing = 10
const runs = 20

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
  await migrate(database.pool, [gateProjection])
})
afterAll(() => database?.drop())

const { deliver, deliverBadly, expectEqual, withBuild } = scratchBuilds({
  pool: () => database.pool,
  projection: gateProjection,
  topic,
  partitions,
})

interface Step {
  kind: keyof typeof events
  /** Which service, signup or login. Few, so that much of it is about the same. */
  about: number
}

const kinds = Object.keys(events) as Step['kind'][]
const openings = kinds.filter((kind) => /^(opened|loginOpened|registered|started|approved)$/.test(kind))
const step = fc.record<Step>({
  kind: fc.constantFrom(...kinds, ...openings, ...openings),
  about: fc.nat(5),
})

/** The log's partitions, each in offset order. */
function partitionsOf(steps: Step[]): RecordedEvent[][] {
  const log: RecordedEvent[][] = Array.from({ length: partitions }, () => [])
  steps.forEach(({ kind, about }, n) => {
    const partition = about % partitions
    const meta = { eventId: `log_${n}`, time: 1, organizationId: null, environment: null }
    const position = { topic, partition, offset: n * spacing }
    log[partition]?.push({ ...events[kind](about, start + n), meta, position })
  })
  return log
}

test('events repeated, redelivered and reordered across partitions change nothing', async () => {
  const seed = Number(process.env.SEED ?? Date.now() % 2 ** 31)
  console.log(`fast-check seed ${seed}`)
  const property = fc.asyncProperty(
    fc.array(step, { minLength: 1, maxLength: 60 }),
    badDeliveries({ partitions, maxSize: 6 }),
    (steps, deliveries) =>
      withBuild((plain) =>
        withBuild(async (troubled) => {
          const log = partitionsOf(steps)
          for (const recorded of log) await deliver(plain, recorded)
          await deliverBadly(troubled, log, deliveries)
          await expectEqual(plain, troubled)
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
