import { expect, test } from 'vitest'
import type { DomainEvent } from '../../../infra/event-store/event.ts'
import { deliveriesOf, findDelivery, findEvents } from '../../../projections/webhooks/queries.ts'
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

const world = useWebhooksWorld()
const find = (event = 1, endpoint = 1) => findDelivery(world.database.pool, wdlv(event, endpoint))

/** What becomes of a delivery by these events, in one batch and one by one. */
async function after(...events: DomainEvent[]) {
  const log = [raised(1), ...events].map((event, i) =>
    recorded(event, { id: `after ${i}`, offset: i }),
  )
  await world.apply(log)
  const atOnce = await find()
  const { rows } = await world.database.pool.query('select count(*) from read.webhook_attempts')
  // The same records once more, each a batch: none of them may count again.
  for (const event of log) await world.apply([event])
  expect(await find()).toEqual(atOnce)
  expect(
    (await world.database.pool.query('select count(*) from read.webhook_attempts')).rows,
  ).toEqual(rows)
  return atOnce
}

test('an event is raised with one delivery for each endpoint, due at once', async () => {
  await world.given(raised(1, [1, 2, 2]))
  expect((await findEvents(world.database.pool, [evt(1)])).get(evt(1))).toEqual({
    id: evt(1),
    organization_id: org(1),
    environment: 'live',
    type: 'session.result.persisted',
    subject_type: 'session',
    subject_id: 'sid_1',
    data: '{"n":1}',
    created_at: start + 1,
  })
  const deliveries = await deliveriesOf(world.database.pool, [evt(1)])
  expect(deliveries.map(({ endpoint_id }) => endpoint_id).toSorted()).toEqual([we(1), we(2)])
  expect(await find(1, 2)).toEqual({
    id: wdlv(1, 2),
    event_id: evt(1),
    endpoint_id: we(2),
    organization_id: org(1),
    environment: 'live',
    event_type: 'session.result.persisted',
    status: 'pending',
    attempts: 0,
    attempts_in_round: 0,
    next_attempt_at: start + 1,
    response_status: null,
    response_body: null,
    error: null,
    created_at: start + 1,
    updated_at: start + 1,
  })
})

test('an event that nobody is subscribed to is kept without deliveries', async () => {
  await world.given(raised(1, []))
  expect((await findEvents(world.database.pool, [evt(1)])).size).toBe(1)
  expect(await world.rows('webhook_deliveries')).toEqual([])
})

test('a delivery that is made by whoever raised it is never due', async () => {
  await world.given(raised(1, [1], { route: 'direct' }))
  expect(await find()).toMatchObject({ status: 'pending', next_attempt_at: null })
  await world.given(attempted([1, 1], 1, { next_attempt_at: null }))
  expect(await find()).toMatchObject({ status: 'pending', attempts: 1, next_attempt_at: null })
  await world.given(succeeded([1, 1], 2, { response_body: null }))
  expect(await find()).toMatchObject({ status: 'succeeded', attempts: 2, response_body: null })
})

test('the first event of an id counts, within a batch and after it', async () => {
  await world.given(raised(1, [1]), raised(1, [2], { data: '{"n":2}' }))
  await world.given(raised(1, [3], { data: '{"n":3}' }))
  expect((await findEvents(world.database.pool, [evt(1)])).get(evt(1))?.data).toBe('{"n":1}')
  const deliveries = await deliveriesOf(world.database.pool, [evt(1)])
  expect(deliveries.map(({ endpoint_id }) => endpoint_id)).toEqual([we(1)])
})

