import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestLogs } from '../../../support/logs.ts'
import { status } from '../../../support/webhook-behaviours.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../../support/webhook-receiver.ts'
import { type DispatchWorld, openDispatchWorld } from './world.ts'

for (const testLog of openTestLogs()) {
  let world: DispatchWorld
  let receiver: WebhookReceiver

  beforeAll(async () => {
    world = await openDispatchWorld(testLog)
    await world.project()
    receiver = await startWebhookReceiver({
      choose: ({ path, nth }) => {
        if (path.startsWith('/flaky')) return nth < 3 ? status(503) : status(200)
        if (path.startsWith('/never')) return status(500)
        return status(204)
      },
    })
    await world.start({ env: { WEBHOOK_RETRY_SECONDS: '0,0.05,0.05' } })
  })
  afterAll(async () => {
    await world?.close()
    await receiver?.close()
  })

  test(`${testLog.name}: every event is delivered once, signed, and in flight no longer`, async () => {
    const endpoint = await world.endpoint(receiver.url('/a'))
    receiver.expectSignature('/a', endpoint.secret)
    const ids = await world.raise(endpoint, 100)
    expect(await world.ended(endpoint)).toEqual({ succeeded: 100 })
    const received = receiver.requests
      .filter(({ path }) => path === '/a')
      .map(({ eventId }) => eventId)
    expect(received.toSorted()).toEqual(ids.toSorted())
    expect(receiver.problems).toEqual([])
    await world.released()
  })

  test(`${testLog.name}: what fails is tried again until it succeeds, under the same id`, async () => {
    const endpoint = await world.endpoint(receiver.url('/flaky'))
    const [id = ''] = await world.raise(endpoint)
    expect(await world.ended(endpoint)).toEqual({ succeeded: 1 })
    const requests = receiver.requests.filter(({ path }) => path === '/flaky')
    expect(requests.map(({ eventId }) => eventId)).toEqual([id, id, id])
    expect(await world.delivery(id, endpoint)).toMatchObject({
      attempts: 3,
      error: null,
      response_status: 200,
    })
  })
}
