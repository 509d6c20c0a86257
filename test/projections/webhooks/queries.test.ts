import { expect, test } from 'vitest'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import {
  type DeliveryQuery,
  listDeliveries,
} from '../../../projections/webhooks/list-deliveries.ts'
import {
  findEvent,
  findFailureStreak,
  listEvents,
  readDeliveryStats,
  readQueueStats,
} from '../../../projections/webhooks/queries.ts'
import {
  attempted,
  disabled,
  enabled,
  endpointCreated,
  evt,
  failed,
  moved,
  org,
  raised,
  redelivery,
  renamed,
  rotated,
  skipped,
  start,
  subscribed,
  succeeded,
  useWebhooksWorld,
  wdlv,
  we,
} from './events.ts'

const world = await useWebhooksWorld()
const scope = { organizationId: org(1), environment: 'live' } as const
const at = (createdAt: number) => ({ created_at: start + createdAt })

async function list(options: Partial<Parameters<typeof listEvents>[1]> = {}): Promise<number[]> {
  const rows = await listEvents(world.pool, {
    ...scope,
    since: start,
    limit: 100,
    ...options,
  })
  return rows.map(({ id }) => Number(id.slice(4)))
}

test('events are listed only in their organization and environment, newest first, ties by id', async () => {
  await world.given(
    raised(1, [1], at(10)),
    raised(2, [], { ...at(30), type: 'session.fingerprint.calculated' }),
    raised(3, [1], at(20)),
    raised(5, [1], { ...at(20), type: 'session.fingerprint.calculated' }),
    raised(4, [1], at(20)),
    raised(6, [1], { ...at(40), environment: 'test' }),
    raised(7, [1], { ...at(40), organization_id: org(2) }),
  )
  expect(await list()).toEqual([2, 5, 4, 3, 1])
  expect(await list({ limit: 3 })).toEqual([2, 5, 4])
  expect(await list({ since: start + 20 })).toEqual([2, 5, 4, 3])
  expect(await list({ since: start + 31 })).toEqual([])
  expect(await list({ environment: 'test' })).toEqual([6])
  expect(await list({ organizationId: org(2) })).toEqual([7])
  expect(await list({ organizationId: org(3) })).toEqual([])
  const found = (eventId: string, since = start) =>
    findEvent(world.pool, { ...scope, eventId, since })
  expect(await found(evt(3))).toMatchObject({ id: evt(3), data: '{"n":3}', created_at: start + 20 })
  expect(await found(evt(3), start + 21)).toBeUndefined()
  for (const n of [6, 7, 8]) expect(await found(evt(n)), String(n)).toBeUndefined()
})

test('events are filtered by type, by endpoint, and by both', async () => {
  const fingerprint = { type: 'session.fingerprint.calculated' } as const
  await world.given(
    ...[1, 2].map((n) => endpointCreated(n)),
    endpointCreated(3, { organization_id: org(2) }),
    endpointCreated(4, { environment: 'test' }),
    raised(1, [1, 2], at(10)),
    raised(2, [1], { ...at(30), ...fingerprint }),
    raised(3, [2], at(20)),
    raised(4, [2], { ...at(20), ...fingerprint }),
    raised(5, [1], { ...at(5), type: 'webhook.test' }),
    raised(6, [3], { ...at(50), organization_id: org(2) }),
    raised(7, [4], { ...at(50), environment: 'test' }),
  )
  expect(await list(fingerprint)).toEqual([2, 4])
  expect(await list({ type: 'webhook.test' })).toEqual([5])
  expect(await list({ type: 'gate.session.approved' })).toEqual([])
  expect(await list({ endpointId: we(1) })).toEqual([2, 1, 5])
  expect(await list({ endpointId: we(2) })).toEqual([4, 3, 1])
  expect(await list({ endpointId: we(2), ...fingerprint })).toEqual([4])
  expect(await list({ endpointId: we(1), since: start + 10, limit: 1 })).toEqual([2])
  expect(await list({ endpointId: we(1), since: start + 10 })).toEqual([2, 1])
  for (const n of [3, 4, 9]) expect(await list({ endpointId: we(n) })).toEqual([])
  // Does not reveal that another organization's endpoint exists.
  expect(await list({ endpointId: we(1), organizationId: org(3) })).toEqual([])
})

test('failed and skipped deliveries are listed separately, newest event first, by organization or endpoint', async () => {
  await world.given(
    ...[1, 2, 3].map((n) => endpointCreated(n)),
    endpointCreated(4, { organization_id: org(2) }),
    raised(1, [1, 2, 3], at(10)),
    raised(2, [4], { ...at(30), organization_id: org(2) }),
    raised(3, [1], at(50)),
    failed([1, 1], 1),
    failed([1, 2], 1),
    succeeded([1, 3], 1),
    failed([2, 4], 1),
    failed([3, 1], 1),
    redelivery([3, 1]),
    raised(4, [1, 2], at(60)),
    skipped([4, 1]),
    skipped([4, 2]),
  )
  const listed = async (options: Partial<DeliveryQuery> = {}) => {
    const query = { status: ['failed'], since: start, limit: 10, ...options } as const
    return (await listDeliveries(world.pool, query)).map(({ id }) => id)
  }
  expect(await listed()).toEqual([wdlv(2, 4), wdlv(1, 2), wdlv(1, 1)])
  expect(await listed({ limit: 1 })).toEqual([wdlv(2, 4)])
  expect(await listed({ organizationId: org(1) })).toEqual([wdlv(1, 2), wdlv(1, 1)])
  expect(await listed({ endpoint_id: we(1) })).toEqual([wdlv(1, 1)])
  expect(await listed({ endpoint_id: we(1), organizationId: org(2) })).toEqual([])
  expect(await listed({ since: start + 30 })).toEqual([wdlv(2, 4)])
  expect(await listed({ status: ['skipped'] })).toEqual([wdlv(4, 2), wdlv(4, 1)])
  expect(await listed({ status: ['skipped'], endpoint_id: we(1) })).toEqual([wdlv(4, 1)])
})

