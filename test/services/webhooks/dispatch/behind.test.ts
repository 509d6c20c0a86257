import { beforeEach, describe, expect, test } from 'vitest'
import { createConcurrencyLimits } from '../../../../services/webhooks/dispatch/concurrency.ts'
import type { Deliver } from '../../../../services/webhooks/dispatch/traced-delivery.ts'
import { createDispatch } from '../../../../services/webhooks/dispatch/work.ts'
import { eventually } from '../../../support/eventually.ts'
import { openTestLogs } from '../../../support/logs.ts'
import { silent } from '../../../support/projections.ts'
import { accept } from '../../../support/webhook-behaviours.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../../support/webhook-receiver.ts'
import { countEnds, holdAttempts } from '../gates.ts'
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

  test('an endpoint that the read model does not show is no reason to skip: its timeout is left to expire', async () => {
    await world.project()
    const known = await world.endpoint(receiver.url('/'))
    const unknown = { ...known, id: newEventId().replace('evt_', 'we_') }
    const [lost = ''] = await world.raise(unknown)
    const warned = Promise.withResolvers<object>()
    const logger = silent.child({}, { level: 'silent' })
    logger.warn = (line: object) => warned.resolve(line)
    await world.start({ env: { ...env, WEBHOOK_LEASE_MS: '60000' }, logger })
    expect(await warned.promise).toMatchObject({ eventId: lost, endpointId: unknown.id })
    await world.raise(known)
    await world.ended(known)
    expect(await world.delivery(lost, unknown)).toMatchObject({
      status: 'pending',
      attempts: 0,
      error: null,
    })
    expect(await world.leaseEnd(lost, unknown)).not.toBeNull()
  })

  test('a partition that stands still keeps the deliveries of its events hidden, and no others', async () => {
    const gate = holdAttempts(world.log)
    await world.project(gate.log)
    const endpoint = await world.endpoint(receiver.url('/'))
    const counting = countEnds(world.log)
    // Both read models' ends as of the start: what comes later is nothing that the start waits for.
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

  /** Work by a clock that the test turns, whose requests last for ever unless told what became of them. */
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
    'of a timeout of 1,000 ms that began %i ms ago %i is begun, and what is not is put back',
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

  test('a request may begin until its lease expires, which a renewal puts off', async () => {
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

  test('a request that could not begin in time is in flight no longer', async () => {
    await world.project()
    await world.raise(await world.endpoint(receiver.url('/')))
    const { work } = openWork(() => 0, Promise.resolve(undefined))
    await work.takeDue()
    await eventually(() => expect(work.inFlight()).toEqual([]))
  })

  test('with default settings nothing connects to loopback, and the attempt says why', async () => {
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
