import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { createCodec } from '../../../infra/event-store/codec.ts'
import type { DomainEvent, RecordedEvent } from '../../../infra/event-store/event.ts'
import type { Projection } from '../../../infra/event-store/projection.ts'
import { runAsOneStatement } from '../../../infra/postgres/arrays.ts'
import { reassignedLink } from '../../../projections/sessions/apply-reassignments.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import type { LinkedVisitor } from '../../../projections/sessions/tables.ts'
import { decision, id } from '../../projections/world-events.ts'
import { expectOrderIsNothing, scratchBuilds } from '../../support/bad-delivery.ts'
import { visitorErased } from '../../support/erased.ts'
import { eventually } from '../../support/eventually.ts'
import { createTestDatabase } from '../../support/postgres.ts'
import { testCause } from '../../support/projections.ts'
import { metaOf, sessionScored, visitorLink } from '../../support/session-scored.ts'

const topic = 'tidegate.sessions.v1'
const partitions = 3
/** Erasures have a topic of their own, which the last partition represents here. */
const erasurePartition = partitions
// Leaves offsets between events for duplicates of earlier ones, as from a producer's retry.
const spacing = 10

const codec = createCodec()
const database = await createTestDatabase()
afterAll(() => database.drop())

interface Step {
  session: number
  visitor: number | null
  at: number
  kind: 'scored' | 'attached' | 'cleared' | 'erased' | 'split'
}

const step = fc.record<Step>({
  session: fc.nat(5),
  visitor: fc.option(fc.nat(2)),
  at: fc.nat(20),
  kind: fc.constantFrom(
    'scored',
    'scored',
    'scored',
    'scored',
    'attached',
    'cleared',
    'erased',
    'split',
  ),
})

function eventOf(
  { session, visitor, at, kind }: Step,
  n: number,
  given?: LinkedVisitor,
): DomainEvent {
  const { request } = sessionScored()
  const { event } = decision(n, {
    session,
    request: { ...request, url: `https://shop.example/${n % 4}`, ip_address: `192.0.2.${n % 3}` },
    evaluated_at: at,
    visitor:
      visitor === null ? null : visitorLink({ id: id('vid', visitor), vector: [n], ...given }),
  })
  if (kind === 'scored' || event.type !== 'SessionScored') return event
  const { event_id, session_id, organization_id, environment } = event.data
  const base = { event_id, session_id, organization_id, environment }
  if (kind === 'split') {
    const earlier_visitor_id = given?.id ?? id('vid', visitor ?? 0)
    const about = {
      visitor_id: id('vid', 100 + n),
      earlier_visitor_id,
      confidence: 85,
      split_at: at,
    }
    return { type: 'VisitorSplit', data: { ...base, ...about, cause: 'continuity_returned' } }
  }
  if (kind === 'erased')
    return {
      type: 'VisitorErased',
      data: visitorErased([session_id], { event_id, organization_id, environment }),
    }
  return kind === 'attached'
    ? {
        type: 'ClientUserAttached',
        data: { ...base, client_user_id: `user ${n}`, attached_at: at },
      }
    : { type: 'ClientUserCleared', data: { ...base, cleared_at: at } }
}

/** The log's partitions, each in offset order. */
function partitionsOf(steps: Step[]): RecordedEvent[][] {
  const log: RecordedEvent[][] = Array.from({ length: partitions + 1 }, () => [])
  // Later decisions of a session name the visitor that a split assigned, as scoring does.
  const given = new Map<number, LinkedVisitor>()
  steps.forEach((one, n) => {
    const partition = one.kind === 'erased' ? erasurePartition : one.session % partitions
    const event = eventOf(one, n, given.get(one.session))
    log[partition]?.push(recorded(event, { topic, partition, offset: n * spacing }))
    if (event.type === 'VisitorSplit') given.set(one.session, reassignedLink(event.data))
  })
  return log
}

function recorded(event: DomainEvent, position: RecordedEvent['position']): RecordedEvent {
  if (!('event_id' in event.data && 'environment' in event.data))
    throw new Error('not an event of a session')
  return { ...event, meta: metaOf(event.data), value: codec.encode(event, testCause), position }
}

test('repeated, redelivered and reordered events give the same rows, also with erasures and splits', async () => {
  await expectOrderIsNothing({
    pool: () => database.pool,
    projection: sessionsProjection,
    topic,
    partitions: partitions + 1,
    logs: fc.array(step, { minLength: 1, maxLength: 40 }),
    partitionsOf,
    maxSize: 6,
    runs: 30,
  })
}, 60_000)

test('a split includes a decision that another process is still applying', async () => {
  const log = partitionsOf([
    { session: 0, visitor: 0, at: 1, kind: 'scored' },
    { session: 3, visitor: 0, at: 2, kind: 'scored' },
    { session: 1, visitor: 0, at: 3, kind: 'scored' },
    { session: 0, visitor: 0, at: 4, kind: 'split' },
  ])
  const [earlier, split, decided] = [
    log[0]?.slice(0, 2) ?? [],
    log[0]?.slice(2) ?? [],
    log[1] ?? [],
  ]
  const [written, committing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const slow: Projection = {
    ...sessionsProjection,
    async apply(tx, events) {
      await runAsOneStatement(tx, await sessionsProjection.apply(tx, events))
      written.resolve()
      await committing.promise
      return []
    },
  }
  const options = { pool: () => database.pool, topic, partitions: partitions + 1 }
  const { deliver, expectEqual, withBuild } = scratchBuilds({
    ...options,
    projection: sessionsProjection,
  })
  await withBuild((plain) =>
    withBuild(async (hurried) => {
      for (const events of [earlier, decided, split]) await deliver(plain, events)
      await deliver(hurried, earlier)
      const first = scratchBuilds({ ...options, projection: slow }).deliver(hurried, decided)
      await written.promise
      const second = deliver(hurried, split)
      await eventually(async () => expect(await waitingForLocks()).toBeGreaterThan(0))
      committing.resolve()
      await Promise.all([first, second])
      await expectEqual(plain, hurried)
    }),
  )
})

async function waitingForLocks(): Promise<number> {
  const { rows } = await database.pool.query<{ waiting: number }>(
    `select count(*)::int as waiting from pg_stat_activity
     where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rows[0]?.waiting ?? 0
}
