import { describe, expect, onTestFinished, test } from 'vitest'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import type { Projection } from '../../infra/event-store/projection.ts'
import { gateProjection } from '../../projections/gate/projection.ts'
import { repeatsProjection } from '../../projections/repeats/projection.ts'
import { windows } from '../../projections/repeats/tables.ts'
import { sessionsProjection } from '../../projections/sessions/projection.ts'
import { webhooksProjection } from '../../projections/webhooks/projection.ts'
import { webhookRetentionMs } from '../../projections/webhooks/tables.ts'
import { visitorErased } from '../support/erased.ts'
import { openTestLogs } from '../support/logs.ts'
import { openFollowedLog } from './followed-log.ts'
import { gateStory } from './gate/events.ts'
import { marked, scope, scored, unmarked } from './marks/events.ts'
import { attached, opened, start as openedAt } from './repeats/events.ts'
import {
  attempted,
  endpointCreated,
  failed,
  raised,
  redelivery,
  skipped,
  start,
  succeeded,
} from './webhooks/events.ts'
import { id } from './world-events.ts'

const storiesOf = (count: number, story: (n: number) => DomainEvent[]) =>
  Array.from({ length: count }, (_, n) => story(n))

/** Events of 60 days, so that the first of each partition expire. */
const webhooks = storiesOf(300, (n) => {
  const created_at = start + Math.floor((2 * webhookRetentionMs * n) / 300)
  const endings = [
    [succeeded([n, 1], 1)],
    [attempted([n, 1], 1), succeeded([n, 1], 2)],
    [failed([n, 1], 1), redelivery([n, 1])],
    [skipped([n, 1])],
  ]
  return [raised(n, [1, 2], { created_at }), ...(endings[n % 4] ?? [])]
})

/** Sessions of two days, so that the first of each partition expire. */
const repeats = storiesOf(300, (n) => {
  const at = openedAt + Math.floor((2 * windows.day * n) / 300)
  const about = { session: n, visitor: n % 7, ip: `203.0.113.${n % 5}`, at }
  return [
    opened({ ...about, behavior: null }),
    opened({ ...about, behavior: n % 90, observed: at + 1 }),
    ...(n % 3 === 0 ? [attached({ session: n, user: `user ${n % 4}`, at: at + 2 })] : []),
  ]
})

const sessions = storiesOf(60, (n) => {
  const erased = visitorErased([id('sid', n)], { organization_id: scope.organizationId })
  return [
    scored(n),
    marked(n, 1),
    marked(n, 2, 'human'),
    scored(n, 1),
    attached({ session: n, user: `user ${n % 4}`, at: 1 }),
    ...(n % 3 === 0 ? [unmarked(n, 2)] : []),
    // The last mark was decided during the erasure.
    ...(n % 5 === 0 ? [{ type: 'VisitorErased', data: erased } as const, marked(n, 3)] : []),
  ]
})

/** Each story has its own session, signup or webhook event. */
const cases: { projection: Projection; stories: DomainEvent[][] }[] = [
  { projection: gateProjection, stories: storiesOf(60, gateStory) },
  {
    projection: webhooksProjection,
    stories: [[endpointCreated(1), endpointCreated(2)], ...webhooks],
  },
  { projection: repeatsProjection, stories: repeats },
  { projection: sessionsProjection, stories: sessions },
]

describe.each(openTestLogs())('on $name', (testLog) => {
  test.each(cases)(
    'a rebuild of $projection.name equals the live build, and so does a rebuild after more events',
    async ({ projection, stories }) => {
      const world = await openFollowedLog(testLog, [projection])
      onTestFinished(() => world.close())
      let records = 0
      for (const half of [
        stories.slice(0, stories.length / 2),
        stories.slice(stories.length / 2),
      ]) {
        // In parts, so that the live build applies other batches than the rebuild.
        for (let from = 0; from < half.length; from += 15) {
          const events = half.slice(from, from + 15).flat()
          records += (await world.append(projection, events)).length
        }
        const report = await world.rebuild(projection)
        expect(report.records).toBe(records)
        const empty = report.tables.filter(({ rows }) => rows === 0).map(({ table }) => table)
        expect(empty).toEqual([])
      }
    },
    60_000,
  )
})
