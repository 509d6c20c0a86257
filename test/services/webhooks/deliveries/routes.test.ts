import { randomBytes } from 'node:crypto'
import { afterAll, beforeEach, expect, test } from 'vitest'
import type { DomainEvent } from '../../../../infra/event-store/event.ts'
import { derivedHexId, randomId, webhookEventId } from '../../../../infra/ids.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import { webhookRetentionMs } from '../../../../projections/webhooks/tables.ts'
import type { WebhookDeliveryAttempted, WebhookEventRaised } from '../../../../schemas/events.ts'
import { type ApiOrganization, startApi } from '../../../support/api.ts'
import { visitorErased } from '../../../support/erased.ts'
import { testCause } from '../../../support/projections.ts'
import type { Send } from '../../../support/send.ts'

const api = await startApi()
let own: ApiOrganization
let endpointId: string
beforeEach(async () => {
  api.now.ms += 60_000
  own = await api.organization()
  endpointId = await createEndpoint()
})
afterAll(() => api.stop())

const send = (place: string, { key = own.key, ...request }: Partial<Send> = {}) =>
  api.send({ url: `${own.path}/webhooks/${place}`, key, ...request })
const post = (place: string, body?: unknown, request: Partial<Send> = {}) =>
  send(place, { method: 'POST', body, ...request })

async function createEndpoint(key = own.key): Promise<string> {
  const event_types = ['session.result.persisted', 'session.fingerprint.calculated']
  const body = { name: 'Shop', url: 'https://shop.example/hooks', event_types }
  return (await post('endpoints', body, { key })).body.data.id
}

async function happen(...events: DomainEvent[]): Promise<void> {
  const { organizationId, environment } = own
  const records = events.map((event) => {
    const eventId = randomId('evt', randomBytes)
    const meta = { eventId, time: api.now.ms, organizationId, environment }
    return api.codec.toRecordWithCause(event, meta, testCause)
  })
  await api.applied.waitFor('webhooks', await api.log.append(records), { timeoutMs: 20_000 })
}

type Raised = Partial<Omit<WebhookEventRaised, 'event_id'>>

function eventRaised(part: Raised = {}) {
  const subject_id = randomId('sid', randomBytes)
  const data: Omit<WebhookEventRaised, 'event_id'> = {
    organization_id: own.organizationId,
    environment: own.environment,
    type: 'session.result.persisted',
    subject_type: 'session',
    subject_id,
    data: '{}',
    created_at: api.now.ms,
    endpoint_ids: [endpointId],
    route: 'queued',
    ...part,
  }
  const event_id = webhookEventId(data.type, data.subject_id)
  return { type: 'WebhookEventRaised', data: { ...data, event_id } } as const
}

const idOf = (event: { event_id: string }, endpoint = endpointId) =>
  derivedHexId('wdlv', event.event_id, endpoint)

type Ending = Partial<WebhookDeliveryAttempted> & Pick<WebhookDeliveryAttempted, 'outcome'>

function attempted({ event_id, environment }: WebhookEventRaised, { outcome, ...part }: Ending) {
  const data: WebhookDeliveryAttempted = {
    event_id,
    delivery_id: idOf({ event_id }, part.endpoint_id),
    organization_id: own.organizationId,
    environment,
    endpoint_id: endpointId,
    attempt: 1,
    attempted_at: api.now.ms,
    duration_ms: 20,
    outcome,
    response_status: outcome === 'succeeded' ? 200 : 500,
    response_body: 'received',
    error: outcome === 'succeeded' ? null : 'The receiver responded with 500.',
    next_attempt_at: outcome === 'retrying' ? api.now.ms + 5000 : null,
    session_subject_id: null,
    ...part,
  }
  return { type: 'WebhookDeliveryAttempted', data } as const
}

const outcomes = { succeeded: 'succeeded', failed: 'failed' } as const

/** Raises an event that ends as said, and returns it. */
async function raise(end: 'pending' | 'skipped' | 'succeeded' | 'failed', part?: Raised) {
  const event = eventRaised(part)
  const { data } = event
  const [endpoint_id = endpointId] = data.endpoint_ids
  const { event_id, organization_id, environment } = data
  const delivery_id = idOf(data, endpoint_id)
  const ids = { event_id, delivery_id, organization_id, environment, endpoint_id }
  const skipped = { ...ids, reason: 'The endpoint is disabled.', skipped_at: api.now.ms }
  if (end === 'pending') await happen(event)
  else if (end === 'skipped') await happen(event, { type: 'WebhookDeliverySkipped', data: skipped })
  else await happen(event, attempted(data, { outcome: outcomes[end], endpoint_id }))
  return data
}

