import fc from 'fast-check'
import { test } from 'vitest'
import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import { gateProjection } from '../../../projections/gate/projection.ts'
import { expectOrderIsNothing } from '../../support/bad-delivery.ts'
import { events, recorded, start, topic, useGateWorld } from './events.ts'

const partitions = 3
// Leaves offsets between two events for repeats, as a producer's retries would.
const spacing = 10

const world = await useGateWorld()

interface Step {
  kind: keyof typeof events
  /** Number of the service, signup or login; low, so that many events are about the same one. */
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

/** Partitions of the log, each in offset order. */
function partitionsOf(steps: Step[]): RecordedEvent[][] {
  const log: RecordedEvent[][] = Array.from({ length: partitions }, () => [])
  steps.forEach(({ kind, about }, n) => {
    const partition = about % partitions
    const event = events[kind](about, start + n)
    log[partition]?.push(recorded(event, { partition, offset: n * spacing, id: `log_${n}` }))
  })
  return log
}

test('repeated, redelivered and reordered events do not change the result', async () => {
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
