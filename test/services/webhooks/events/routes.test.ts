import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { DomainEvent } from '../../../../infra/event-store/event.ts'
import { derivedHexId, hexId, timeOrderedId } from '../../../../infra/ids.ts'
import { sessionEventTypes } from '../../../../projections/sessions/tables.ts'
import { webhookRetentionMs } from '../../../../projections/webhooks/tables.ts'
import type {
  SessionScored,
  WebhookDeliveryAttempted,
  WebhookEventRaised,
} from '../../../../schemas/events.ts'
import { raise as raisedBy } from '../../../../services/webhooks/planner/raise.ts'
import { sessionScored } from '../../../support/session-scored.ts'
import { startWebhooks, type Webhooks } from '../endpoints/webhooks-app.ts'

let world: Webhooks
let own: Awaited<ReturnType<Webhooks['organization']>>
/** The data of a final result's event. */
const resultData = () => raisedBy(sessionScored(), 'session.result.persisted', Date.now()).data

const first = hexId('we', randomBytes)
const second = hexId('we', randomBytes)

beforeAll(async () => {
  world = await startWebhooks()
})
beforeEach(async () => {
  own = await world.organization()
})
afterAll(() => world.stop())

async function raise(part: Partial<WebhookEventRaised> = {}): Promise<WebhookEventRaised> {
  world.now.ms += 1
  const data: WebhookEventRaised = {
    event_id: timeOrderedId('evt', world.now.ms, randomBytes),
    organization_id: own.organizationId,
    environment: own.environment,
    type: 'session.result.persisted',
    subject_type: 'session',
    subject_id: 'sid_1',
    data: resultData(),
    created_at: world.now.ms,
    endpoint_ids: [first],
    route: 'queued',
    ...part,
  }
  await world.append(own, { type: 'WebhookEventRaised', data })
  return data
}

async function attempt(raised: WebhookEventRaised, part: Partial<WebhookDeliveryAttempted> = {}) {
  const data: WebhookDeliveryAttempted = {
    event_id: raised.event_id,
    delivery_id: derivedHexId('wdlv', raised.event_id, first),
    organization_id: own.organizationId,
    environment: own.environment,
    endpoint_id: first,
    attempt: 1,
    attempted_at: world.now.ms,
    duration_ms: 20,
    outcome: 'succeeded',
    response_status: 200,
    response_body: 'ok',
    error: null,
    next_attempt_at: null,
    session_subject_id: null,
    ...part,
  }
  await world.append(own, { type: 'WebhookDeliveryAttempted', data })
}

const list = (query = '', key = own.key) => world.send({ url: `${own.events}${query}`, key })
const get = (id: string, key = own.key) => world.send({ url: `${own.events}/${id}`, key })
const idsOf = ({ body }: { body: { data: { id: string }[] } }) => body.data.map(({ id }) => id)
const iso = (at: number) => new Date(at).toISOString()

