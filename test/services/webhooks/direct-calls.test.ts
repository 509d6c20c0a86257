import { afterAll, afterEach, describe, expect, test } from 'vitest'
import type { EventLog } from '../../../infra/log/port.ts'
import { createAddressRules } from '../../../infra/safe-http/addresses.ts'
import { createWebhookClient } from '../../../infra/safe-http/client.ts'
import type {
  DirectAttempt,
  DirectCalls,
  DirectDelivery,
  DirectEvent,
  DirectResponse,
} from '../../../infra/wire/webhooks/direct-call.ts'
import {
  findDeliveriesByEvent,
  findEndpoint,
  findEvents,
} from '../../../projections/webhooks/queries.ts'
import { createSigningSecrets } from '../../../services/webhooks/deliveries/attempt.ts'
import { createDirectCalls } from '../../../services/webhooks/direct-calls.ts'
import { dumpDatabase } from '../../support/dump.ts'
import { eventually } from '../../support/eventually.ts'
import { serviceRegistered } from '../../support/gate-service.ts'
import { openTestLogs } from '../../support/logs.ts'
import { silent } from '../../support/projections.ts'
import { type Behaviour, silence, status } from '../../support/webhook-behaviours.ts'
import {
  startWebhookReceiver,
  verifiesOwn,
  verifiesStandard,
} from '../../support/webhook-receiver.ts'
import { type Endpoint, newEventId, openWebhookLog } from './webhook-log.ts'

const type = 'gate.session.approved'
const random = () => newEventId().slice('evt_'.length)
const notSent = (reason: string) => ({ kind: 'not_sent', reason })

const answering = (code: number, body: string): Behaviour => ({
  ...status(code),
  answer: (_, response) => void response.writeHead(code).end(body),
})

/** Judges like Gate: accepts an envelope, refuses 4xx, and retries anything else. */
function judge({ status: code, body }: DirectResponse) {
  if (code === 200 && body.includes('envelope')) return { kind: 'accepted' as const }
  if (code >= 400 && code < 500)
    return { kind: 'refuse' as const, problem: 'The receiver refused it.' }
  return { kind: 'retry' as const, problem: 'There was no envelope.' }
}