test('a failed attempt leaves the delivery due again, a success ends it', async () => {
  expect(await after(attempted([1, 1], 1))).toMatchObject({
    status: 'pending',
    attempts: 1,
    attempts_in_round: 1,
    next_attempt_at: start + 2000,
    response_status: 500,
    response_body: 'no',
    error: 'answered 500',
    updated_at: start + 1020,
  })
  await world.given(succeeded([1, 1], 2))
  expect(await find()).toMatchObject({
    status: 'succeeded',
    attempts: 2,
    attempts_in_round: 2,
    next_attempt_at: null,
    response_status: 200,
    response_body: 'ok',
    error: null,
    updated_at: start + 2020,
  })
  expect(await world.rows('webhook_attempts')).toEqual([
    expect.objectContaining({ attempt: 1, succeeded: false, endpoint_id: we(1) }),
    expect.objectContaining({ attempt: 2, succeeded: true, attempted_at: String(start + 2000) }),
  ])
})

test('the last attempt of the schedule fails the delivery', async () => {
  expect(await after(attempted([1, 1], 1), failed([1, 1], 2))).toMatchObject({
    status: 'failed',
    attempts: 2,
    next_attempt_at: null,
    response_status: 500,
    updated_at: start + 2020,
  })
})

const late = { attempted_at: start + 1700, response_status: 503 }
test.each([
  ['retrying, retrying', attempted([1, 1], 1), attempted([1, 1], 1, late)],
  ['retrying, failed', attempted([1, 1], 1), failed([1, 1], 1, late)],
  ['failed, retrying', failed([1, 1], 1), attempted([1, 1], 1, late)],
  ['succeeded, retrying', succeeded([1, 1], 1), attempted([1, 1], 1, late)],
  ['succeeded, succeeded', succeeded([1, 1], 1), succeeded([1, 1], 1, { response_status: 204 })],
])('of two reports of one attempt (%s) the first counts', async (_, first, second) => {
  const before = await after(first)
  const attempts = await world.rows('webhook_attempts')
  await world.given(second)
  expect(await find()).toEqual(before)
  expect(await world.rows('webhook_attempts')).toEqual(attempts)
})

test.each([
  ['retrying', [attempted([1, 1], 1)]],
  ['failed', [failed([1, 1], 1)]],
  ['retrying, then skipped', [attempted([1, 1], 1), skipped([1, 1])]],
])('a success counts although its attempt was reported before as %s', async (_, before) => {
  const success = succeeded([1, 1], 1, { attempted_at: start + 700, response_status: 204 })
  expect(await after(...before, success, attempted([1, 1], 1, late))).toMatchObject({
    status: 'succeeded',
    attempts: 1,
    attempts_in_round: 1,
    next_attempt_at: null,
    response_status: 204,
    response_body: 'ok',
    error: null,
    updated_at: start + 720,
  })
  expect(await world.rows('webhook_attempts')).toEqual([
    expect.objectContaining({ attempt: 1, succeeded: true, attempted_at: String(start + 700) }),
  ])
})

test('a success that comes after the report of a later attempt of the schedule ends the delivery too', async () => {
  const later = attempted([1, 1], 2)
  expect(await after(attempted([1, 1], 1), later, succeeded([1, 1], 1))).toMatchObject({
    status: 'succeeded',
    attempts: 2,
    attempts_in_round: 2,
    next_attempt_at: null,
  })
  const attempts = await world.rows('webhook_attempts')
  expect(attempts.toSorted((a, b) => Number(a.attempt) - Number(b.attempt))).toEqual([
    expect.objectContaining({ attempt: 1, succeeded: true }),
    expect.objectContaining({ attempt: 2, succeeded: false }),
  ])
})

test('a success repeated after a redelivery does not end it', async () => {
  const before = await after(attempted([1, 1], 1), succeeded([1, 1], 1), redelivery([1, 1]))
  expect(before).toMatchObject({ status: 'pending', attempts_in_round: 0 })
  await world.given(succeeded([1, 1], 1))
  expect(await find()).toEqual(before)
})

test.each([
  ['retrying', attempted([1, 1], 2)],
  ['failed', failed([1, 1], 2)],
])('after a success a late report (%s) is counted and changes no more', async (_, late) => {
  const success = await after(succeeded([1, 1], 1))
  await world.given(late)
  expect(await find()).toEqual({ ...success, attempts: 2 })
})