interface Shown {
  id: string
  event_id: string
  endpoint_id: string
  status: string
}

async function list(query = '', request: Partial<Send> = {}): Promise<Shown[]> {
  const { status, body } = await send(`deliveries${query}`, request)
  expect(status).toBe(200)
  return body.data
}
const idsOf = async (query: string) => (await list(query)).map(({ id }) => id)

test('deliveries are listed newest first, and filtered by each parameter and by all', async () => {
  const at = api.now.ms
  const iso = (ms: number) => new Date(ms).toISOString()
  const session = randomId('sid', randomBytes)
  const other = await createEndpoint()
  const gate = randomId('gate', randomBytes)
  const pending = await raise('pending', { created_at: at + 1 })
  const succeeded = await raise('succeeded', { created_at: at + 2, subject_id: session })
  const failed = await raise('failed', { created_at: at + 3 })
  const skipped = await raise('skipped', { created_at: at + 4, endpoint_ids: [other] })
  const fingerprint = await raise('succeeded', {
    type: 'session.fingerprint.calculated',
    subject_id: session,
    created_at: at + 5,
  })
  const approval = await raise('failed', {
    type: 'gate.session.approved',
    subject_type: 'gate_session',
    subject_id: gate,
    route: 'direct',
    created_at: at + 6,
  })
  const all = [approval, fingerprint, skipped, failed, succeeded, pending]
  const ids = (events: WebhookEventRaised[]) =>
    events.map((event) => idOf(event, event.endpoint_ids[0]))
  expect(await idsOf('')).toEqual(ids(all))
  const cases: [string, WebhookEventRaised[]][] = [
    ['status=pending', [pending]],
    ['status=succeeded', [fingerprint, succeeded]],
    ['status=failed', [approval, failed]],
    ['status=failed&status=skipped', [approval, skipped, failed]],
    ['status=failed&status=failed', [approval, failed]],
    [`endpoint_id=${other}`, [skipped]],
    ['type=session.fingerprint.calculated', [fingerprint]],
    [`session_id=${session}`, [fingerprint, succeeded]],
    [`session_id=${session}&type=session.result.persisted`, [succeeded]],
    [`session_id=${gate}`, [approval]],
    [`session_id=${randomId('sid', randomBytes)}`, []],
    [`since=${iso(at + 3)}&until=${iso(at + 5)}`, [skipped, failed]],
    [`since=${iso(at + 3)}&status=failed&endpoint_id=${endpointId}`, [approval, failed]],
  ]
  for (const [query, expected] of cases)
    expect(await idsOf(`?${query}`), query).toEqual(ids(expected))
  const [first] = await list(`?session_id=${gate}`)
  expect(first).toMatchObject({ event_type: 'gate.session.approved', status: 'failed' })
})

test.each([
  ['status=delivering', 'status'],
  ['session_id=vid_1', 'session_id'],
  ['since=yesterday', 'since'],
  ['endpoint_id=shop', 'endpoint_id'],
  ['cursor=abc', 'cursor'],
  ['offset=1', 'offset'],
])('a list with %s is rejected', async (query, field) => {
  const { status, body } = await send(`deliveries?${query}`)
  expect([status, body.error.details.fields[0].name]).toEqual([422, field])
})

test('pending deliveries include approvals, which are never due', async () => {
  const queued = await raise('pending')
  api.now.ms += 1
  const approval = await raise('pending', { type: 'gate.session.approved', route: 'direct' })
  const failed = await raise('failed', { created_at: api.now.ms - 2 })
  const pending = [idOf(approval), idOf(queued)]
  expect(await idsOf('?status=pending')).toEqual(pending)
  expect(await idsOf('?status=pending&status=failed')).toEqual([...pending, idOf(failed)])
})

