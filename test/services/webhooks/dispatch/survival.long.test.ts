import { beforeEach, describe, expect, test } from 'vitest'
import { databaseNow } from '../../../../infra/postgres/lease.ts'
import { eventually } from '../../../support/eventually.ts'
import { openTestLogs } from '../../../support/logs.ts'
import {
  accept,
  acceptAfter,
  type Behaviour,
  silence,
} from '../../../support/webhook-behaviours.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../../support/webhook-receiver.ts'
import { countEnds, holdAttempts, refuseAppends } from '../held-log.ts'
import { type Endpoint, newEventId, openWebhookLog, type WebhookLog } from '../webhook-log.ts'

const leaseMs = 1000
const env = { WEBHOOK_LEASE_MS: String(leaseMs), WEBHOOK_RETRY_SECONDS: '0,3600' }

describe.each(openTestLogs())('$name', (testLog) => {
  let world: WebhookLog
  let receiver: WebhookReceiver
  let behaviour: Behaviour
  let endpoint: Endpoint

  beforeEach(async () => {
    behaviour = accept
    world = await openWebhookLog(testLog)
    receiver = await startWebhookReceiver({ choose: () => behaviour })
    await world.project()
    endpoint = await world.endpoint(receiver.url('/'))
    return async () => {
      await world.close()
      await receiver.close()
    }
  })

  const received = () => receiver.requests.map(({ eventId }) => eventId)

  test('deliveries that a dead dispatcher had taken are sent by the next one', async () => {
    const eventId = newEventId()
    await world.inFlightOfDead(eventId, endpoint, 300)
    await world.raise(endpoint, 1, { event_id: eventId })
    await world.start({ env })
    expect(await world.ended(endpoint)).toEqual({ succeeded: 1 })
    expect(received()).toEqual([eventId])
    await world.released()
  })

  test('after a rebuild from the log, old deliveries are not sent again', async () => {
    const first = await world.start({ env })
    await world.raise(endpoint, 5)
    await world.ended(endpoint)
    await first.stop()
    await world.stopProjection()
    expect(received()).toHaveLength(5)

    const rebuilt = await openWebhookLog({ ...testLog, cleanup: async () => {} }, world.keyring)
    const gate = holdAttempts(rebuilt.log)
    await rebuilt.project(gate.log)
    await gate.reached
    const counting = countEnds(rebuilt.log)
    const looked = counting.asked(1)
    await rebuilt.start({ env, log: counting.log })
    await looked
    gate.open()
    await rebuilt.readable()
    const [marker = ''] = await rebuilt.raise(endpoint)
    await rebuilt.ended(endpoint)
    await rebuilt.close()
    expect(received().slice(5)).toEqual([marker])
  })

  test('a lease is renewed while its request is running, so that no other process sends the delivery', async () => {
    behaviour = acceptAfter(2.5 * leaseMs)
    await Promise.all([world.start({ env }), world.start({ env })])
    const [eventId = ''] = await world.raise(endpoint)
    expect(await world.ended(endpoint)).toEqual({ succeeded: 1 })
    expect(received()).toEqual([eventId])
  })

  test('while the log is unavailable, the result is kept, and recorded later', async () => {
    const gate = refuseAppends(world.log)
    await Promise.all([world.start({ env, log: gate.log }), world.start({ env, log: gate.log })])
    const [eventId = ''] = await world.raise(endpoint)
    await gate.reached
    const firstEnd = await world.leaseEnd(eventId, endpoint)
    await eventually(async () => {
      const { rows } = await world.pool.query<{ isOver: boolean }>(
        `select ${databaseNow} > $1::bigint + 1000 as "isOver"`,
        [firstEnd],
      )
      expect(rows).toEqual([{ isOver: true }])
    })
    expect(await world.leaseEnd(eventId, endpoint)).not.toBe(firstEnd)
    gate.open()
    expect(await world.ended(endpoint)).toEqual({ succeeded: 1 })
    expect(await world.delivery(eventId, endpoint)).toMatchObject({ attempts: 1 })
    expect(received()).toEqual([eventId])
    await world.released()
  })

  test('four dispatchers send everything once, and never more than ten requests at once', async () => {
    behaviour = acceptAfter(5)
    const ids = await world.raise(endpoint, 300)
    await Promise.all(Array.from({ length: 4 }, () => world.start({ env })))
    expect(await world.ended(endpoint)).toEqual({ succeeded: 300 })
    expect(received().toSorted()).toEqual(ids.toSorted())
    expect(mostAtOnce(receiver)).toBeLessThanOrEqual(10)
    await world.released()
  })

  test('a stopping dispatcher waits for requests in flight and records them', async () => {
    behaviour = acceptAfter(300)
    const dispatcher = await world.start({ env: { ...env, WEBHOOK_LEASE_MS: '60000' } })
    const [eventId = ''] = await world.raise(endpoint)
    await receiver.reached(1)
    await dispatcher.stop()
    await world.readable()
    expect(await world.delivery(eventId, endpoint)).toMatchObject({ status: 'succeeded' })
    await world.released()
  })

  test('a request that does not end in time is aborted, not recorded, and sent by the next dispatcher at once', async () => {
    behaviour = silence
    const long = { ...env, WEBHOOK_LEASE_MS: '60000' }
    const dispatcher = await world.start({ env: long })
    const [eventId = ''] = await world.raise(endpoint)
    await receiver.reached(1)
    const begun = performance.now()
    await dispatcher.stop()
    expect(performance.now() - begun).toBeLessThan(2500)
    expect(await world.delivery(eventId, endpoint)).toMatchObject({
      status: 'pending',
      attempts: 0,
    })
    behaviour = accept
    await world.start({ env: long })
    expect(await world.ended(endpoint)).toEqual({ succeeded: 1 })
    expect(received()).toEqual([eventId, eventId])
    expect(await world.delivery(eventId, endpoint)).toMatchObject({ attempts: 1 })
  })
})

function mostAtOnce({ requests }: WebhookReceiver): number {
  const runningAt = (time: number) =>
    requests.filter(
      ({ receivedAt, answeredAt = Infinity }) => receivedAt <= time && time < answeredAt,
    )
  return Math.max(...requests.map(({ receivedAt }) => runningAt(receivedAt).length))
}
