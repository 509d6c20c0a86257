import { expect, test } from 'vitest'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import {
  findDeliveriesByEvent,
  findDelivery,
  findEvents,
} from '../../../projections/webhooks/queries.ts'
import type { DeliveryRow } from '../../../projections/webhooks/tables.ts'
import {
  attempted,
  evt,
  failed,
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
const find = (event = 1, endpoint = 1) => findDelivery(world.pool, wdlv(event, endpoint))
const eventOf = async (n: number) => (await findEvents(world.pool, [evt(n)])).get(evt(n))
/** Returns the stored attempts by number. */
const attempts = async () =>
  (await world.rows('webhook_attempts'))
    .map(({ attempt, succeeded }) => `${attempt} ${succeeded ? 'succeeded' : 'failed'}`)
    .toSorted()

test('an event is raised with one delivery per endpoint, due at once', async () => {
  await world.given(raised(1, [1, 2, 2]))
  const about = { organization_id: org(1), environment: 'live', created_at: start + 1 }
  expect(await eventOf(1)).toEqual({
    ...about,
    id: evt(1),
    type: 'session.result.persisted',
    subject_type: 'session',
    subject_id: 'sid_1',
    data: '{"n":1}',
  })
  const deliveries = await findDeliveriesByEvent(world.pool, [evt(1)])
  expect(deliveries.map(({ endpoint_id }) => endpoint_id).toSorted()).toEqual([we(1), we(2)])
  expect(await find(1, 2)).toEqual({
    ...about,
    id: wdlv(1, 2),
    event_id: evt(1),
    endpoint_id: we(2),
    event_type: 'session.result.persisted',
    status: 'pending',
    attempts: 0,
    attempts_in_round: 0,
    next_attempt_at: start + 1,
    response_status: null,
    response_body: null,
    error: null,
    updated_at: start + 1,
  })
})

test('an event without subscribers is stored without deliveries', async () => {
  await world.given(raised(1, []))
  expect(await eventOf(1)).toBeDefined()
  expect(await world.rows('webhook_deliveries')).toEqual([])
})

test('a direct delivery is never due', async () => {
  await world.given(raised(1, [1], { route: 'direct' }))
  expect(await find()).toMatchObject({ status: 'pending', next_attempt_at: null })
  await world.given(attempted([1, 1], 1, { next_attempt_at: null }))
  expect(await find()).toMatchObject({ status: 'pending', attempts: 1, next_attempt_at: null })
})

test('the first event of an id wins, within a batch and after it', async () => {
  await world.given(raised(1, [1]), raised(1, [2], { data: '{"n":2}' }))
  await world.given(raised(1, [3], { data: '{"n":3}' }))
  expect((await eventOf(1))?.data).toBe('{"n":1}')
  expect(await findDeliveriesByEvent(world.pool, [evt(1)])).toMatchObject([{ endpoint_id: we(1) }])
})

test('an attempt stores the response, and a skip its reason', async () => {
  await world.given(raised(1), attempted([1, 1], 1))
  expect(await find()).toMatchObject({
    status: 'pending',
    response_status: 500,
    response_body: 'no',
    error: 'answered 500',
    updated_at: start + 1020,
  })
  await world.given(skipped([1, 1]))
  const reason = { status: 'skipped', error: 'the endpoint is disabled', updated_at: start + 5000 }
  expect(await find()).toMatchObject(reason)
  await world.given(succeeded([1, 1], 2))
  const ok = { response_status: 200, response_body: 'ok', error: null, updated_at: start + 2020 }
  expect(await find()).toMatchObject({ status: 'succeeded', ...ok })
})

type Overrides = Parameters<typeof attempted>[2]
const retry = (attempt: number, some?: Overrides) => attempted([1, 1], attempt, some)
const success = (attempt: number, some?: Overrides) => succeeded([1, 1], attempt, some)
const end = (attempt: number, some?: Overrides) => failed([1, 1], attempt, some)
const skip = skipped([1, 1])
const again = redelivery([1, 1])
const late = { attempted_at: start + 1700, response_status: 503 }
const answered204 = { attempted_at: start + 700, response_status: 204 }

/** Returns status, attempts in total and in this round, due time, and last response. */
function shown(row: DeliveryRow | undefined): string {
  const { status, attempts, attempts_in_round, next_attempt_at, response_status } = row ?? {}
  const due = next_attempt_at ? `due ${next_attempt_at - start}` : 'not due'
  return `${status} ${attempts}/${attempts_in_round}, ${due}, ${response_status}`
}

test.each<[string, string, DomainEvent[]]>([
  ['a failed attempt keeps it due', 'pending 1/1, due 2000, 500', [retry(1)]],
  ['a success ends it', 'succeeded 2/2, not due, 200', [retry(1), success(2)]],
  ['the last attempt fails it', 'failed 2/2, not due, 500', [retry(1), end(2)]],
  ['the first record counts', 'pending 1/1, due 2000, 500', [retry(1), retry(1, late)]],
  ['the first record counts', 'pending 1/1, due 2000, 500', [retry(1), end(1, late)]],
  ['the first record counts', 'failed 1/1, not due, 500', [end(1), retry(1, late)]],
  ['the first record counts', 'succeeded 1/1, not due, 200', [success(1), retry(1, late)]],
  ['the first record counts', 'succeeded 1/1, not due, 200', [success(1), success(1, late)]],
  ['a late success counts', 'succeeded 1/1, not due, 204', [retry(1), success(1, answered204)]],
  ['a late success counts', 'succeeded 1/1, not due, 204', [end(1), success(1, answered204)]],
  ['a late success counts', 'succeeded 1/1, not due, 200', [retry(1), skip, success(1)]],
  ['a late success counts', 'succeeded 2/2, not due, 200', [retry(1), retry(2), success(1)]],
  ['a late success counts', 'succeeded 3/1, not due, 200', [skip, retry(2), success(3)]],
  [
    'a repeated success does not end it',
    'pending 1/0, due 9000, 200',
    [success(1), again, success(1)],
  ],
  ['a late record is only counted', 'succeeded 2/1, not due, 200', [success(1), retry(2)]],
  ['a late record is only counted', 'succeeded 2/1, not due, 200', [success(1), end(2)]],
  ['a late record is only counted', 'skipped 2/0, not due, null', [skip, retry(2)]],
  ['a late record is only counted', 'failed 2/1, not due, 500', [end(1), retry(2)]],
  ['an earlier record is only counted', 'pending 2/1, due 3000, 500', [retry(2), retry(1, late)]],
  ['it is skipped while it is pending', 'skipped 1/1, not due, 500', [retry(1), skip]],
  ['it is skipped while it is pending', 'succeeded 1/1, not due, 200', [success(1), skip]],
  ['it is redelivered', 'pending 1/0, due 9000, 500', [end(1), again]],
  ['it is redelivered', 'pending 0/0, due 9000, null', [skip, again]],
  ['its schedule restarts', 'pending 2/1, due 3000, 500', [end(1), again, retry(2)]],
  ['it is not redelivered while it is pending', 'pending 0/0, due 1, null', [again]],
])('a delivery: %s: %s', async (_, state, events) => {
  const log = [raised(1), ...events].map((event) => recorded(event))
  await world.apply(log)
  const atOnce = await find()
  const counted = await attempts()
  expect(shown(atOnce)).toBe(state)
  // The same records again, each in its own batch, must not count twice.
  for (const event of log) await world.apply([event])
  expect([await find(), await attempts()]).toEqual([atOnce, counted])
})

test('a replayed redelivery request or skip has no effect', async () => {
  const request = recorded(redelivery([1, 1], start + 7000))
  const skip = recorded(skipped([1, 1]))
  await world.apply([recorded(raised(1)), request, skip, request])
  expect(await find()).toMatchObject({ status: 'skipped' })
  await world.given(redelivery([1, 1]))
  await world.apply([skip, request])
  expect(await find()).toMatchObject({ status: 'pending', next_attempt_at: start + 9000 })
})

test('events of an unknown delivery leave no rows', async () => {
  await world.given(succeeded([1, 1], 1), skipped([1, 1]), redelivery([1, 1]))
  for (const table of ['webhook_deliveries', 'webhook_attempts', 'webhook_partition_times'])
    expect(await world.rows(table), table).toEqual([])
})

test('text that PostgreSQL rejects is stored with replacement characters', async () => {
  const body = { response_body: 'a\0b', error: 'c\0d' }
  const data = '{"url":"\\u0000 \ud800"}'
  await world.given(raised(1, [1], { data }), attempted([1, 1], 1, body))
  expect(await find()).toMatchObject({ response_body: 'a\ufffdb', error: 'c\ufffdd' })
  expect((await eventOf(1))?.data).toBe('{"url":"\\u0000 \ufffd"}')
})
