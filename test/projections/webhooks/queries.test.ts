import { expect, test } from 'vitest'
import {
  deliveriesOf,
  failingSince,
  findEvent,
  findEvents,
  type ListUndelivered,
  listEvents,
  listUndelivered,
  queueReadings,
  raisedEventIds,
} from '../../../projections/webhooks/queries.ts'
import {
  attempted,
  endpointCreated,
  evt,
  failed,
  org,
  raised,
  redelivery,
  skipped,
  start,
  succeeded,
  useWebhooksWorld,
  wdlv,
  we,
} from './events.ts'

const world = useWebhooksWorld()
const scope = { organizationId: org(1), environment: 'live' } as const
const at = (createdAt: number) => ({ created_at: start + createdAt })

async function list(options: Partial<Parameters<typeof listEvents>[1]> = {}): Promise<number[]> {
  const rows = await listEvents(world.database.pool, {
    ...scope,
    since: start,
    limit: 100,
    ...options,
  })
  return rows.map(({ id }) => Number(id.slice(4)))
}

test('events are listed in their organization and environment only, newest first, ties by id', async () => {
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
  const found = await findEvent(world.database.pool, { ...scope, eventId: evt(3), since: start })
  expect(found).toMatchObject({ id: evt(3), data: '{"n":3}', created_at: start + 20 })
  for (const other of [
    { eventId: evt(6) },
    { eventId: evt(7) },
    { eventId: evt(8) },
    { eventId: evt(3), since: start + 21 },
  ])
    expect(
      await findEvent(world.database.pool, { ...scope, since: start, ...other }),
      other.eventId,
    ).toBeUndefined()
})

test('events are filtered by type, by the endpoint that they went to, and by both', async () => {
  const fingerprint = { type: 'session.fingerprint.calculated' } as const
  await world.given(
    raised(1, [1, 2], at(10)),
    raised(2, [1], { ...at(30), ...fingerprint }),
    raised(3, [2], at(20)),
    raised(4, [2], { ...at(20), ...fingerprint }),
    raised(5, [1], { ...at(5), type: 'webhook.test' }),
    raised(6, [1], { ...at(50), organization_id: org(2) }),
    raised(7, [1], { ...at(50), environment: 'test' }),
  )
  expect(await list(fingerprint)).toEqual([2, 4])
  expect(await list({ type: 'webhook.test' })).toEqual([5])
  expect(await list({ type: 'gate.session.approved' })).toEqual([])
  expect(await list({ endpointId: we(1) })).toEqual([2, 1, 5])
  expect(await list({ endpointId: we(2) })).toEqual([4, 3, 1])
  expect(await list({ endpointId: we(2), ...fingerprint })).toEqual([4])
  expect(await list({ endpointId: we(1), since: start + 10, limit: 1 })).toEqual([2])
  expect(await list({ endpointId: we(1), since: start + 10 })).toEqual([2, 1])
  expect(await list({ endpointId: we(9) })).toEqual([])
  // Of another organization's endpoint, nothing: not even that it exists.
  expect(await list({ endpointId: we(1), organizationId: org(3) })).toEqual([])
})

test('events are found by their ids, and deliveries by those of their events', async () => {
  await world.given(
    raised(1, [1, 2], at(20)),
    raised(2, [1], { ...at(10), organization_id: org(2) }),
  )
  const { pool } = world.database
  expect(await raisedEventIds(pool, [evt(1), evt(2), evt(3)])).toEqual(new Set([evt(1), evt(2)]))
  expect((await findEvents(pool, [evt(2), evt(3)])).get(evt(2))?.organization_id).toBe(org(2))
  const deliveries = await deliveriesOf(pool, [evt(1), evt(2)])
  const ofFirst = [wdlv(1, 1), wdlv(1, 2)].toSorted()
  expect(deliveries.map(({ id }) => id)).toEqual([wdlv(2, 1), ...ofFirst])
  expect(await deliveriesOf(pool, [])).toEqual([])
})

