import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { runOnDemand } from '../../../../services/webhooks/dispatch/dispatcher.ts'
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

  test(`${testLog.name}: every event is delivered once, signed, and its lease given back`, async () => {
    const endpoint = await world.endpoint(receiver.url('/a'))
    receiver.expectSignature('/a', endpoint.secret)
    const ids = await world.raise(endpoint, 100)
    expect(await world.ended(endpoint)).toEqual({ succeeded: 100 })
    const received = receiver.requests.filter(({ path }) => path === '/a').map(({ eventId }) => eventId)
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

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** Work that lasts as long as the test says, and when it began. */
function openWork() {
  const begunAt: number[] = []
  const start = Date.now()
  let end: (ms: number) => void = () => {}
  const work = () => {
    begunAt.push(Date.now() - start)
    const { promise, resolve } = Promise.withResolvers<number>()
    end = resolve
    return promise
  }
  return { begunAt, work, end: (againInMs: number) => end(againInMs) }
}

test('it begins at once and again when the work says', async () => {
  const { work, begunAt, end } = openWork()
  runOnDemand({ gapMs: 10, work })
  await vi.advanceTimersByTimeAsync(5)
  end(300)
  await vi.advanceTimersByTimeAsync(305)
  expect(begunAt).toEqual([0, 305])
})

test('many calls are one run, a gap after the start of the last one', async () => {
  const { work, begunAt, end } = openWork()
  const loop = runOnDemand({ gapMs: 10, work })
  await vi.advanceTimersByTimeAsync(2)
  end(500)
  await vi.advanceTimersByTimeAsync(0)
  for (let i = 0; i < 5; i++) loop.wake()
  await vi.advanceTimersByTimeAsync(100)
  expect(begunAt).toEqual([0, 10])
})

test('who asks while it runs gets another run', async () => {
  const { work, begunAt, end } = openWork()
  const loop = runOnDemand({ gapMs: 10, work })
  await vi.advanceTimersByTimeAsync(1)
  loop.wake()
  await vi.advanceTimersByTimeAsync(49)
  expect(begunAt).toEqual([0])
  end(500)
  await vi.advanceTimersByTimeAsync(1)
  expect(begunAt).toEqual([0, 50])
})

test('the earliest of those who ask decides', async () => {
  const { work, begunAt, end } = openWork()
  const loop = runOnDemand({ gapMs: 0, work })
  await vi.advanceTimersByTimeAsync(1)
  end(500)
  await vi.advanceTimersByTimeAsync(0)
  loop.wake(25)
  loop.wake(5)
  loop.wake(50)
  await vi.advanceTimersByTimeAsync(100)
  expect(begunAt).toEqual([0, 6])
})

test('stopped, it waits for the running work and begins no other', async () => {
  const { work, begunAt, end } = openWork()
  const loop = runOnDemand({ gapMs: 10, work })
  await vi.advanceTimersByTimeAsync(1)
  let isStopped = false
  const stopping = loop.stop().then(() => {
    isStopped = true
  })
  await vi.advanceTimersByTimeAsync(100)
  expect(isStopped).toBe(false)
  end(0)
  await stopping
  loop.wake()
  await vi.advanceTimersByTimeAsync(1000)
  expect(begunAt).toEqual([0])
})