describe.each(openTestLogs())('$name', async (testLog) => {
  let behaviour: Behaviour
  const client = createWebhookClient({ rules: createAddressRules(['127.0.0.0/8']) })

  const world = await openWebhookLog(testLog)
  await world.project()
  const receiver = await startWebhookReceiver({ choose: () => behaviour })
  const calls = callsOver(world.log)
  afterEach(() => expect(receiver.problems).toEqual([]))
  afterAll(async () => {
    await client.close()
    await receiver.close()
    await world.close()
  })

  function callsOver(log: EventLog): DirectCalls {
    const { pool, codec, keyring, decideAs } = world
    const secrets = createSigningSecrets(keyring)
    const deps = { decideAs, pool, log, codec, client, secrets }
    return createDirectCalls({ ...deps, clock: Date.now, logger: silent })
  }

  async function subscribedEndpoint(event_types = [type]) {
    const path = `/${random()}`
    const endpoint = await world.endpoint(receiver.url(path), { event_types })
    receiver.expectSignature(path, endpoint.secret)
    return { ...endpoint, path }
  }

  function eventFor({ id: endpointId, organizationId }: Endpoint): DirectEvent {
    const id = `gate_${random()}`
    return {
      type,
      organizationId,
      environment: 'live',
      endpointId,
      subject: { type: 'gate_session', id },
      data: { service_id: 'acme', gate_session_id: id, foil: { verdict: 'human', score: 0.1 } },
      createdAt: Date.now(),
    }
  }

  async function raised(endpoint: Endpoint): Promise<DirectDelivery> {
    return { eventId: await calls.raise(eventFor(endpoint)), endpointId: endpoint.id }
  }

  const attempt = (which: DirectDelivery, some: Partial<DirectAttempt> = {}, through = calls) =>
    through.attempt({ ...which, attempt: 1, timeoutMs: 10_000, isLast: false, judge, ...some })

  async function shown({ eventId }: DirectDelivery) {
    await world.readable()
    return (await findDeliveriesByEvent(world.pool, [eventId]))[0]
  }

  const requestsTo = ({ path }: { path: string }) =>
    receiver.requests.filter((one) => one.path === path)

  test('an endpoint that a Gate service needs is flagged when it returns 410, until it succeeds', async () => {
    const endpoint = await subscribedEndpoint()
    const { id: endpointId, organizationId } = endpoint
    const serviceId = `told-${random().slice(6)}`
    await world.happen(serviceRegistered({ serviceId, organizationId, endpointId }))
    const isFlagged = async (reason: string | null) => {
      const row = await findEndpoint(world.pool, {
        organizationId,
        environment: 'live',
        endpointId,
      })
      expect(row?.flagged_reason).toBe(reason)
    }
    behaviour = answering(410, '')
    await attempt(await raised(endpoint))
    await eventually(() => isFlagged('gone'))
    behaviour = answering(200, 'envelope')
    await attempt(await raised(endpoint))
    await eventually(() => isFlagged(null))
  })

  test('attempts are made on request, each with the event id, until one is accepted', async () => {
    const endpoint = await subscribedEndpoint()
    const which = await raised(endpoint)
    behaviour = answering(200, 'later')
    expect(await attempt(which)).toEqual({ kind: 'retry', problem: 'There was no envelope.' })
    behaviour = silence
    expect(await attempt(which, { attempt: 2, timeoutMs: 150 })).toMatchObject({ kind: 'retry' })
    behaviour = status(503)
    expect(await attempt(which, { attempt: 3 })).toMatchObject({ kind: 'retry' })
    expect(await shown(which)).toMatchObject({
      status: 'pending',
      attempts: 3,
      next_attempt_at: null,
      response_status: 503,
      error: 'There was no envelope.',
    })
    const body = `envelope ${'x'.repeat(20_000)}`
    behaviour = answering(200, body)
    expect(await attempt(which, { attempt: 4 })).toEqual({
      kind: 'accepted',
      response: { status: 200, body: Buffer.from(body) },
    })
    const accepted = { status: 'succeeded', attempts: 4, response_body: null, error: null }
    expect(await shown(which)).toMatchObject(accepted)
    const requests = requestsTo(endpoint)
    expect(requests.map(({ eventId }) => eventId)).toEqual(Array(4).fill(which.eventId))
    expect(JSON.parse(requests[0]?.body ?? '')).toMatchObject({
      id: which.eventId,
      object: 'webhook_event',
      type,
      data: { service_id: 'acme', foil: { verdict: 'human', score: 0.1 } },
    })
  })

  test.each([
    ['a refused response', 422, false, 'The receiver refused it.'],
    ['a last attempt without a valid response', 500, true, 'There was no envelope.'],
  ])('%s ends the delivery', async (_, code, isLast, problem) => {
    const endpoint = await subscribedEndpoint()
    const which = await raised(endpoint)
    behaviour = status(code)
    expect(await attempt(which, { isLast })).toEqual({ kind: 'failed', problem })
    expect(await shown(which)).toMatchObject({ status: 'failed', response_status: code })
    expect(await attempt(which, { attempt: 2 })).toEqual(notSent('already_failed'))
    expect(requestsTo(endpoint)).toHaveLength(1)
  })

  test('an attempt after a rotation verifies with the new secret and with the previous one', async () => {
    const endpoint = await subscribedEndpoint()
    const which = await raised(endpoint)
    const secrets = [endpoint.secret, await world.rotate(endpoint)]
    receiver.expectSignature(endpoint.path, ...secrets)
    behaviour = answering(200, 'envelope')
    await attempt(which)
    const [request] = requestsTo(endpoint)
    if (!request) throw new Error('nothing arrived')
    expect(secrets.map((secret) => verifiesStandard(request, secret))).toEqual([true, true])
    // The header with a single signature uses the new secret.
    expect(secrets.map((secret) => verifiesOwn(request, secret))).toEqual([false, true])
  })

  test('an event raised again is the same event with one delivery', async () => {
    const [one, other] = [await subscribedEndpoint(), await subscribedEndpoint()]
    const event = eventFor(one)
    const ids = await Promise.all([event, event, event].map((same) => calls.raise(same)))
    ids.push(await calls.raise({ ...event, endpointId: other.id, data: { changed: true } }))
    const [eventId = ''] = ids
    expect(ids).toEqual(Array(4).fill(eventId))
    await world.readable()
    const deliveries = await findDeliveriesByEvent(world.pool, [eventId])
    expect(deliveries.map(({ endpoint_id }) => endpoint_id)).toEqual([one.id])
    const stored = (await findEvents(world.pool, [eventId])).get(eventId)
    expect(JSON.parse(stored?.data ?? '')).toEqual(event.data)
    expect(await attempt({ eventId, endpointId: other.id })).toEqual(notSent('not_raised'))
  })

  test('an attempt that was made but not recorded is repeated under its number, and counted once', async () => {
    const endpoint = await subscribedEndpoint()
    const which = await raised(endpoint)
    const append = () => Promise.reject(new Error('the log is away'))
    behaviour = answering(200, 'envelope')
    await expect(attempt(which, {}, callsOver({ ...world.log, append }))).rejects.toThrow('away')
    expect(await shown(which)).toMatchObject({ status: 'pending', attempts: 0 })
    expect(await attempt(which)).toMatchObject({ kind: 'accepted' })
    // The sender crashed before it could use the response.
    expect(await attempt(which)).toMatchObject({ kind: 'accepted' })
    expect(await shown(which)).toMatchObject({ status: 'succeeded', attempts: 1 })
    expect(requestsTo(endpoint)).toHaveLength(3)
  })

  test.each<[string, (endpoint: Endpoint, which: DirectDelivery) => Promise<unknown>]>([
    ['endpoint_disabled', (endpoint) => world.disable(endpoint)],
    ['organization_inactive', ({ organizationId }) => world.suspend(organizationId)],
    [
      'endpoint_not_subscribed',
      ({ id: endpoint_id, organizationId: organization_id }) =>
        world.happen({
          type: 'WebhookEndpointSubscriptionsChanged',
          data: { organization_id, endpoint_id, event_types: [], filter: null, changed_at: 1 },
        }),
    ],
    [
      // As after a rebuild without the data key.
      'event_unreadable',
      (_, { eventId }) =>
        world.pool.query(`update read.webhook_events set data = '{}' where event_id = $1`, [
          eventId,
        ]),
    ],
  ])('nothing is sent: %s', async (reason, happens) => {
    const endpoint = await subscribedEndpoint()
    const which = await raised(endpoint)
    await happens(endpoint, which)
    expect(await attempt(which)).toEqual(notSent(reason))
    expect(requestsTo(endpoint)).toEqual([])
  })

  test('nothing is sent to an endpoint of another organization, or for an event that was not raised', async () => {
    const endpoint = await subscribedEndpoint()
    const organizationId = await world.organization()
    const foreign = await raised({ ...endpoint, organizationId })
    expect(await attempt(foreign)).toEqual(notSent('endpoint_unknown'))
    const unraised = { eventId: newEventId(), endpointId: endpoint.id }
    expect(await attempt(unraised)).toEqual(notSent('not_raised'))
    expect(requestsTo(endpoint)).toEqual([])
  })

  test('a cancelled delivery has the reason and is not sent again', async () => {
    const which = await raised(await subscribedEndpoint())
    behaviour = status(500)
    await attempt(which)
    await world.readable()
    for (let i = 0; i < 2; i++) await calls.cancel(which, 'The session has expired.')
    const skipped = { status: 'skipped', error: 'The session has expired.' }
    expect(await shown(which)).toMatchObject(skipped)
    expect(await attempt(which, { attempt: 2 })).toEqual(notSent('already_failed'))
  })

  test('the queue ignores direct deliveries, and a queued delivery cannot be made directly', async () => {
    const endpoint = await subscribedEndpoint([type, 'session.result.persisted'])
    const direct = await raised(endpoint)
    const [queued = ''] = await world.raise(endpoint)
    const ofQueue = { eventId: queued, endpointId: endpoint.id }
    expect(await attempt(ofQueue)).toEqual(notSent('not_raised'))
    behaviour = answering(200, 'envelope')
    await world.start()
    await receiver.reached(receiver.requests.length + 1)
    await world.released()
    expect(requestsTo(endpoint).map(({ eventId }) => eventId)).toEqual([queued])
    expect(await shown(direct)).toMatchObject({ status: 'pending', attempts: 0 })
  })

  test('response bodies are stored neither on the log nor in any table', async () => {
    const endpoint = await subscribedEndpoint()
    const [credential, known] = [`credential-${random()}`, `known-${random()}`]
    for (const [code, body] of [
      [200, `envelope ${credential}`],
      [500, credential],
      [400, credential],
    ] as const) {
      behaviour = answering(code, body)
      await attempt(await raised(endpoint))
    }
    await calls.raise({ ...eventFor(endpoint), data: { known } })
    const stored = JSON.stringify(await world.history())
    await world.readable()
    const places = (await dumpDatabase(world.url)).map(({ bytes }) => String(bytes))
    expect([stored, ...places].filter((text) => text.includes(credential))).toEqual([])
    expect([stored, ...places].filter((text) => text.includes(known)).length).toBeGreaterThan(1)
  })
})
