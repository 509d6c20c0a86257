import fc from 'fast-check'
import { test } from 'vitest'
import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import { gateProjection } from '../../../projections/gate/projection.ts'
import { expectOrderIsNothing } from '../../support/bad-delivery.ts'
import { events, recorded, start, topic, useGateWorld } from './events.ts'

const partitions = 3
// Room in the offsets between two events for repeats of earlier ones, as a producer's retry would leave them.
const spacing = 10

const world = await useGateWorld()

interface Step {
  kind: keyof typeof events
  /** Which service, signup or login. Few, so that much of it is about the same. */
  about: number
}

const kinds = Object.keys(events) as Step['kind'][]
const openings = kinds.filter((kind) =>
  /^(opened|loginOpened|registered|started|approved)$/.test(kind),
)
const step = fc.record<Step>({
  kind: fc.constantFrom(...kinds, ...openings, ...openings),
  about: fc.nat(5),
})

/** The log's partitions, each in offset order. */
function partitionsOf(steps: Step[]): RecordedEvent[][] {
  const log: RecordedEvent[][] = Array.from({ length: partitions }, () => [])
  steps.forEach(({ kind, about }, n) => {
    const partition = about % partitions
    const event = events[kind](about, start + n)
    log[partition]?.push(recorded(event, { partition, offset: n * spacing, id: `log_${n}` }))
  })
  return log
}

test('events repeated, redelivered and reordered across partitions change nothing', async () => {
  await expectOrderIsNothing({
    pool: () => world.pool,
    projection: gateProjection,
    topic,
    partitions,
    logs: fc.array(step, { minLength: 1, maxLength: 60 }),
    partitionsOf,
    maxSize: 6,
    runs: 20,
  })
}, 60_000)