test('failed and skipped deliveries are listed each for themselves, the last to end first, by organization or endpoint', async () => {
  const end = (attemptedAt: number) => ({ attempted_at: start + attemptedAt, duration_ms: 0 })
  await world.given(
    raised(1, [1, 2, 3]),
    raised(2, [1], { organization_id: org(2) }),
    raised(3, [1]),
    failed([1, 1], 1, end(30)),
    failed([1, 2], 1, end(10)),
    succeeded([1, 3], 1, end(90)),
    failed([2, 1], 1, end(50)),
    failed([3, 1], 1, end(70)),
    redelivery([3, 1]),
    raised(4, [1, 2]),
    skipped([4, 1], start + 80),
    skipped([4, 2], start + 85),
  )
  const { pool } = world.database
  const failures = async (options: Partial<ListUndelivered> = {}) =>
    (await listUndelivered(pool, { status: 'failed', since: start, limit: 10, ...options })).map(
      ({ id }) => id,
    )
  expect(await failures()).toEqual([wdlv(2, 1), wdlv(1, 1), wdlv(1, 2)])
  expect(await failures({ limit: 1 })).toEqual([wdlv(2, 1)])
  expect(await failures({ organizationId: org(1) })).toEqual([wdlv(1, 1), wdlv(1, 2)])
  expect(await failures({ endpointId: we(1) })).toEqual([wdlv(2, 1), wdlv(1, 1)])
  expect(await failures({ endpointId: we(1), organizationId: org(2) })).toEqual([wdlv(2, 1)])
  expect(await failures({ since: start + 30 })).toEqual([wdlv(2, 1), wdlv(1, 1)])
  expect(await failures({ status: 'skipped' })).toEqual([wdlv(4, 2), wdlv(4, 1)])
  expect(await failures({ status: 'skipped', endpointId: we(1) })).toEqual([wdlv(4, 1)])
})

test('an endpoint is failing since its first failure after its last success', async () => {
  const failing = () => failingSince(world.database.pool, we(1))
  const when = (ms: number) => ({ attempted_at: start + ms })
  await world.given(endpointCreated(1), raised(1, [1, 2]), raised(2, [1]))
  expect(await failing()).toBeUndefined()
  await world.given(
    attempted([1, 1], 1, when(100)),
    attempted([2, 1], 1, when(200)),
    attempted([1, 2], 1, when(50)),
  )
  expect(await failing()).toBe(start + 100)
  await world.given(succeeded([1, 1], 2, when(300)))
  expect(await failing()).toBeUndefined()
  await world.given(attempted([2, 1], 2, when(400)), failed([2, 1], 3, when(500)))
  expect(await failing()).toBe(start + 400)
  expect(await failingSince(world.database.pool, we(9))).toBeUndefined()
})

test('what failed before an endpoint was enabled again is forgiven', async () => {
  const about = { organization_id: org(1), endpoint_id: we(1) }
  await world.given(
    endpointCreated(1),
    raised(1, [1]),
    attempted([1, 1], 1, { attempted_at: start + 100 }),
    {
      type: 'WebhookEndpointDisabled',
      data: { ...about, reason: 'failing', disabled_at: start + 200 },
    },
    { type: 'WebhookEndpointEnabled', data: { ...about, enabled_at: start + 300 } },
  )
  expect(await failingSince(world.database.pool, we(1))).toBeUndefined()
  await world.given(attempted([1, 1], 2, { attempted_at: start + 300 }))
  expect(await failingSince(world.database.pool, we(1))).toBe(start + 300)
})

test('a move forgives as enabling does; a rename, other subscriptions and a rotation forgive nothing', async () => {
  const about = { organization_id: org(1), endpoint_id: we(1) }
  const sealed = { signing_secret_sealed: Buffer.from([2]), previous_expires_at: start + 900 }
  await world.given(
    endpointCreated(1),
    raised(1, [1]),
    attempted([1, 1], 1, { attempted_at: start + 100 }),
    { type: 'WebhookEndpointRenamed', data: { ...about, name: 'New', renamed_at: start + 200 } },
    {
      type: 'WebhookEndpointSubscriptionsChanged',
      data: { ...about, event_types: ['gate.session.approved'], changed_at: start + 210 },
    },
    {
      type: 'WebhookEndpointSecretRotated',
      data: { ...about, ...sealed, rotated_at: start + 220 },
    },
  )
  expect(await failingSince(world.database.pool, we(1))).toBe(start + 100)
  const url = 'https://b.example/'
  await world.given({
    type: 'WebhookEndpointMoved',
    data: { ...about, url, moved_at: start + 300 },
  })
  expect(await failingSince(world.database.pool, we(1))).toBeUndefined()
  await world.given(attempted([1, 1], 2, { attempted_at: start + 301 }))
  expect(await failingSince(world.database.pool, we(1))).toBe(start + 301)
})

test('the queue says how many deliveries are due, since when, and how many have failed', async () => {
  const readings = (now: number) => queueReadings(world.database.pool, start + now)
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
