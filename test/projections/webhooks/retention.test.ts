import { expect, test } from 'vitest'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { runTogether } from '../../../infra/postgres/arrays.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import { webhooksProjection } from '../../../projections/webhooks/projection.ts'
import { pruneWebhooks } from '../../../projections/webhooks/prune.ts'
import { deliveriesOf, raisedEventIds } from '../../../projections/webhooks/queries.ts'
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
const kept = async () => [...(await raisedEventIds(world.pool, all))].toSorted()
const at = (n: number, createdAt: number, endpoints = [1]): DomainEvent =>
  raised(n, endpoints, { created_at: createdAt })

const rows = async () => ({
  deliveries: (await world.rows('webhook_deliveries')).map((row) => row.delivery_id).toSorted(),
  attempts: (await world.rows('webhook_attempts')).map((row) => row.delivery_id).toSorted(),
})

test('an event goes with its deliveries and attempts once the partition has one more than 30 days newer', async () => {
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

test('what comes later about an event that has gone is ignored, the event itself too', async () => {
  await world.given(at(1, start), at(2, start + webhookRetentionMs + 1))
  await world.given(at(1, start), attempted([1, 1], 1), skipped([1, 1]), redelivery([1, 1]))
  expect(await kept()).toEqual([evt(2)])
  expect(await rows()).toEqual({ deliveries: [wdlv(2, 1)], attempts: [] })
})

test('an event that is too old when it comes is not kept', async () => {
  await world.given(at(1, start + webhookRetentionMs + 1), at(2, start), at(3, start + 1))
  expect(await kept()).toEqual([evt(1), evt(3)])
})

test('an event that goes in the batch in which it came takes its attempts along', async () => {
  await world.given(
    at(1, start),
    attempted([1, 1], 1),
    at(2, start + webhookRetentionMs + 1),
    attempted([1, 1], 2),
  )
  expect(await kept()).toEqual([evt(2)])
  expect(await rows()).toEqual({ deliveries: [wdlv(2, 1)], attempts: [] })
})

test('an older event does not bring the newest time back, and other partitions decide for themselves', async () => {
  await world.given(at(1, start + webhookRetentionMs + 1), at(2, start + 5))
  await world.apply([recorded(at(3, start), { partition: 1 })])
  expect(await kept()).toEqual([evt(1), evt(2), evt(3)])
  expect(await world.rows('webhook_partition_times')).toEqual([
    { log_partition: 0, newest_at: String(start + webhookRetentionMs + 1) },
    { log_partition: 1, newest_at: String(start) },
  ])
})

test('an id that comes again after its event has gone, with a new time, is a new event', async () => {
  await world.given(at(1, start, [1, 2]), attempted([1, 1], 1), attempted([1, 2], 1))
  await world.given(
    at(2, start + webhookRetentionMs + 1),
    at(1, start + webhookRetentionMs, [1]),
    succeeded([1, 1], 1),
  )
  const deliveries = await deliveriesOf(world.pool, [evt(1)])
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

test('after a long silence all goes at once, however much it is', async () => {
  const many = Array.from({ length: 10_001 }, (_, n) => at(n, start + (n % 7)))
  await world.given(...many)
  await world.given(at(20_000, start + 2 * webhookRetentionMs))
  const stored = await world.rows('webhook_events')
  expect(stored).toMatchObject([{ event_id: evt(20_000) }])
  expect(await rows()).toEqual({ deliveries: [wdlv(20_000, 1)], attempts: [] })
})

test('what its organization keeps no longer goes with what another process is about to write of it', async () => {
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
    await runTogether(tx, writes)
  })
  await prune()
  expect(await kept()).toEqual([])
  expect(await rows()).toEqual({ deliveries: [], attempts: [] })
})