test.each([
  ['skipped', skipped([1, 1])],
  ['failed', failed([1, 1], 1)],
])(
  'a delivery that was %s is not made pending by a late report, but a success counts',
  async (status, end) => {
    const before = await after(end)
    expect(before).toMatchObject({ status, next_attempt_at: null })
    await world.given(attempted([1, 1], 2))
    expect(await find()).toEqual({ ...before, attempts: 2 })
    await world.given(succeeded([1, 1], 3))
    expect(await find()).toMatchObject({
      status: 'succeeded',
      attempts: 3,
      response_status: 200,
      error: null,
    })
  },
)

test('a report that comes after that of a later attempt does not change when the next is due', async () => {
  expect(
    await after(attempted([1, 1], 2), attempted([1, 1], 1, { response_status: 404 })),
  ).toMatchObject({
    attempts: 2,
    attempts_in_round: 1,
    next_attempt_at: start + 3000,
    response_status: 500,
  })
  expect(await world.rows('webhook_attempts')).toHaveLength(2)
})

test('a pending delivery is skipped with the reason, one that has ended is not', async () => {
  expect(await after(attempted([1, 1], 1), skipped([1, 1]))).toMatchObject({
    status: 'skipped',
    attempts: 1,
    next_attempt_at: null,
    error: 'the endpoint is disabled',
    updated_at: start + 5000,
  })
  await world.given(raised(2), succeeded([2, 1], 1))
  const success = await find(2)
  await world.given(skipped([2, 1]))
  expect(await find(2)).toEqual(success)
})

test.each([
  ['failed', failed([1, 1], 1), 1],
  ['succeeded', succeeded([1, 1], 1), 1],
  ['skipped', skipped([1, 1]), 0],
])(
  'a delivery that has %s is redelivered from the start of the schedule',
  async (_, end, attempts) => {
    expect(await after(end, redelivery([1, 1]))).toMatchObject({
      status: 'pending',
      attempts,
      attempts_in_round: 0,
      next_attempt_at: start + 9000,
      updated_at: start + 9000,
    })
    await world.given(attempted([1, 1], attempts + 1))
    expect(await find()).toMatchObject({
      status: 'pending',
      attempts: attempts + 1,
      attempts_in_round: 1,
    })
  },
)

test('what is pending is not redelivered, and a request or skip repeated later changes nothing', async () => {
  const request = recorded(redelivery([1, 1], start + 7000), { id: 'request' })
  const skip = recorded(skipped([1, 1]), { id: 'skip' })
  await world.apply([recorded(raised(1)), request])
  expect(await find()).toMatchObject({ status: 'pending', next_attempt_at: start + 1 })
  await world.apply([skip, request])
  expect(await find()).toMatchObject({ status: 'skipped' })
  await world.given(redelivery([1, 1]))
  await world.apply([skip, request])
  expect(await find()).toMatchObject({ status: 'pending', next_attempt_at: start + 9000 })
})

test('what happens to a delivery that is not there leaves nothing behind', async () => {
  await world.given(succeeded([1, 1], 1), skipped([1, 1]), redelivery([1, 1]))
  for (const table of ['webhook_deliveries', 'webhook_attempts', 'webhook_partition_times']) {
    expect(await world.rows(table), table).toEqual([])
  }
})

test('text that Postgres does not take is stored as nearly as it can be', async () => {
  const body = { response_body: 'a\0b', error: 'c\0d' }
  await world.given(
    raised(1, [1], { data: '{"url":"\\u0000 \ud800"}' }),
    attempted([1, 1], 1, body),
  )
  expect(await find()).toMatchObject({ response_body: 'a\ufffdb', error: 'c\ufffdd' })
  const events = await findEvents(world.database.pool, [evt(1)])
  expect(events.get(evt(1))?.data).toBe('{"url":"\\u0000 \ufffd"}')
})