describe('an event', () => {
  test('is shown with its payload and a delivery for each endpoint', async () => {
    const raised = await raise({ endpoint_ids: [first, second] })
    await attempt(raised, {
      outcome: 'retrying',
      response_status: 503,
      response_body: 'busy',
      error: 'The receiver answered 503.',
      next_attempt_at: raised.created_at + 5000,
    })
    const { status, body } = await get(raised.event_id)
    expect(status).toBe(200)
    const delivery = {
      object: 'webhook_delivery',
      event_id: raised.event_id,
      event_type: 'session.result.persisted',
      status: 'pending',
      created_at: iso(raised.created_at),
    }
    const tried = {
      ...delivery,
      id: derivedHexId('wdlv', raised.event_id, first),
      endpoint_id: first,
      attempts: 1,
      next_attempt_at: iso(raised.created_at + 5000),
      response_status: 503,
      response_body: 'busy',
      error: 'The receiver answered 503.',
      updated_at: iso(raised.created_at + 20),
    }
    const untried = {
      ...delivery,
      id: derivedHexId('wdlv', raised.event_id, second),
      endpoint_id: second,
      attempts: 0,
      next_attempt_at: iso(raised.created_at),
      response_status: null,
      response_body: null,
      error: null,
      updated_at: iso(raised.created_at),
    }
    const { webhook_deliveries, ...event } = body.data
    expect(event).toEqual({
      object: 'event',
      id: raised.event_id,
      type: 'session.result.persisted',
      subject: { type: 'session', id: 'sid_1' },
      data: JSON.parse(raised.data),
      created_at: iso(raised.created_at),
    })
    const byEndpoint = webhook_deliveries.toSorted((a: typeof tried) =>
      a.endpoint_id === first ? -1 : 1,
    )
    expect(byEndpoint).toEqual([tried, untried])
    expect((await list()).body.data).toEqual([body.data])
  })

  test('has its payload as it was stored, with members of later versions', async () => {
    const data = `{"later":{"b":[1,null],"a":"\\u00fc"},"object":"webhook_test","endpoint":{"id":"${first}"}}`
    const { event_id } = await raise({ type: 'webhook.test', data })
    const response = await world.app.inject({
      url: `${own.events}/${event_id}`,
      headers: { authorization: `Bearer ${own.key}` },
    })
    expect(response.body).toContain(`"data":${data.replace('\\u00fc', 'ü')},"webhook_deliveries"`)
  })

  test('is there without any endpoint', async () => {
    const raised = await raise({ endpoint_ids: [] })
    expect((await get(raised.event_id)).body.data.webhook_deliveries).toEqual([])
  })

  test('shows a pending delivery as delivering while somebody makes it', async () => {
    const [raised, done] = [await raise(), await raise()]
    await attempt(done)
    const lease = (id: string) =>
      world.pool.query(
        `insert into tidegate.webhook_leases
           (delivery_id, attempt, due_at, event_id, endpoint_id, state, owner, expires_at)
         values ($1, 1, 0, $2, $3, 'sending', 'test', extract(epoch from now()) * 1000 + 3600000)`,
        [derivedHexId('wdlv', id, first), id, first],
      )
    await lease(raised.event_id)
    await lease(done.event_id)
    const statuses = (await list()).body.data.map(
      ({ webhook_deliveries: [delivery] }: { webhook_deliveries: { status: string }[] }) =>
        delivery?.status,
    )
    expect(statuses).toEqual(['succeeded', 'delivering'])
    expect((await get(raised.event_id)).body.data.webhook_deliveries[0].status).toBe('delivering')
  })

  test('is 404 for a malformed, a legacy or an unknown id, in the other environment and organization', async () => {
    const { event_id } = await raise()
    const testKey = await world.secretKey(own.organizationId, 'test')
    const elsewhere = await world.organization()
    const legacy = '0123456789abcdef0123456789abcdef'
    const answers = [
      ...(await Promise.all(
        [legacy, 'evt_x', `w${event_id}`, `evt_${'0'.repeat(26)}`].map((id) => get(id)),
      )),
      await get(event_id, testKey),
      await world.send({ url: `${elsewhere.events}/${event_id}`, key: elsewhere.key }),
    ]
    expect(answers.map(({ status, body }) => [status, body.error.code])).toEqual(
      Array(6).fill([404, 'request.not_found']),
    )
    expect((await get(event_id, elsewhere.key)).status).toBe(403)
  })

  test('is gone from the lists after 30 days, to the millisecond', async () => {
    const { event_id, created_at } = await raise()
    world.now.ms = created_at + webhookRetentionMs
    expect([(await get(event_id)).status, idsOf(await list())]).toEqual([200, [event_id]])
    world.now.ms += 1
    expect([(await get(event_id)).status, idsOf(await list())]).toEqual([404, []])
    expect(idsOf(await list(`?endpoint_id=${first}`))).toEqual([])
  })
})

