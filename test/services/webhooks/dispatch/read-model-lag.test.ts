import { beforeEach, describe, expect, test } from 'vitest'
import { createConcurrencyLimits } from '../../../../services/webhooks/dispatch/concurrency.ts'
import { createDispatch } from '../../../../services/webhooks/dispatch/dispatch.ts'
import type { Deliver } from '../../../../services/webhooks/dispatch/traced-delivery.ts'
import { eventually } from '../../../support/eventually.ts'
import { openTestLogs } from '../../../support/logs.ts'
import { silent } from '../../../support/projections.ts'
import { accept } from '../../../support/webhook-behaviours.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../../support/webhook-receiver.ts'
import { countEnds, holdAttempts } from '../held-log.ts'
import { newEventId, openWebhookLog, type WebhookLog } from '../webhook-log.ts'

const env = { WEBHOOK_LEASE_MS: '1000', WEBHOOK_RETRY_SECONDS: '0,3600' }

describe.each(openTestLogs())('$name', (testLog) => {
  let world: WebhookLog
  let receiver: WebhookReceiver

  beforeEach(async () => {
    world = await openWebhookLog(testLog)
    receiver = await startWebhookReceiver({ choose: () => accept })
    return async () => {
      await world.close()
      await receiver.close()
    }
  })

  const received = () => receiver.requests.map(({ eventId }) => eventId)

  test('a delivery whose endpoint is not in the read model is not skipped, but deferred until its lease expires', async () => {
    await world.project()
    const known = await world.endpoint(receiver.url('/'))
    const unknown = { ...known, id: newEventId().replace('evt_', 'we_') }
    const [lost = ''] = await world.raise(unknown)
    const warned = Promise.withResolvers<object>()
    const logger = silent.child({}, { level: 'silent' })
    logger.warn = (line: object) => warned.resolve(line)
    await world.start({ env: { ...env, WEBHOOK_LEASE_MS: '60000' }, logger })
    expect(await warned.promise).toMatchObject({ event_id: lost, endpoint_id: unknown.id })
    await world.raise(known)
    await world.ended(known)
    expect(await world.delivery(lost, unknown)).toMatchObject({
      status: 'pending',
      attempts: 0,
      error: null,
    })
    expect(await world.leaseEnd(lost, unknown)).not.toBeNull()
  })

  test('a stuck partition defers only the deliveries of its own events', async () => {
    const gate = holdAttempts(world.log)
    await world.project(gate.log)
    const endpoint = await world.endpoint(receiver.url('/'))
    const counting = countEnds(world.log)
    // The ends of the log at the start; later records are not waited for.
    const started = counting.asked(2)
    await world.start({ env, log: counting.log })
    await started
    const home = (eventId: string) => world.log.partitionOf('tidegate.webhooks.v1', eventId)
    const stuck = newEventId()
    let other = newEventId()
    while ((await home(other)) === (await home(stuck))) other = newEventId()
    for (const event_id of [stuck, other]) {
      await world.inFlightOfDead(event_id, endpoint, 600_000)
      await world.raise(endpoint, 1, { event_id })
    }
    await world.recordAttempt(stuck, endpoint)
    await gate.reached
    for (const event_id of [stuck, other]) await world.inFlightOfDead(event_id, endpoint, -1)
    await receiver.reached(1)
    expect(received()).toEqual([other])
    expect(await world.leaseEnd(stuck, endpoint)).not.toBeNull()
    gate.open()
    await world.released()
    expect(await world.ended(endpoint)).toEqual({ succeeded: 2 })
    expect(received()).toEqual([other])
  })

  /** Creates a dispatch with a simulated clock, whose requests end only when the test says so. */
  function openWork(monotonic: () => number, made: ReturnType<Deliver> = new Promise(() => {})) {
    const begun: Parameters<Deliver>[] = []
    const work = createDispatch({
      pool: world.pool,
      owner: 'me',
      leaseMs: 1000,
      limits: createConcurrencyLimits(),
      catchUpGate: { waitUntilCaughtUp: async () => {} },
      deliver: (...job) => {
        begun.push(job)
        return made
      },
      recorder: { record: async () => {} },
      endpointHealth: { evaluate: async () => {} },
      clock: Date.now,
      logger: silent,
      meter: { onSending: () => {} },
      signal: new AbortController().signal,
      onFree: () => {},
      monotonic,
    })
    return { work, begun }
  }

  test.each([
    [499, 1],
    [500, 0],
  ])(
    'of a lease of 1,000 ms that was taken %i ms ago %i is sent, and the rest is requeued',
    async (age, count) => {
      await world.project()
      const endpoint = await world.endpoint(receiver.url('/'))
      const [eventId = ''] = await world.raise(endpoint)
      const ages = [0, age]
      const { work, begun } = openWork(() => ages.shift() ?? age)
      await work.takeDue()
      expect(begun).toHaveLength(count)
      expect(work.inFlight()).toHaveLength(count)
      expect((await world.leaseEnd(eventId, endpoint)) !== null).toBe(count === 1)
    },
  )

  test('a request can start until its lease expires, which a renewal postpones', async () => {
    await world.project()
    await world.raise(await world.endpoint(receiver.url('/')))
    let elapsed = 0
    const { work, begun } = openWork(() => elapsed)
    await work.takeDue()
    const canSend = (at: number) => {
      elapsed = at
      return begun.map(([, may]) => may())
    }
    expect([canSend(999), canSend(1000)]).toEqual([[true], [false]])
    elapsed = 1200
    await work.renewLeases()
    expect([canSend(2199), canSend(2200)]).toEqual([[true], [false]])
  })

  test('a delivery whose request could not start in time is no longer in flight', async () => {
    await world.project()
    await world.raise(await world.endpoint(receiver.url('/')))
    const { work } = openWork(() => 0, Promise.resolve(undefined))
    await work.takeDue()
    await eventually(() => expect(work.inFlight()).toEqual([]))
  })

  test('with default settings, connections to loopback fail, and the attempt has the reason', async () => {
    await world.project()
    await world.start({ env: { ...env, WEBHOOK_ALLOWED_NETWORKS: undefined } })
    const endpoint = await world.endpoint(receiver.url('/').replace('http:', 'https:'))
    const [id = ''] = await world.raise(endpoint)
    const row = await eventually(async () => {
      const delivery = await world.delivery(id, endpoint)
      expect(delivery.attempts).toBe(1)
      return delivery
    })
    expect(row).toMatchObject({ status: 'pending', response_status: null })
    expect(row.error).toMatch(/address|private|not allowed|public/i)
    expect(receiver.connections()).toBe(0)
  })
})