const failures = async (n = 1) =>
  (await findFailureStreak(world.pool, we(n))).failures.map((time) => time - start)
const when = (ms: number) => ({ attempted_at: start + ms })

test('an endpoint has been failing since its first failure after its last success', async () => {
  await world.given(endpointCreated(1), raised(1, [1, 2]), raised(2, [1]))
  expect(await failures()).toEqual([])
  await world.given(
    attempted([1, 1], 1, when(100)),
    attempted([2, 1], 1, when(200)),
    attempted([1, 2], 1, when(50)),
  )
  expect(await failures()).toEqual([100, 200])
  await world.given(succeeded([1, 1], 2, when(300)))
  expect(await failures()).toEqual([])
  await world.given(...[500, 400, 700, 600].map((ms, i) => attempted([2, 1], i + 2, when(ms))))
  expect([await failures(), await failures(9)]).toEqual([[400, 500, 600], []])
})

const rotation = { signing_secret_sealed: Buffer.from([2]), previous_expires_at: start + 900 }
test.each<[string, boolean, DomainEvent[]]>([
  ['a rename', false, [renamed(1, { name: 'New', renamed_at: start + 200 })]],
  [
    'other subscriptions',
    false,
    [subscribed(1, { event_types: [], filter: null, changed_at: start + 200 })],
  ],
  ['a rotation', false, [rotated(1, { ...rotation, rotated_at: start + 200 })]],
  ['a move', true, [moved(1, { url: 'https://b.example/', moved_at: start + 200 })]],
  [
    'being enabled again',
    true,
    [
      disabled(1, { reason: 'failing', disabled_at: start + 150 }),
      enabled(1, { enabled_at: start + 200 }),
    ],
  ],
])('earlier failures are forgiven by %s: %s', async (_, isForgiven, changes) => {
  await world.given(endpointCreated(1), raised(1, [1]), attempted([1, 1], 1, when(100)))
  await world.given(...changes)
  expect(await failures()).toEqual(isForgiven ? [] : [100])
  await world.given(attempted([1, 1], 2, when(200)))
  expect(await failures()).toEqual(isForgiven ? [200] : [100, 200])
})

test('queue stats have the number of due and failed deliveries and the oldest due time', async () => {
  const readings = (now: number) => readQueueStats(world.pool, start + now)
  expect(await readings(0)).toEqual({ oldestDueAt: null, due: 0, failed: 0 })
  await world.given(
    raised(1, [1, 2, 3, 4, 5], at(100)),
    raised(2, [1], { ...at(50), route: 'direct' }),
    raised(3, [1], at(200)),
    succeeded([1, 1], 1),
    failed([1, 2], 1),
    attempted([1, 3], 1, { next_attempt_at: start + 300 }),
    skipped([1, 4]),
  )
  expect(await readings(99)).toEqual({ oldestDueAt: null, due: 0, failed: 1 })
  expect(await readings(100)).toEqual({ oldestDueAt: start + 100, due: 1, failed: 1 })
  expect(await readings(300)).toEqual({ oldestDueAt: start + 100, due: 3, failed: 1 })
})

test('deliveries are summarized per endpoint, with the latest failure', async () => {
  const created = (createdAt: number) => at(createdAt)
  await world.given(
    raised(1, [1, 2], created(-1)),
    raised(2, [1], created(0)),
    raised(3, [1], { ...created(0), type: 'webhook.test' }),
    raised(4, [1], created(0)),
    raised(5, [1], created(0)),
    raised(6, [1], created(0)),
    failed([1, 1], 1, { attempted_at: start + 9000 }),
    succeeded([2, 1], 1, { attempted_at: start + 100 }),
    attempted([3, 1], 1, { attempted_at: start + 200 }),
    succeeded([3, 1], 2, { attempted_at: start + 300 }),
    attempted([4, 1], 1, { attempted_at: start + 4000, error: 'no answer', response_status: null }),
    failed([5, 1], 10, { attempted_at: start + 3000 }),
  )
  const stats = await readDeliveryStats(world.pool, [we(1), we(2)], start)
  expect(stats.get(we(1))).toMatchObject({
    attempted: 4,
    succeeded: 2,
    pending: 2,
    recentFailures: 2,
    lastFailure: { event_id: evt(4), response_status: null, error: 'no answer' },
  })
  const { latencyP50, latencyP95 } = stats.get(we(1)) ?? {}
  expect([latencyP50, latencyP95]).toEqual([220, 310])
  expect(stats.get(we(2))).toMatchObject({ attempted: 0, latencyP50: null, lastFailure: null })
})