test('a cursor continues within events of the same time, with several endpoints each', async () => {
  const others = [await createEndpoint(), await createEndpoint()]
  const events = Array.from({ length: 5 }, () =>
    eventRaised({ endpoint_ids: [endpointId, ...others] }),
  )
  await happen(...events)
  const all = await idsOf('')
  expect(new Set(all).size).toBe(15)
  for (const limit of [1, 4, 7]) {
    const found: string[] = []
    let cursor = ''
    do {
      const { body } = await send(`deliveries?limit=${limit}&cursor=${cursor}`)
      found.push(...body.data.map(({ id }: Shown) => id))
      cursor = body.pagination.next_cursor ?? ''
    } while (cursor)
    expect(found).toEqual(all)
  }
  const { body } = await send('deliveries?limit=4')
  const foreign = await send(`deliveries?status=failed&cursor=${body.pagination.next_cursor}`)
  expect(foreign.status).toBe(422)
})

test('a delivery is shown for 30 days after its event', async () => {
  const event = await raise('failed')
  api.now.ms += webhookRetentionMs
  expect(await idsOf('')).toEqual([idOf(event)])
  api.now.ms += 1
  expect(await idsOf('')).toEqual([])
  expect((await send(`deliveries/${idOf(event)}/attempts`)).status).toBe(404)
})

test('attempts have the request without signatures, the response and the timing, oldest first', async () => {
  const event = eventRaised()
  const retried = { outcome: 'retrying', response_status: null, response_body: null } as const
  await happen(
    event,
    attempted(event.data, { ...retried, error: 'The receiver did not respond in time.' }),
    attempted(event.data, { outcome: 'succeeded', attempt: 2, attempted_at: api.now.ms + 5400 }),
  )
  const { body } = await send(`deliveries/${idOf(event.data)}/attempts`)
  const seconds = Math.floor((api.now.ms + 5400) / 1000)
  expect(body).toMatchObject({ pagination: { limit: 200, has_more: false } })
  expect(body.data).toEqual([
    {
      object: 'webhook_attempt',
      attempt: 1,
      succeeded: false,
      attempted_at: new Date(api.now.ms).toISOString(),
      duration_ms: 20,
      request_headers: expect.objectContaining({ 'webhook-id': event.data.event_id }),
      response_status: null,
      response_body: null,
      error: 'The receiver did not respond in time.',
    },
    {
      object: 'webhook_attempt',
      attempt: 2,
      succeeded: true,
      attempted_at: new Date(api.now.ms + 5400).toISOString(),
      duration_ms: 20,
      request_headers: {
        'content-type': 'application/json',
        'user-agent': 'Tidegate-Webhooks/1',
        'Idempotency-Key': event.data.event_id,
        'webhook-id': event.data.event_id,
        'webhook-timestamp': String(seconds),
        'X-Foil-Timestamp': String(seconds),
      },
      response_status: 200,
      response_body: 'received',
      error: null,
    },
  ])
})

test('the request and response of an approval are hidden, and it is neither retried nor resent', async () => {
  const event = eventRaised({
    type: 'gate.session.approved',
    subject_type: 'gate_session',
    subject_id: randomId('gate', randomBytes),
    route: 'direct',
  })
  const outcome = { outcome: 'failed', response_body: null } as const
  await happen(event, attempted(event.data, outcome))
  const attempts = await send(`deliveries/${idOf(event.data)}/attempts`)
  expect(attempts.body.data).toMatchObject([
    { succeeded: false, request_headers: null, response_body: null, response_status: 500 },
  ])
  const retried = await post(`deliveries/${idOf(event.data)}/retry`)
  expect([retried.status, retried.body.error.code]).toEqual([409, 'request.conflict'])
  const resent = await resend({ status: 'all' })
  expect(resent.body.data).toMatchObject({ resent: 0, next_since: null })
})

const retry = (event: WebhookEventRaised, request?: Partial<Send>) =>
  post(`deliveries/${idOf(event)}/retry`, undefined, request)
const requests = async () =>
  (await api.events()).flatMap(({ type, data }) =>
    type === 'WebhookRedeliveryRequested' && data.organization_id === own.organizationId
      ? [data.event_id]
      : [],
  )

test.each(['failed', 'skipped', 'succeeded'] as const)(
  'a retry of a %s delivery starts it again, and adds nothing while it is pending',
  async (end) => {
    const event = await raise(end)
    api.now.ms += 1000
    const first = await Promise.all([retry(event), retry(event)])
    for (const { status, body } of [...first, await retry(event)]) {
      expect(status).toBe(202)
      expect(body.data).toMatchObject({
        id: idOf(event),
        event_id: event.event_id,
        status: 'pending',
        next_attempt_at: new Date(api.now.ms).toISOString(),
      })
    }
    expect(await requests()).toHaveLength(1)
  },
)