describe('the list', () => {
  test('is newest first, one page, of one environment', async () => {
    const [older, newer] = [await raise(), await raise()]
    await raise({ environment: 'test' })
    const { body } = await list()
    expect(idsOf({ body })).toEqual([newer.event_id, older.event_id])
    expect(body.pagination).toEqual({ limit: 50, has_more: false })
    const one = (await list('?limit=1&cursor=nonsense&since=x')).body
    expect([idsOf({ body: one }), one.pagination]).toEqual([
      [newer.event_id],
      { limit: 1, has_more: false },
    ])
  })

  test('can be of one type, of one endpoint, or of both', async () => {
    const result = await raise()
    const other = await raise({ endpoint_ids: [second] })
    const both = await raise({
      type: 'session.fingerprint.calculated',
      endpoint_ids: [first, second],
    })
    const nobody = await raise({ type: 'webhook.test', endpoint_ids: [] })
    const found = async (query: string) => idsOf(await list(query))
    expect(await found('?type=session.result.persisted')).toEqual([other.event_id, result.event_id])
    expect(await found('?type=webhook.test')).toEqual([nobody.event_id])
    expect(await found(`?endpoint_id=${first}`)).toEqual([both.event_id, result.event_id])
    expect(await found(`?endpoint_id=${second}&type=session.result.persisted`)).toEqual([
      other.event_id,
    ])
    expect(await found(`?endpoint_id=we_${'0'.repeat(32)}`)).toEqual([])
  })

  test('holds 50 events, and 200 where that many are asked for', async () => {
    const data = resultData()
    const events = Array.from({ length: 210 }, (_, i) => ({
      type: 'WebhookEventRaised' as const,
      data: {
        event_id: timeOrderedId('evt', world.now.ms + i, randomBytes),
        organization_id: own.organizationId,
        environment: own.environment,
        type: 'session.result.persisted',
        subject_type: 'session',
        subject_id: `sid_${i}`,
        data,
        created_at: world.now.ms + i,
        endpoint_ids: [],
        route: 'queued' as const,
      },
    }))
    await world.append(own, ...events)
    const newest = events.map(({ data: { event_id } }) => event_id).toReversed()
    expect(idsOf(await list())).toEqual(newest.slice(0, 50))
    expect(idsOf(await list('?limit=200'))).toEqual(newest.slice(0, 200))
  })

  test('has what sessions told while nobody was subscribed, with the id and the data of an event that is sent', async () => {
    const at = world.now.ms
    const decision = (session: string, evaluated_at: number): DomainEvent => ({
      type: 'SessionScored',
      data: sessionScored({
        event_id: timeOrderedId('evt', evaluated_at, randomBytes),
        session_id: session,
        organization_id: own.organizationId,
        is_provisional: false,
        created_at: at,
        evaluated_at,
      }),
    })
    const [unsent, sent] = [
      timeOrderedId('sid', at, randomBytes),
      timeOrderedId('sid', at, randomBytes),
    ]
    const decided = [decision(unsent, at + 1), decision(sent, at + 2)]
    await world.append(own, ...decided)
    const events = decided.flatMap(({ data }) =>
      sessionEventTypes.map((type) => raisedBy(data as SessionScored, type, at + 10)),
    )
    const raised = events.filter(({ subject_id }) => subject_id === sent)
    for (const data of raised) {
      const event: DomainEvent = {
        type: 'WebhookEventRaised',
        data: { ...data, endpoint_ids: [first] },
      }
      await world.append(own, event)
    }
    const { body } = await list()
    expect(body.data.map(({ id, data }: { id: string; data: unknown }) => [id, data])).toEqual(
      events
        .toSorted((a, b) => b.created_at - a.created_at || (a.event_id < b.event_id ? 1 : -1))
        .map(({ event_id, data }) => [event_id, JSON.parse(data)]),
    )
    const deliveries = body.data.map(
      ({ webhook_deliveries }: { webhook_deliveries: unknown[] }) => webhook_deliveries.length,
    )
    expect(deliveries.toSorted()).toEqual([0, 0, 1, 1])
    for (const { event_id, data } of events) {
      expect((await get(event_id)).body.data).toMatchObject({
        id: event_id,
        data: JSON.parse(data),
      })
    }
    expect(idsOf(await list('?type=session.result.persisted&limit=1'))).toEqual([
      events.find(
        ({ subject_id, type }) => subject_id === sent && type === 'session.result.persisted',
      )?.event_id,
    ])
    expect(idsOf(await list(`?endpoint_id=${first}`)).toSorted()).toEqual(
      raised.map(({ event_id }) => event_id).toSorted(),
    )
    const stranger = await world.organization()
    expect(
      (await world.send({ url: `${stranger.events}/${events[0]?.event_id}`, key: stranger.key }))
        .status,
    ).toBe(404)
    world.now.ms += webhookRetentionMs + 1000
    expect(idsOf(await list())).toEqual([])
  })

  test.each([
    ['limit=0', 'limit'],
    ['limit=201', 'limit'],
    ['limit=1.5', 'limit'],
    ['limit=x', 'limit'],
    ['limit=', 'limit'],
    ['limit=1&limit=2', 'limit'],
    ['type=session.opened', 'type'],
    ['type=', 'type'],
    ['endpoint_id=we_x', 'endpoint_id'],
    ['endpoint_id=', 'endpoint_id'],
    [`endpoint_id=${first.toUpperCase()}`, 'endpoint_id'],
    ['offset=10', 'offset'],
  ])('refuses ?%s naming %s', async (query, name) => {
    const { status, body } = await list(`?${query}`)
    expect([status, body.error.code, body.error.details.fields[0].name]).toEqual([
      422,
      'request.validation_failed',
      name,
    ])
  })
})
