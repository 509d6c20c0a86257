import { expect, test } from 'vitest'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { runAsOneStatement } from '../../../infra/postgres/arrays.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import { webhooksProjection } from '../../../projections/webhooks/projection.ts'
import { pruneWebhooks } from '../../../projections/webhooks/prune.ts'
import { findDeliveriesByEvent, findRaisedEventIds } from '../../../projections/webhooks/queries.ts'
import { webhookRetentionMs } from '../../../projections/webhooks/tables.ts'
import { inLiveBuild } from '../read-model.ts'
import {
  attempted,
  evt,
  org,
  raised,
  recorded,
  redelivery,
  skipped,
  start,
  succeeded,
  useWebhooksWorld,
  wdlv,
  we,
} from './events.ts'

const world = await useWebhooksWorld()
const all = Array.from({ length: 10 }, (_, n) => evt(n))
const kept = async () => [...(await findRaisedEventIds(world.pool, all))].toSorted()
const at = (n: number, createdAt: number, endpoints = [1]): DomainEvent =>
  raised(n, endpoints, { created_at: createdAt })

const rows = async () => ({
  deliveries: (await world.rows('webhook_deliveries')).map((row) => row.delivery_id).toSorted(),
  attempts: (await world.rows('webhook_attempts')).map((row) => row.delivery_id).toSorted(),
})

test('an event is pruned with its deliveries and attempts once its partition has one more than 30 days newer', async () => {
  await world.given(
    at(1, start, [1, 2]),
    at(2, start + 1),
    attempted([1, 1], 1),
    succeeded([2, 1], 1),
  )
  await world.given(at(3, start + webhookRetentionMs))
  expect(await kept()).toEqual([evt(1), evt(2), evt(3)])
  await world.given(at(4, start + webhookRetentionMs + 1))
  expect(await kept()).toEqual([evt(2), evt(3), evt(4)])
  expect(await rows()).toEqual({
    deliveries: [wdlv(2, 1), wdlv(3, 1), wdlv(4, 1)].toSorted(),
    attempts: [wdlv(2, 1)],
  })
})

test('later events about a pruned event are ignored, including a repeat of the event itself', async () => {
  await world.given(at(1, start), at(2, start + webhookRetentionMs + 1))
  await world.given(at(1, start), attempted([1, 1], 1), skipped([1, 1]), redelivery([1, 1]))
  expect(await kept()).toEqual([evt(2)])
  expect(await rows()).toEqual({ deliveries: [wdlv(2, 1)], attempts: [] })
})

test('an event that has already expired on arrival is not stored', async () => {
  await world.given(at(1, start + webhookRetentionMs + 1), at(2, start), at(3, start + 1))
  expect(await kept()).toEqual([evt(1), evt(3)])
})

test('an event that expires within its own batch takes its attempts along', async () => {
  await world.given(
    at(1, start),
    attempted([1, 1], 1),
    at(2, start + webhookRetentionMs + 1),
    attempted([1, 1], 2),
  )
  expect(await kept()).toEqual([evt(2)])
  expect(await rows()).toEqual({ deliveries: [wdlv(2, 1)], attempts: [] })
})

test('an older event does not reset the newest time, and partitions are independent', async () => {
  await world.given(at(1, start + webhookRetentionMs + 1), at(2, start + 5))
  await world.apply([recorded(at(3, start), { partition: 1 })])
  expect(await kept()).toEqual([evt(1), evt(2), evt(3)])
  expect(await world.rows('webhook_partition_times')).toEqual([
    { log_partition: 0, newest_at: String(start + webhookRetentionMs + 1) },
    { log_partition: 1, newest_at: String(start) },
  ])
})

test('a pruned event that is raised again with a new time is a new event', async () => {
  await world.given(at(1, start, [1, 2]), attempted([1, 1], 1), attempted([1, 2], 1))
  await world.given(
    at(2, start + webhookRetentionMs + 1),
    at(1, start + webhookRetentionMs, [1]),
    succeeded([1, 1], 1),
  )
  const deliveries = await findDeliveriesByEvent(world.pool, [evt(1)])
  expect(deliveries).toMatchObject([
    {
      endpoint_id: we(1),
      organization_id: org(1),
      status: 'succeeded',
      attempts: 1,
      attempts_in_round: 1,
    },
  ])
  expect((await rows()).attempts).toEqual([wdlv(1, 1)])
})

test('after a long silence, any number of events are pruned at once', async () => {
  const many = Array.from({ length: 10_001 }, (_, n) => at(n, start + (n % 7)))
  await world.given(...many)
  await world.given(at(20_000, start + 2 * webhookRetentionMs))
  const stored = await world.rows('webhook_events')
  expect(stored).toMatchObject([{ event_id: evt(20_000) }])
  expect(await rows()).toEqual({ deliveries: [wdlv(20_000, 1)], attempts: [] })
})

test('retention prunes events although another process is about to write to them', async () => {
  await world.given(at(1, start), attempted([1, 1], 1))
  const inBuild = (work: (tx: Tx) => Promise<unknown>) =>
    inLiveBuild(world.pool, webhooksProjection, work)
  const others = { sessions_before: null, decisions_before: null, visitors_before: null }
  const prune = () =>
    inBuild((tx) =>
      pruneWebhooks(tx, [{ ...others, organization_id: org(1), webhooks_before: start + 1 }]),
    )
  await inBuild(async (tx) => {
    const writes = await webhooksProjection.apply(tx, [recorded(succeeded([1, 1], 2))])
    await prune()
    await runAsOneStatement(tx, writes)
  })
  await prune()
  expect(await kept()).toEqual([])
  expect(await rows()).toEqual({ deliveries: [], attempts: [] })
})