test('a retry is repeated after its end, unless it has the same Idempotency-Key', async () => {
  const event = await raise('failed')
  const headers = { 'idempotency-key': randomBytes(8).toString('hex') }
  expect((await retry(event, { headers })).status).toBe(202)
  await happen(attempted(event, { outcome: 'failed', attempt: 2 }))
  expect((await retry(event, { headers })).status).toBe(202)
  expect(await list('')).toMatchObject([{ status: 'failed', attempts: 2 }])
  await api.loseAnswers()
  expect((await retry(event, { headers })).status).toBe(202)
  expect(await list('')).toMatchObject([{ status: 'failed', attempts: 2 }])
  expect((await retry(event)).status).toBe(202)
  expect(await list('')).toMatchObject([{ status: 'pending', attempts: 2 }])
})

test('nothing is sent again to a disabled endpoint', async () => {
  const event = await raise('failed')
  expect((await send(`endpoints/${endpointId}`, { method: 'DELETE' })).status).toBe(200)
  for (const { status, body } of [await retry(event), await resend()]) {
    expect(status).toBe(409)
    expect(body.error.message).toContain('not active')
  }
  expect(await requests()).toEqual([])
})

const resend = (body: object = {}, request: Partial<Send> = {}, id = endpointId) =>
  post(`endpoints/${id}/resend`, { since: new Date(0).toISOString(), ...body }, request)

test('resend restarts the failed and skipped deliveries of a period, or all, of one endpoint', async () => {
  const at = api.now.ms
  const iso = (ms: number) => new Date(ms).toISOString()
  const ends = ['failed', 'skipped', 'succeeded', 'pending'] as const
  for (const [i, end] of ends.entries()) await raise(end, { created_at: at + i })
  await raise('failed', { created_at: at + 9, type: 'session.fingerprint.calculated' })
  await raise('failed', { endpoint_ids: [await createEndpoint()] })
  const resent = async (body: object) => (await resend(body)).body.data
  const none = { object: 'webhook_resend', resent: 0, next_since: null }
  expect(await resent({ since: iso(at + 2), until: iso(at + 9) })).toEqual(none)
  expect(await resent({ since: iso(at + 1), until: iso(at + 2) })).toEqual({ ...none, resent: 1 })
  expect(await resent({ event_type: 'session.fingerprint.calculated' })).toMatchObject({
    resent: 1,
  })
  expect(await resent({ since: iso(at), status: 'failed' })).toMatchObject({ resent: 1 })
  expect(await resent({ status: 'all' })).toMatchObject({ resent: 1 })
  expect(await resent({ status: 'all' })).toEqual(none)
  expect(await idsOf(`?endpoint_id=${endpointId}&status=pending`)).toHaveLength(5)
})

test('concurrent resends, and repeats while the deliveries are pending, restart each once', async () => {
  for (let i = 0; i < 3; i++) await raise('failed')
  const both = await Promise.all([resend(), resend()])
  const counts = both.map(({ body }) => body.data.resent)
  expect(counts.toSorted()).toEqual([0, 3])
  expect(await requests()).toHaveLength(3)
})

test('a resend with an Idempotency-Key that was interrupted does not restart a delivery twice', async () => {
  const event = await raise('failed')
  const headers = { 'idempotency-key': randomBytes(8).toString('hex') }
  const first = await resend({}, { headers })
  expect(first.body.data.resent).toBe(1)
  await happen(attempted(event, { outcome: 'failed', attempt: 2 }))
  expect((await resend({}, { headers })).body.data).toEqual(first.body.data)
  await api.loseAnswers()
  expect((await resend({}, { headers })).status).toBe(202)
  expect(await list('')).toMatchObject([{ status: 'failed', attempts: 2 }])
})

test('resend takes the oldest 1,000 and says where to continue, with events of one time together', async () => {
  const at = api.now.ms
  const events = Array.from({ length: 2100 }, (_, i) =>
    // 990 single times, then 1,100 events of the same time, then ten later ones.
    eventRaised({ created_at: at + Math.min(i, 990) + (i >= 2090 ? i : 0) }),
  )
  await happen(...events, ...events.map(({ data }) => attempted(data, { outcome: 'failed' })))
  const counts: number[] = []
  let since: string | null = new Date(at).toISOString()
  while (since !== null) {
    const { status, body } = await resend({ since })
    expect(status).toBe(202)
    counts.push(body.data.resent)
    since = body.data.next_since
  }
  expect(counts).toEqual([990, 1100, 10])
  expect(new Set(await requests()).size).toBe(2100)
})

