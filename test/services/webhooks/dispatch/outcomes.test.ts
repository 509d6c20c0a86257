import { afterAll, describe, expect, test } from 'vitest'
import { findEndpoint } from '../../../../projections/webhooks/queries.ts'
import {
  createEndpointHealth,
  type EndpointAttempt,
} from '../../../../services/webhooks/endpoints/endpoint-health.ts'
import { eventually } from '../../../support/eventually.ts'
import { serviceDisabled, serviceRegistered } from '../../../support/gate-service.ts'
import { openTestLogs } from '../../../support/logs.ts'
import { silent } from '../../../support/projections.ts'
import { silence, status } from '../../../support/webhook-behaviours.ts'
import {
  startWebhookReceiver,
  verifiesOwn,
  verifiesStandard,
} from '../../../support/webhook-receiver.ts'
import { type Endpoint, newEventId, openWebhookLog } from '../webhook-log.ts'

const day = 24 * 60 * 60 * 1000

describe.each(openTestLogs())('$name', async (testLog) => {
  const world = await openWebhookLog(testLog)
  await world.project()
  const receiver = await startWebhookReceiver({
    choose({ path, nth }) {
      if (path.startsWith('/gone')) return status(410)
      if (path === '/dead') return silence
      return path === '/flaky' && nth < 3 ? status(503) : status(200)
    },
  })
  await world.start({ env: { WEBHOOK_RETRY_SECONDS: '0,0.05,0.05' } })
  afterAll(async () => {
    await world.close()
    await receiver.close()
  })

  const requestsAt = (path: string) => receiver.requests.filter((request) => request.path === path)

  async function stored({ id: endpointId, organizationId }: Endpoint) {
    const row = await findEndpoint(world.pool, { organizationId, environment: 'live', endpointId })
    if (!row) throw new Error('no endpoint')
    return row
  }
  const becomes = (endpoint: Endpoint, state: object) =>
    eventually(async () => expect(await stored(endpoint)).toMatchObject(state))

  test('every event is delivered once, signed, and is then no longer in flight', async () => {
    const endpoint = await world.endpoint(receiver.url('/a'))
    receiver.expectSignature('/a', endpoint.secret)
    const ids = await world.raise(endpoint, 100)
    expect(await world.ended(endpoint)).toEqual({ succeeded: 100 })
    const received = requestsAt('/a').map(({ eventId }) => eventId)
    expect(received.toSorted()).toEqual(ids.toSorted())
    expect(receiver.problems).toEqual([])
    await world.released()
  })

  test('a failed attempt is retried with the same event id until it succeeds', async () => {
    const endpoint = await world.endpoint(receiver.url('/flaky'))
    const [id = ''] = await world.raise(endpoint)
    expect(await world.ended(endpoint)).toEqual({ succeeded: 1 })
    expect(requestsAt('/flaky').map(({ eventId }) => eventId)).toEqual([id, id, id])
    const delivered = { attempts: 3, error: null, response_status: 200 }
    expect(await world.delivery(id, endpoint)).toMatchObject(delivered)
  })

  test('an event raised after a rotation verifies with the new secret and with the previous one', async () => {
    const endpoint = await world.endpoint(receiver.url('/rotated'))
    const secrets = [endpoint.secret, await world.rotate(endpoint)]
    await world.raise(endpoint)
    await world.ended(endpoint)
    const [request] = requestsAt('/rotated')
    if (!request) throw new Error('nothing arrived')
    expect(secrets.map((secret) => verifiesStandard(request, secret))).toEqual([true, true])
    // The header with a single signature uses the new secret.
    expect(secrets.map((secret) => verifiesOwn(request, secret))).toEqual([false, true])
  })

  test('an endpoint that returns 410 is disabled, and its pending deliveries are skipped', async () => {
    const endpoint = await world.endpoint(receiver.url('/gone'))
    await world.raise(endpoint)
    await becomes(endpoint, { status: 'disabled', disabled_reason: 'gone' })
    await world.raise(endpoint)
    expect(await world.ended(endpoint)).toEqual({ failed: 1, skipped: 1 })
    expect(requestsAt('/gone')).toHaveLength(1)
    const causes = (await world.history())
      .filter(({ type }) => type === 'WebhookEndpointDisabled')
      .map(({ cause }) => cause)
    expect(causes).toEqual([{ actor: { type: 'service', id: 'webhooks' }, request_id: null }])
  })

  test('an endpoint that a Gate service needs is flagged instead, until a delivery succeeds', async () => {
    const endpoint = await world.endpoint(receiver.url('/gone-but-needed'))
    const { id: endpointId, organizationId } = endpoint
    const serviceId = `told-${endpointId.slice(-20)}`
    await world.happen(serviceRegistered({ serviceId, organizationId, endpointId }))
    await world.raise(endpoint)
    await becomes(endpoint, { status: 'active', flagged_reason: 'gone' })
    await judge({ ...(await failedNow(endpoint)), result: 'succeeded' })
    await becomes(endpoint, { status: 'active', flagged_reason: null })
    await world.happen(serviceDisabled(serviceId, organizationId))
    await world.raise(endpoint)
    await becomes(endpoint, { status: 'disabled', disabled_reason: 'gone' })
  })

  test.each([
    [4.99, { status: 'active' }],
    [5.01, { status: 'disabled', disabled_reason: 'failing' }],
  ])('an endpoint without a success for %d days is %j at its next failure', async (days, state) => {
    const created_at = Date.now() - 9 * day
    const endpoint = await world.endpoint(receiver.url('/failing'), { created_at })
    await failedDaysAgo(endpoint, days)
    await judge(await failedNow(endpoint))
    expect(await stored(endpoint)).toMatchObject(state)
  })

  /** Simulates that a minute has passed since the last check. */
  function judge(made: EndpointAttempt): Promise<void> {
    const { decideAs, pool: db } = world
    return createEndpointHealth({ decideAs, db, clock: Date.now, logger: silent }).evaluate(made)
  }

  async function failedNow(endpoint: Endpoint): Promise<EndpointAttempt> {
    const outcome = { kind: 'failure', reason: 'connect', message: 'No.', durationMs: 1 } as const
    return { endpoint: await stored(endpoint), attemptedAt: Date.now(), outcome, result: 'failed' }
  }

  /** Raises an event whose first attempt failed then and whose second is not due soon. */
  async function failedDaysAgo(endpoint: Endpoint, days: number): Promise<void> {
    const eventId = newEventId()
    await world.inFlightOfDead(eventId, endpoint, 600_000)
    await world.raise(endpoint, 1, { event_id: eventId })
    await world.recordAttempt(eventId, endpoint, {
      attempted_at: Date.now() - days * day,
      outcome: 'retrying',
      next_attempt_at: Date.now() + day,
    })
    await world.readable()
    await world.pool.query('delete from tidegate.webhook_leases where event_id = $1', [eventId])
  }

  test.each([
    [
      'for an inactive organization',
      'The organization is not active.',
      (endpoint: Endpoint) => world.suspend(endpoint.organizationId),
      {},
    ],
    [
      'to a disabled endpoint',
      'The endpoint is disabled.',
      (endpoint: Endpoint) => world.disable(endpoint),
      {},
    ],
    [
      'for an event whose data key is deleted',
      'The data key of the session was deleted, so the payload cannot be read.',
      async () => {},
      // As the codec decodes it without the data key.
      { data: '' },
    ],
  ])(
    'nothing is sent %s, nor when a redelivery is requested',
    async (what, error, happens, event) => {
      const path = `/${encodeURIComponent(what)}`
      const endpoint = await world.endpoint(receiver.url(path))
      await happens(endpoint)
      const [eventId = ''] = await world.raise(endpoint, 1, event)
      expect(await world.ended(endpoint)).toEqual({ skipped: 1 })
      expect(await world.delivery(eventId, endpoint)).toMatchObject({ attempts: 0, error })
      const data = { ...world.idsOf(eventId, endpoint), requested_at: Date.now() }
      await world.happen({ type: 'WebhookRedeliveryRequested', data })
      expect(await world.ended(endpoint)).toEqual({ skipped: 1 })
      await world.released()
      expect(requestsAt(path)).toEqual([])
    },
  )

  test('without its secret, a delivery is not sent and is retried', async () => {
    const signing_secret_sealed = Buffer.from('sealed by a master key that is not here any more')
    const endpoint = await world.endpoint(receiver.url('/unsigned'), { signing_secret_sealed })
    const [id = ''] = await world.raise(endpoint)
    expect(await world.ended(endpoint)).toEqual({ failed: 1 })
    expect(await world.delivery(id, endpoint)).toMatchObject({
      attempts: 3,
      error: expect.stringMatching(/could not decrypt the signing secret/),
    })
    expect(requestsAt('/unsigned')).toEqual([])
  })

  // Last, because their deliveries stay in flight.
  test.each([
    ['refuses connections', refusedUrl],
    ['never responds', async () => receiver.url('/dead')],
  ])(
    'an endpoint that %s, with hundreds of deliveries due, delays none of 50 others',
    async (_, urlOf) => {
      const dead = await world.endpoint(await urlOf())
      const path = (i: number) => receiver.url(`/alive/${i}`)
      const others = await Promise.all(
        Array.from({ length: 50 }, (_, i) => world.endpoint(path(i))),
      )
      await world.raise(dead, 300)
      await Promise.all(others.map((other) => world.raise(other)))
      for (const other of others) expect(await world.ended(other)).toEqual({ succeeded: 1 })
      const { rows } = await world.pool.query(
        `select count(*)::int as pending from read.webhook_deliveries
       where endpoint_id = $1 and status = 'pending'`,
        [dead.id],
      )
      expect(rows).toEqual([{ pending: 300 }])
      // Requests to the silent endpoint are still in flight until they time out.
      const waiting = requestsAt('/dead')
      expect(waiting.length).toBeLessThanOrEqual(10)
      expect(new Set(waiting.map(({ eventId }) => eventId)).size).toBe(waiting.length)
    },
  )
})

/** URL with a port that nothing listens on. */
async function refusedUrl(): Promise<string> {
  const gone = await startWebhookReceiver()
  await gone.close()
  return gone.url('/')
}
