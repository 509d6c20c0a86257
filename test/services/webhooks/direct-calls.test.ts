import { randomBytes } from 'node:crypto'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { createDecide } from '../../../infra/event-store/decide.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import { createAddressRules } from '../../../infra/safe-http/addresses.ts'
import { createWebhookClient } from '../../../infra/safe-http/client.ts'
import type {
  DirectAttempt,
  DirectCalls,
  DirectEvent,
  DirectResponse,
} from '../../../infra/wire/webhooks/direct-call.ts'
import { generateSigningSecret } from '../../../infra/wire/webhooks/signature.ts'
import { deliveriesOf, findEndpoint, findEvents } from '../../../projections/webhooks/queries.ts'
import { createSigningSecrets } from '../../../services/webhooks/deliveries/attempt.ts'
import { createDirectCalls } from '../../../services/webhooks/direct-calls.ts'
import { eachBatch } from '../../support/each-batch.ts'
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
import { type DispatchWorld, type Endpoint, openDispatchWorld } from './dispatch/world.ts'

const type = 'gate.session.approved'
const hex = () => randomBytes(13).toString('hex')

function answering(code: number, body: string): Behaviour {
  const answer: Behaviour['answer'] = (_, response) => void response.writeHead(code).end(body)
  return { name: String(code), meaning: code === 200 ? 'acknowledged' : 'refused', answer }
}

/** As Gate does: an envelope is accepted, 4xx is refused, anything else may be better the next time. */
function judge({ status: code, body }: DirectResponse) {
  if (code === 200 && body.includes('envelope')) return { kind: 'accepted' as const }
  if (code >= 400 && code < 500)
    return { kind: 'refuse' as const, problem: 'The receiver refused it.' }
  return { kind: 'retry' as const, problem: 'There was no envelope.' }
}