test.each([
  [{ since: 'yesterday' }, 'since'],
  [{ since: undefined }, 'since'],
  [{ until: 'today' }, 'until'],
  [{ status: 'pending' }, 'status'],
  [{ event_type: 'other' }, 'event_type'],
  [{ limit: 5 }, 'limit'],
])('a resend with %o is rejected', async (body, field) => {
  const answer = await resend(body)
  expect([answer.status, answer.body.error.details.fields[0].name]).toEqual([422, field])
})

test('errors say which value is expected', async () => {
  const message = async (answer: ReturnType<typeof send>) => (await answer).body.error.message
  expect(await message(send('deliveries?session_id=vid_1'))).toBe(
    'session_id must be the id of a session (sid_...) or signup (gate_...)',
  )
  expect(await message(resend({ since: undefined }))).toBe('since is required')
  expect(await message(resend({ since: 5 }))).toBe('since must be a string')
})

test('deliveries of another organization or environment look as if they did not exist', async () => {
  const event = await raise('failed')
  const path = own.path
  const inTest = await api.issue({
    organizationId: own.organizationId,
    environment: 'test',
    scopes: ['*'],
  })
  const foreign = await api.organization()
  const callers = [
    { key: inTest.revealedKey, path },
    { key: foreign.key, path: foreign.path },
  ]
  for (const { key, path } of callers) {
    const call = (place: string, request: Partial<Send> = {}) =>
      api.send({ url: `${path}/webhooks/${place}`, key, ...request })
    const body = { since: new Date(0).toISOString() }
    const answers = [
      await call(`deliveries/${idOf(event)}/attempts`),
      await call(`deliveries/${idOf(event)}/retry`, { method: 'POST' }),
      await call(`endpoints/${endpointId}/resend`, { method: 'POST', body }),
      await call('deliveries/1/attempts'),
      await call('endpoints/1/resend', { method: 'POST', body }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([404, 404, 404, 404, 404])
    for (const query of ['', `?endpoint_id=${endpointId}`, `?session_id=${event.subject_id}`])
      expect((await call(`deliveries${query}`)).body.data).toEqual([])
  }
  expect(await requests()).toEqual([])
})

/** Returns the columns of all webhook tables that contain the text, as `table.column`. */
async function columnsWith(text: string): Promise<string[]> {
  const found = new Set<string>()
  for (const table of webhooksProjection.tables)
    for (const row of (await api.pool.query(`select * from read.${table}`)).rows)
      for (const [column, value] of Object.entries(row))
        if (JSON.stringify(value)?.includes(text)) found.add(`${table}.${column}`)
  return [...found].toSorted()
}

test('an erasure leaves nothing of what a receiver echoed, not even of a later attempt', async () => {
  const marker = `robin-${randomBytes(8).toString('hex')}@person.example`
  const echo = { response_body: marker, error: `no mailbox ${marker}` }
  const erased = eventRaised({ data: JSON.stringify({ email: marker }) })
  const kept = await raise('failed')
  const { event_id, subject_id: session } = erased.data
  await happen(
    erased,
    attempted(erased.data, { outcome: 'retrying', ...echo }),
    attempted(erased.data, { outcome: 'failed', attempt: 2, ...echo }),
  )
  const columns = ['attempts.error', 'attempts.response_body', 'deliveries.error']
  const all = [...columns, 'deliveries.response_body', 'events.data']
  expect(await columnsWith(marker)).toEqual(all.map((name) => `webhook_${name}`))
  expect((await list(`?session_id=${session}`)).map((delivery) => delivery.event_id)).toEqual([
    event_id,
  ])
  await happen({
    type: 'VisitorErased',
    data: visitorErased([session], { organization_id: own.organizationId }),
  })
  await happen(attempted(erased.data, { outcome: 'failed', attempt: 3, ...echo }))
  for (const text of [marker, session, event_id]) expect(await columnsWith(text)).toEqual([])
  expect(await list(`?session_id=${session}`)).toEqual([])
  expect((await send(`deliveries/${idOf(erased.data)}/attempts`)).status).toBe(404)
  expect((await retry(erased.data)).status).toBe(404)
  expect((await send(`deliveries/${idOf(kept)}/attempts`)).body.data).toHaveLength(1)
})
