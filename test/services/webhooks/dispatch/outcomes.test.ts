import { afterAll, beforeAll, expect, test } from 'vitest'
import type { DomainEvent } from '../../../../infra/event-store/event.ts'
import { derivedHexId } from '../../../../infra/ids.ts'
import type { Batch } from '../../../../infra/log/port.ts'
import { readTopicToEnd } from '../../../../infra/log/read-topic.ts'
import { findEndpoint } from '../../../../projections/webhooks/queries.ts'
import { type Cause, eventTopics } from '../../../../schemas/events.ts'
import {
  createGiveUp,
  type JudgedAttempt,
} from '../../../../services/webhooks/endpoints/give-up.ts'
import { eventually } from '../../../support/eventually.ts'
import { serviceDisabled, serviceRegistered } from '../../../support/gate-service.ts'
import { openTestLogs } from '../../../support/logs.ts'
import { silent } from '../../../support/projections.ts'
import { type Behaviour, silence, status } from '../../../support/webhook-behaviours.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../../../support/webhook-receiver.ts'
import { type DispatchWorld, type Endpoint, openDispatchWorld } from './world.ts'

const day = 24 * 60 * 60 * 1000
const text = (body: string): Behaviour => ({
  name: 'a body',
  meaning: 'acknowledged',
  answer: (_request, response) => void response.end(body),
})
const behaviours: Record<string, Behaviour> = {
  '/gone': status(410),
  '/failing': status(500),
  '/long': text(`${'x'.repeat(4095)}€ and so on`),
  '/zero': text('a\0b'),
  '/silent': silence,
}
const gone = {
  kind: 'response',
  status: 410,
  retryAfter: undefined,
  body: Buffer.alloc(0),
  durationMs: 1,
} as const

/** Each change that an owner can make to an active endpoint, or to one that is disabled. */
function changesOf({ id, organizationId }: Endpoint, at: number): DomainEvent[] {
  const about = { organization_id: organizationId, endpoint_id: id }
  const secret = { signing_secret_sealed: Buffer.from('new'), previous_expires_at: at + day }
  const event_types = ['session.fingerprint.calculated']
  return [
    { type: 'WebhookEndpointRenamed', data: { ...about, name: 'New', renamed_at: at } },
    {
      type: 'WebhookEndpointSubscriptionsChanged',
      data: { ...about, event_types, changed_at: at },
    },
    { type: 'WebhookEndpointSecretRotated', data: { ...about, ...secret, rotated_at: at } },
    { type: 'WebhookEndpointMoved', data: { ...about, url: 'https://b.example/', moved_at: at } },
    { type: 'WebhookEndpointEnabled', data: { ...about, enabled_at: at } },
  ]
}

/** What an endpoint is after a failure that would end it, by the change that came before. */
const outcomes = {
  WebhookEndpointRenamed: 'disabled',
  WebhookEndpointSubscriptionsChanged: 'disabled',
  WebhookEndpointSecretRotated: 'disabled',
  WebhookEndpointMoved: 'active',
  WebhookEndpointEnabled: 'active',
}