describe.each(openTestLogs())('$name', (testLog) => {
  let world: DispatchWorld
  let calls: DirectCalls
  let behaviour: Behaviour
  let receiver: Awaited<ReturnType<typeof startWebhookReceiver>>
  const client = createWebhookClient({ rules: createAddressRules(['127.0.0.0/8']) })

  beforeAll(async () => {
    world = await openDispatchWorld(testLog)
    await world.project()
    receiver = await startWebhookReceiver({ choose: () => behaviour })
    calls = callsOver(world.log)
  })
  afterEach(() => expect(receiver.problems).toEqual([]))
  afterAll(async () => {
    await client.close()
    await receiver.close()
    await world.close()
  })

  function callsOver(log: EventLog): DirectCalls {
    const { pool, codec, applied, keyring } = world
    const decideAs = createDecide({ pool, log, codec, applied, timeoutMs: 20_000 })
    const secrets = createSigningSecrets(keyring)
    return createDirectCalls({
      decideAs,
      pool,
      log,
      codec,
      client,
      secrets,
      clock: Date.now,
      logger: silent,
    })
  }

  const subscribe = (
    { id: endpoint_id, organizationId: organization_id }: Endpoint,
    types: string[],
  ) =>
    world.happen(
      {
        type: 'WebhookEndpointSubscriptionsChanged',
        data: { organization_id, endpoint_id, event_types: types, changed_at: Date.now() },
      },
      organization_id,
    )

  async function endpointFor(path = `/${hex()}`) {
    const endpoint = await world.endpoint(receiver.url(path))
    await subscribe(endpoint, [type])
    receiver.expectSignature(path, endpoint.secret)
    return { ...endpoint, path }
  }

  const eventFor = (
    { id: endpointId, organizationId }: Endpoint,
    sessionId = `gate_${hex()}`,
  ): DirectEvent => ({
    type,
    organizationId,
    environment: 'live',
    endpointId,
    subject: { type: 'gate_session', id: sessionId },
    data: {
      service_id: 'acme',
      gate_session_id: sessionId,
      foil: { verdict: 'human', score: 0.1 },
    },
    createdAt: Date.now(),
  })

  async function raised(endpoint: Endpoint) {
    const eventId = await calls.raise(eventFor(endpoint))
    return { eventId, endpointId: endpoint.id }
  }

  const attempt = (
    which: { eventId: string; endpointId: string },
    some: Partial<DirectAttempt> = {},
    through = calls,
  ) => through.attempt({ ...which, attempt: 1, timeoutMs: 10_000, isLast: false, judge, ...some })

  async function shown(eventId: string) {
    await world.readable()
    return (await deliveriesOf(world.pool, [eventId]))[0]
  }

  const requestsTo = ({ path }: { path: string }) =>
    receiver.requests.filter((one) => one.path === path)

  test('an endpoint that a service is told at is flagged when it says 410, until it answers', async () => {
    const endpoint = await endpointFor()
    const { id: endpointId, organizationId } = endpoint
    const serviceId = `told-${hex()}`
    await world.happen(serviceRegistered({ serviceId, organizationId, endpointId }), organizationId)
    const flagOf = async () =>
      (await findEndpoint(world.pool, { organizationId, environment: 'live', endpointId }))
        ?.flagged_reason
    behaviour = answering(410, '')
    await attempt(await raised(endpoint))
    await eventually(async () => expect(await flagOf()).toBe('gone'))
    behaviour = answering(200, 'envelope')
    await attempt(await raised(endpoint))
    await eventually(async () => expect(await flagOf()).toBeNull())
  })

  test('an accepted answer is returned whole and recorded without its body', async () => {
    const endpoint = await endpointFor()
    const which = await raised(endpoint)
    const answer = `envelope ${'x'.repeat(20_000)} ${hex()}`
    behaviour = answering(200, answer)
    expect(await attempt(which)).toEqual({
      kind: 'accepted',
      response: { status: 200, body: Buffer.from(answer) },
    })
    expect(await shown(which.eventId)).toMatchObject({
      status: 'succeeded',
      attempts: 1,
      response_status: 200,
      response_body: null,
      error: null,
    })
    const [request] = requestsTo(endpoint)
    expect(JSON.parse(request?.body ?? '')).toMatchObject({
      id: which.eventId,
      object: 'webhook_event',
      type,
      data: { service_id: 'acme', foil: { verdict: 'human', score: 0.1 } },
    })
  })

  test('attempts are made when they are asked for, each under the id of the event, until one is accepted', async () => {
    const endpoint = await endpointFor()
    const which = await raised(endpoint)
    behaviour = answering(200, 'later')
    expect(await attempt(which)).toEqual({ kind: 'retry', problem: 'There was no envelope.' })
    behaviour = status(503)
    expect(await attempt(which, { attempt: 2 })).toMatchObject({ kind: 'retry' })
    expect(await shown(which.eventId)).toMatchObject({
      status: 'pending',
      attempts: 2,
      next_attempt_at: null,
      response_status: 503,
      error: 'There was no envelope.',
    })
    behaviour = answering(200, 'envelope')
    expect(await attempt(which, { attempt: 3 })).toMatchObject({ kind: 'accepted' })
    expect(await shown(which.eventId)).toMatchObject({ status: 'succeeded', attempts: 3 })
    expect(requestsTo(endpoint).map(({ headers }) => headers['idempotency-key'])).toEqual(
      Array(3).fill(which.eventId),
    )
  })

  test('a refused answer and a last attempt without a good one end the delivery', async () => {
    const endpoint = await endpointFor()
    const refused = await raised(endpoint)
    behaviour = status(422)
    expect(await attempt(refused)).toEqual({ kind: 'failed', problem: 'The receiver refused it.' })
    expect(await shown(refused.eventId)).toMatchObject({ status: 'failed', response_status: 422 })
    expect(await attempt(refused, { attempt: 2 })).toEqual({ kind: 'not_sent', reason: 'ended' })
    const late = await raised(endpoint)
    behaviour = status(500)
    expect(await attempt(late, { isLast: true })).toMatchObject({ kind: 'failed' })
    expect(await shown(late.eventId)).toMatchObject({
      status: 'failed',
      error: 'There was no envelope.',
    })
    expect(requestsTo(endpoint)).toHaveLength(2)
  })

  test('a receiver that does not answer in time, and one that is not there, can be called again', async () => {
    const endpoint = await endpointFor()
    const which = await raised(endpoint)
    behaviour = silence
    expect(await attempt(which, { timeoutMs: 150 })).toMatchObject({ kind: 'retry' })
    const gone = await startWebhookReceiver()
    const nobody = await world.endpoint(gone.url('/'))
    await subscribe(nobody, [type])
    await gone.close()
    const lost = await raised(nobody)
    const answer = await attempt(lost)
    expect(answer).toEqual({ kind: 'retry', problem: expect.stringMatching(/./) })
    expect(await shown(lost.eventId)).toMatchObject({
      status: 'pending',
      response_status: null,
      error: answer.kind === 'retry' && answer.problem,
    })
  })

  test('an event raised again is the first one, and has one delivery', async () => {
    const [one, other] = [await endpointFor(), await endpointFor()]
    const event = eventFor(one)
    const ids = await Promise.all([event, event, event].map((same) => calls.raise(same)))
    ids.push(await calls.raise({ ...event, endpointId: other.id, data: { changed: true } }))
    const [eventId = ''] = new Set(ids)
    expect(new Set(ids).size).toBe(1)
    await world.readable()
    expect(
      (await deliveriesOf(world.pool, [eventId])).map(({ endpoint_id }) => endpoint_id),
    ).toEqual([one.id])
    const stored = (await findEvents(world.pool, [eventId])).get(eventId)
    expect(JSON.parse(stored?.data ?? '')).toEqual(event.data)
    expect(await attempt({ eventId, endpointId: other.id })).toEqual({
      kind: 'not_sent',
      reason: 'not_raised',
    })
  })

  test('an attempt that was made and not recorded is made again under its number, and counted once', async () => {
    const endpoint = await endpointFor()
    const which = await raised(endpoint)
    const away: EventLog = {
      ...world.log,
      append: async () => {
        throw new Error('the log is away')
      },
    }
    behaviour = answering(200, 'envelope')
    await expect(attempt(which, {}, callsOver(away))).rejects.toThrow('the log is away')
    expect(await shown(which.eventId)).toMatchObject({ status: 'pending', attempts: 0 })
    expect(await attempt(which)).toMatchObject({ kind: 'accepted' })
    // Its sender crashed before it could use the answer, which nobody else has.
    expect(await attempt(which)).toMatchObject({ kind: 'accepted' })
    expect(await shown(which.eventId)).toMatchObject({ status: 'succeeded', attempts: 1 })
    expect(requestsTo(endpoint)).toHaveLength(3)
  })

  test('while secrets overlap both verify, and the first header is by the new one', async () => {
    const endpoint = await endpointFor()
    const which = await raised(endpoint)
    const next = generateSigningSecret(randomBytes)
    const { id: endpoint_id, organizationId: organization_id, path } = endpoint
    const data = {
      organization_id,
      endpoint_id,
      signing_secret_sealed: world.seal(endpoint_id, next),
      rotated_at: Date.now(),
      previous_expires_at: Date.now() + 60_000,
    }
    await world.happen({ type: 'WebhookEndpointSecretRotated', data }, organization_id)
    receiver.expectSignature(path, next)
    behaviour = answering(200, 'envelope')
    await attempt(which)
    const [request] = requestsTo(endpoint)
    if (!request) throw new Error('nothing arrived')
    expect([endpoint.secret, next].map((secret) => verifiesStandard(request, secret))).toEqual([
      true,
      true,
    ])
    expect([endpoint.secret, next].map((secret) => verifiesOwn(request, secret))).toEqual([
      false,
      true,
    ])
  })

  test('nothing is sent of an event whose data key is gone', async () => {
    const endpoint = await endpointFor()
    const which = await raised(endpoint)
    // As after a rebuild without the key.
    await world.pool.query(`update read.webhook_events set data = '{}' where event_id = $1`, [
      which.eventId,
    ])
    expect(await attempt(which)).toEqual({ kind: 'not_sent', reason: 'event_unreadable' })
    expect(requestsTo(endpoint)).toEqual([])
  })

  test('nothing is sent to an endpoint that may not be told', async () => {
    const unsubscribed = await endpointFor()
    await subscribe(unsubscribed, ['session.result.persisted'])
    const disabled = await endpointFor()
    const about = { organization_id: disabled.organizationId, endpoint_id: disabled.id }
    const disabling = { ...about, reason: 'manual' as const, disabled_at: Date.now() }
    const suspended = await endpointFor()
    const suspending = { organization_id: suspended.organizationId, suspended_at: Date.now() }
    const foreign = { ...(await endpointFor()), organizationId: await world.organization() }
    await world.happen(
      { type: 'WebhookEndpointDisabled', data: disabling },
      disabled.organizationId,
    )
    await world.happen(
      { type: 'OrganizationSuspended', data: suspending },
      suspended.organizationId,
    )
    const answers = []
    for (const endpoint of [unsubscribed, disabled, suspended, foreign])
      answers.push(await attempt(await raised(endpoint)))
    const unraised = await endpointFor()
    answers.push(await attempt({ eventId: `evt_${hex()}`, endpointId: unraised.id }))
    expect(answers).toEqual(
      [
        'endpoint_not_subscribed',
        'endpoint_disabled',
        'organization_inactive',
        'endpoint_unknown',
        'not_raised',
      ].map((reason) => ({ kind: 'not_sent', reason })),
    )
    const nowhere = [unsubscribed, disabled, suspended, foreign, unraised].flatMap(requestsTo)
    expect(nowhere).toEqual([])
  })

  test('what is given up is shown with the reason, and is not sent any more', async () => {
    const endpoint = await endpointFor()
    const which = await raised(endpoint)
    behaviour = status(500)
    await attempt(which)
    await world.readable()
    await calls.giveUp(which, 'The session has expired.')
    await calls.giveUp(which, 'The session has expired.')
    expect(await shown(which.eventId)).toMatchObject({
      status: 'skipped',
      error: 'The session has expired.',
    })
    expect(await attempt(which, { attempt: 2 })).toEqual({ kind: 'not_sent', reason: 'ended' })
  })

  test('the queue leaves direct deliveries alone, and a delivery of the queue is not made directly', async () => {
    const endpoint = await endpointFor()
    await subscribe(endpoint, [type, 'session.result.persisted'])
    const direct = await raised(endpoint)
    const [queued = ''] = await world.raise(endpoint)
    expect(await attempt({ eventId: queued, endpointId: endpoint.id })).toEqual({
      kind: 'not_sent',
      reason: 'not_raised',
    })
    behaviour = answering(200, 'envelope')
    await world.start()
    await receiver.reached(receiver.requests.length + 1)
    await world.released()
    expect(requestsTo(endpoint).map(({ eventId }) => eventId)).toEqual([queued])
    expect(await shown(direct.eventId)).toMatchObject({ status: 'pending', attempts: 0 })
  })

  test('no word of an answer is in the log or in any table', async () => {
    const endpoint = await endpointFor()
    const secretAnswer = `credential-${hex()}`
    const known = `known-${hex()}`
    for (const [code, body] of [
      [200, `envelope ${secretAnswer}`],
      [500, secretAnswer],
      [400, secretAnswer],
    ] as const) {
      behaviour = answering(code, body)
      await attempt(await raised(endpoint))
    }
    await calls.raise({ ...eventFor(endpoint), data: { known } })
    await world.readable()
    const stored = `${await everyTable(world)} ${await everyRecord(world)}`
    expect(stored).not.toContain(secretAnswer)
    expect(stored.split(known).length).toBeGreaterThanOrEqual(3)
  })
})

