import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { DomainEvent, RecordedEvent } from '../../../infra/event-store/event.ts'
import { webhooksProjection } from '../../../projections/webhooks/projection.ts'
import {
  expectOrderIsNothing,
  fastCheckSettings,
  scratchBuilds,
} from '../../support/bad-delivery.ts'
import { visitorErased } from '../../support/erased.ts'
import { amount } from '../../support/long.ts'
import {
  attempted,
  day,
  disabled,
  enabled,
  endpointCreated,
  failed,
  moved,
  org,
  raised,
  recorded,
  redelivery,
  renamed,
  rotated,
  skipped,
  start,
  succeeded,
  topic,
  useWebhooksWorld,
} from './events.ts'

const partitions = 3
/** Erasures have their own topic, simulated as the last partition. */
const ofErasures = partitions
// Leaves offsets between two events for repeats, as a producer's retries would.
const spacing = 10
const runs = amount({ few: 10, many: 30 })

const world = await useWebhooksWorld()
const scratch = {
  pool: () => world.pool,
  projection: webhooksProjection,
  topic,
  partitions: partitions + 1,
}
const { deliver, expectEqual, withBuild } = scratchBuilds(scratch)

/** Few events, endpoints, attempts and days, so that many collide and many have expired. */
interface Step {
  kind: keyof typeof kinds
  event: number
  endpoint: number
  attempt: number
  days: number
}

const kinds = {
  // Usually the time of the id, because a repeat is the same event unless the sender is defective.
  raised: ({ event, endpoint, days }: Step) =>
    raised(event, [endpoint, 0], { created_at: timeOf(event, days) }),
  attempted: ({ event, endpoint, attempt }: Step) => attempted([event, endpoint], attempt),
  succeeded: ({ event, endpoint, attempt }: Step) => succeeded([event, endpoint], attempt),
  failed: ({ event, endpoint, attempt }: Step) => failed([event, endpoint], attempt),
  skipped: ({ event, endpoint, days }: Step) => skipped([event, endpoint], start + days),
  redelivery: ({ event, endpoint, days }: Step) => redelivery([event, endpoint], start + days),
  erased: ({ event }: Step): DomainEvent => ({
    type: 'VisitorErased',
    data: visitorErased([`sid_${event}`], { organization_id: org(1) }),
  }),
  created: ({ endpoint }: Step) => endpointCreated(endpoint),
  renamed: ({ endpoint, days }: Step) =>
    renamed(endpoint, { name: `Day ${days}`, renamed_at: start + days }),
  moved: ({ endpoint, days }: Step) =>
    moved(endpoint, { url: `https://hooks.example/${days}`, moved_at: start + days }),
  rotated: ({ endpoint, days, attempt }: Step) =>
    rotated(endpoint, {
      signing_secret_sealed: Buffer.from([days, attempt]),
      rotated_at: start + days * day,
      previous_expires_at: start + (days + attempt) * day,
    }),
  disabled: ({ endpoint, days }: Step) =>
    disabled(endpoint, { reason: 'gone', disabled_at: start + days }),
  enabled: ({ endpoint, days }: Step) => enabled(endpoint, { enabled_at: start + days }),
}

function timeOf(event: number, days: number): number {
  return start + (days < 20 ? event * 9 * day : days * day)
}

const weighted = (Object.keys(kinds) as Step['kind'][]).flatMap((kind) =>
  kind === 'raised'
    ? Array<Step['kind']>(5).fill(kind)
    : kind === 'attempted'
      ? [kind, kind, kind]
      : [kind],
)
const step = fc.record<Step>({
  kind: fc.constantFrom(...weighted),
  event: fc.nat(7),
  endpoint: fc.nat(1),
  attempt: fc.integer({ min: 1, max: 3 }),
  days: fc.nat(40),
})

/** Partitions of the log, each in offset order. Records with the same key are in one partition. */
function partitionsOf(steps: Step[]): RecordedEvent[][] {
  const log: RecordedEvent[][] = Array.from({ length: partitions + 1 }, () => [])
  steps.forEach((one, n) => {
    const event = kinds[one.kind](one)
    const ofEvent = event.type.startsWith('WebhookEndpoint') ? 0 : one.event % partitions
    const partition = one.kind === 'erased' ? ofErasures : ofEvent
    log[partition]?.push(recorded(event, { partition, offset: n * spacing }))
  })
  return log
}

const steps = fc.array(step, { minLength: 20, maxLength: 60, size: 'max' })

/**
 * As senders that keep to the rules write it: an event's times and endpoints follow from its id, and it comes first.
 */
function lawful(log: Step[]): Step[] {
  const known = new Set<number>()
  return log.flatMap((one) => {
    const same = { ...one, days: Math.min(one.days, 19), endpoint: one.endpoint }
    if (one.kind === 'raised') {
      known.add(one.event)
      return [{ ...same, endpoint: 1 }]
    }
    return one.kind in unrelated || known.has(one.event) ? [same] : []
  })
}
const unrelated = { erased: 1, created: 1, renamed: 1, rotated: 1, disabled: 1, enabled: 1 }

test('repeated, redelivered and reordered events do not change the result', async () => {
  await expectOrderIsNothing({
    ...scratch,
    logs: steps.map(lawful),
    partitionsOf,
    maxSize: 8,
    runs,
  })
}, 120_000)

test('the boundaries of batches do not change the result', async () => {
  const cuts = fc.array(fc.integer({ min: 1, max: 8 }), { minLength: 60, maxLength: 60 })
  const property = fc.asyncProperty(steps, cuts, (log, sizes) =>
    withBuild((whole) =>
      withBuild(async (cut) => {
        for (const events of partitionsOf(log)) {
          await deliver(whole, events)
          let from = 0
          for (const size of sizes) {
            await deliver(cut, events.slice(from, from + size))
            from += size
          }
        }
        await expectEqual(whole, cut)
      }),
    ),
  )
  await fc.assert(property, fastCheckSettings(runs))
}, 120_000)

test('the generated logs reach every delivery status and have expired events', async () => {
  const statuses = new Set<string>()
  let [made, left] = [0, 0]
  for (const log of fc.sample(steps, { seed: 1, numRuns: 20 }).map(lawful))
    await withBuild(async (build) => {
      for (const events of partitionsOf(log)) await deliver(build, events)
      const read = (what: string) => world.pool.query(`select ${what}`)
      const { rows } = await read(`status from ${build.schema}.webhook_deliveries`)
      for (const { status } of rows) statuses.add(status)
      made += new Set(log.filter(({ kind }) => kind === 'raised').map(({ event }) => event)).size
      left += (await read(`from ${build.schema}.webhook_events`)).rowCount ?? 0
    })
  expect([...statuses].toSorted()).toEqual(['failed', 'pending', 'skipped', 'succeeded'])
  expect(left).toBeGreaterThan(0)
  expect(left).toBeLessThan(made)
})