for (const testLog of openTestLogs()) {
  let world: DispatchWorld
  let receiver: WebhookReceiver

  beforeAll(async () => {
    world = await openDispatchWorld(testLog)
    await world.project()
    receiver = await startWebhookReceiver({ choose: ({ path }) => behaviours[path] ?? status(200) })
    await world.start({ env: { WEBHOOK_RETRY_SECONDS: '0,3600', WEBHOOK_TIMEOUT_MS: '300' } })
  })
  afterAll(async () => {
    await world?.close()
    await receiver?.close()
  })

  const requestsAt = (path: string) => receiver.requests.filter((request) => request.path === path)

  async function stored({ id, organizationId }: Endpoint) {
    return findEndpoint(world.pool, { organizationId, environment: 'live', endpointId: id })
  }

  test(`${testLog.name}: an endpoint that says 410 is disabled, and what waits for it is skipped`, async () => {
    const endpoint = await world.endpoint(receiver.url('/gone'))
    const [first = ''] = await world.raise(endpoint)
    await eventually(async () => {
      expect(await stored(endpoint)).toMatchObject({ status: 'disabled', disabled_reason: 'gone' })
    })
    expect(await world.delivery(first, endpoint)).toMatchObject({
      status: 'failed',
      attempts: 1,
      response_status: 410,
    })
    const [second = ''] = await world.raise(endpoint)
    expect(await world.ended(endpoint)).toEqual({ failed: 1, skipped: 1 })
    expect(await world.delivery(second, endpoint)).toMatchObject({
      attempts: 0,
      error: 'The endpoint is disabled.',
    })
    expect(requestsAt('/gone')).toHaveLength(1)
    const itself = { actor: { type: 'service', id: 'webhooks' }, request_id: null }
    expect(await causesOf(endpoint, 'WebhookEndpointDisabled')).toEqual([itself])
    await world.released()
  })

  test(`${testLog.name}: an endpoint that has failed for five days is disabled at its next failure`, async () => {
    const endpoint = await world.endpoint(receiver.url('/failing'), {
      created_at: Date.now() - 9 * day,
    })
    await failedDaysAgo(endpoint, 5.01)
    await world.raise(endpoint)
    await eventually(async () => {
      expect(await stored(endpoint)).toMatchObject({
        status: 'disabled',
        disabled_reason: 'failing',
      })
    })
  })

  test(`${testLog.name}: a success within the five days or a later beginning keeps it`, async () => {
    const [succeeded, recent, hopeless] = [
      await oldEndpoint(),
      await oldEndpoint(),
      await oldEndpoint(),
    ]
    const eventId = await failedDaysAgo(succeeded, 6)
    await world.recordAttempt(eventId, succeeded, {
      attempt: 2,
      attempted_at: Date.now() - 2 * day,
    })
    await failedDaysAgo(recent, 4.99)
    await failedDaysAgo(hopeless, 5.01)
    await world.readable()
    const statuses = []
    for (const endpoint of [succeeded, recent, hopeless])
      statuses.push(await statusAfterFailure(endpoint))
    expect(statuses).toEqual(['active', 'active', 'disabled'])
  })

  test(`${testLog.name}: a move and an enabling start the five days anew, nothing else that its owner changes`, async () => {
    const statuses = new Map<string, string | undefined>()
    for (const change of changesOf(await oldEndpoint(), 0)) {
      const endpoint = await oldEndpoint()
      await failedDaysAgo(endpoint, 6)
      await changed(endpoint, change.type, Date.now() - day)
      statuses.set(change.type, await statusAfterFailure(endpoint))
    }
    expect(Object.fromEntries(statuses)).toEqual(outcomes)
  })

  test(`${testLog.name}: a 410 disables what was neither moved nor enabled since the request began`, async () => {
    const statuses = new Map<string, string | undefined>()
    for (const change of changesOf(await oldEndpoint(), 0)) {
      const endpoint = await oldEndpoint()
      const failed = await failedNow(endpoint)
      await changed(endpoint, change.type, failed.attemptedAt + 1)
      await giveUp().judge({ ...failed, outcome: gone })
      statuses.set(change.type, (await stored(endpoint))?.status)
    }
    expect(Object.fromEntries(statuses)).toEqual(outcomes)
  })

  test(`${testLog.name}: an endpoint that a service is told at is flagged instead, until something arrives`, async () => {
    const endpoint = await world.endpoint(receiver.url('/gone'))
    const { id: endpointId, organizationId } = endpoint
    const serviceId = `told-${endpointId.slice(-20)}`
    await world.happen(serviceRegistered({ serviceId, organizationId, endpointId }), organizationId)
    await world.raise(endpoint)
    await eventually(async () => {
      expect(await stored(endpoint)).toMatchObject({ status: 'active', flagged_reason: 'gone' })
    })
    await giveUp().judge({ ...(await failedNow(endpoint)), result: 'succeeded' })
    expect(await stored(endpoint)).toMatchObject({ status: 'active', flagged_reason: null })
    await world.happen(serviceDisabled(serviceId, organizationId), organizationId)
    await world.raise(endpoint)
    await eventually(async () => {
      expect(await stored(endpoint)).toMatchObject({ status: 'disabled', disabled_reason: 'gone' })
    })
    await world.released()
  })

  async function causesOf({ id }: Endpoint, type: DomainEvent['type']) {
    const causes: (Cause | undefined)[] = []
    const handle = (batches: Batch[]) => {
      for (const record of batches.flatMap(({ records }) => records)) {
        const event = world.codec.fromRecord(record)
        const isOf = 'endpoint_id' in event.data && event.data.endpoint_id === id
        if (isOf && event.type === type) causes.push(event.cause)
      }
    }
    await readTopicToEnd({ log: world.log, topic: eventTopics[type], handle })
    return causes
  }

  const giveUp = () =>
    createGiveUp({ decideAs: world.decideAs, db: world.pool, clock: Date.now, logger: silent })
  const oldEndpoint = () =>
    world.endpoint(receiver.url('/failing'), { created_at: Date.now() - 9 * day })

  async function statusAfterFailure(endpoint: Endpoint) {
    await giveUp().judge(await failedNow(endpoint))
    return (await stored(endpoint))?.status
  }

  /** What its owner does to the endpoint at the time; it is enabled after it was disabled. */
  async function changed(endpoint: Endpoint, type: DomainEvent['type'], at: number): Promise<void> {
    const about = { organization_id: endpoint.organizationId, endpoint_id: endpoint.id }
    const off = { ...about, reason: 'manual', disabled_at: at } as const
    if (type === 'WebhookEndpointEnabled')
      await world.happen({ type: 'WebhookEndpointDisabled', data: off }, endpoint.organizationId)
    for (const change of changesOf(endpoint, at))
      if (change.type === type) await world.happen(change, endpoint.organizationId)
  }

  async function failedNow(endpoint: Endpoint): Promise<JudgedAttempt> {
    const row = await stored(endpoint)
    if (!row) throw new Error('no endpoint')
    const outcome = { kind: 'failure', reason: 'connect', message: 'No.', durationMs: 1 } as const
    return { endpoint: row, attemptedAt: Date.now(), outcome, result: 'failed' }
  }

  /** An event whose first attempt failed; its second is far away. Returns the event's id. */
  async function failedDaysAgo(endpoint: Endpoint, days: number): Promise<string> {
    const eventId = world.newEventId()
    await world.inFlightOfDead(eventId, endpoint, 600_000)
    await world.raise(endpoint, 1, { event_id: eventId })
    await world.recordAttempt(eventId, endpoint, {
      attempted_at: Date.now() - days * day,
      outcome: 'retrying',
      next_attempt_at: Date.now() + day,
    })
    await world.readable()
    await world.pool.query('delete from tidegate.webhook_leases where event_id = $1', [eventId])
    return eventId
  }

  test(`${testLog.name}: nothing is sent for an organization that is not active`, async () => {
    const endpoint = await world.endpoint(receiver.url('/suspended'))
    const organization_id = endpoint.organizationId
    await world.happen(
      { type: 'OrganizationSuspended', data: { organization_id, suspended_at: 1 } },
      organization_id,
    )
    const [suspended = ''] = await world.raise(endpoint)
    expect(await world.ended(endpoint)).toEqual({ skipped: 1 })
    expect(await world.delivery(suspended, endpoint)).toMatchObject({
      error: 'The organization is not active.',
    })
    expect(requestsAt('/suspended')).toEqual([])
  })

  test(`${testLog.name}: an event whose data key is gone is not sent, and says why`, async () => {
    const endpoint = await world.endpoint(receiver.url('/unreadable'))
    // As the codec reads it without the key.
    const [eventId = ''] = await world.raise(endpoint, 1, { data: '' })
    expect(await world.ended(endpoint)).toEqual({ skipped: 1 })
    expect(await world.delivery(eventId, endpoint)).toMatchObject({
      attempts: 0,
      next_attempt_at: null,
      error: 'The data key of the session was deleted, so the payload cannot be read.',
    })
    expect(requestsAt('/unreadable')).toEqual([])
  })

  test(`${testLog.name}: a delivery that was skipped and asked for again is skipped again`, async () => {
    const endpoint = await world.endpoint(receiver.url('/off'))
    const about = { organization_id: endpoint.organizationId, endpoint_id: endpoint.id }
    const off = { ...about, reason: 'manual', disabled_at: 1 } as const
    await world.happen({ type: 'WebhookEndpointDisabled', data: off }, endpoint.organizationId)
    const [eventId = ''] = await world.raise(endpoint)
    await world.ended(endpoint)
    const delivery_id = derivedHexId('wdlv', eventId, endpoint.id)
    const again = {
      ...about,
      event_id: eventId,
      delivery_id,
      environment: 'live',
      requested_at: Date.now(),
    } as const
    await world.happen({ type: 'WebhookRedeliveryRequested', data: again }, endpoint.organizationId)
    expect(await world.ended(endpoint)).toEqual({ skipped: 1 })
    await world.released()
    expect(requestsAt('/off')).toEqual([])
  })

  test(`${testLog.name}: of an answer 4,096 bytes are kept, without half a character or U+0000`, async () => {
    const [long, zero] = [
      await world.endpoint(receiver.url('/long')),
      await world.endpoint(receiver.url('/zero')),
    ]
    const [a = ''] = await world.raise(long)
    const [b = ''] = await world.raise(zero)
    await Promise.all([world.ended(long), world.ended(zero)])
    expect((await world.delivery(a, long)).response_body).toBe('x'.repeat(4095))
    expect((await world.delivery(b, zero)).response_body).toBe('a\uFFFDb')
  })

  test(`${testLog.name}: of the answer to an approval nothing is kept`, async () => {
    const endpoint = await world.endpoint(receiver.url('/long'))
    const [id = ''] = await world.raise(endpoint, 1, { type: 'gate.session.approved' })
    await world.ended(endpoint)
    expect(await world.delivery(id, endpoint)).toMatchObject({
      response_status: 200,
      response_body: null,
    })
  })

  test(`${testLog.name}: a receiver that does not answer is tried again after a minute at least`, async () => {
    const endpoint = await world.endpoint(receiver.url('/silent'))
    const [id = ''] = await world.raise(endpoint)
    const delivery = await eventually(async () => {
      const row = await world.delivery(id, endpoint)
      expect(row.attempts).toBe(1)
      return row
    })
    expect(delivery).toMatchObject({
      status: 'pending',
      response_status: null,
      error: 'The receiver did not answer in time.',
    })
    expect(delivery.next_attempt_at).toBeGreaterThan(Date.now() + 50_000)
  })

  test(`${testLog.name}: without its secret a delivery is not sent, and waits for its next attempt`, async () => {
    const signing_secret_sealed = Buffer.from('sealed by a master key that is not here any more')
    const endpoint = await world.endpoint(receiver.url('/unsigned'), { signing_secret_sealed })
    const [id = ''] = await world.raise(endpoint)
    await eventually(async () => {
      expect(await world.delivery(id, endpoint)).toMatchObject({ status: 'pending', attempts: 1 })
    })
    expect((await world.delivery(id, endpoint)).error).toMatch(/could not open the signing secret/)
    expect(requestsAt('/unsigned')).toEqual([])
  })
}