async function everyTable({ pool }: DispatchWorld): Promise<string> {
  const { rows } = await pool.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables
     where schemaname not in ('pg_catalog', 'information_schema')`,
  )
  const texts = []
  for (const { name } of rows) {
    const { rows: found } = await pool.query<{ text: string | null }>(
      `select string_agg(encode(convert_to(t::text, 'utf8'), 'escape'), ' ') as text from ${name} t`,
    )
    texts.push(found[0]?.text ?? '')
  }
  return texts.join(' ')
}

async function everyRecord({ log }: DispatchWorld): Promise<string> {
  const topic = 'tidegate.webhooks.v1'
  const ends = await log.endPositions(topic)
  const unread = new Map(
    ends.flatMap(({ partition, offset }) => (offset > 0 ? [[partition, offset]] : [])),
  )
  const texts: string[] = []
  const { promise: atEnd, resolve, reject } = Promise.withResolvers<void>()
  const consumer = await log.consume({
    group: `all-${hex()}`,
    topics: [topic],
    onError: reject,
    handle: eachBatch(({ partition, records }) => {
      texts.push(...records.map(({ value }) => value.toString('latin1')))
      if ((records.at(-1)?.offset ?? 0) + 1 >= (unread.get(partition) ?? 0))
        unread.delete(partition)
      if (unread.size === 0) resolve()
    }),
  })
  await atEnd.finally(() => consumer.stop())
  return texts.join(' ')
}
