import { randomBytes } from 'node:crypto'
import { afterAll, beforeEach, expect, test } from 'vitest'
import type { DomainEvent } from '../../../../infra/event-store/event.ts'
import { derivedHexId, timeOrderedId } from '../../../../infra/ids.ts'
import { sessionEventTypes } from '../../../../projections/sessions/tables.ts'
import { webhooksProjection } from '../../../../projections/webhooks/projection.ts'
import { webhookRetentionMs } from '../../../../projections/webhooks/tables.ts'
import type { WebhookEventRaised } from '../../../../schemas/events.ts'
import { buildDecisionEvent } from '../../../../services/webhooks/planner/build-events.ts'
import { type ApiOrganization, startApi } from '../../../support/api.ts'
import { sessionScored } from '../../../support/session-scored.ts'

let own: ApiOrganization
let endpointId: string
const deliveryId = (eventId: string) => derivedHexId('wdlv', eventId, endpointId)

const api = await startApi()
beforeEach(async () => {
  own = await api.organization()
  const { path, key } = own
  const url = `${path}/webhooks/endpoints`
  const body = { name: 'Shop', url: 'https://shop.example/hooks', event_types: sessionEventTypes }
  endpointId = (await api.send({ method: 'POST', url, key, body })).body.data.id
})
afterAll(() => api.stop())

async function happen(event: DomainEvent): Promise<void> {
  await api.write(own, event)
  await api.caughtUp()
}

function eventRaised(part: Partial<WebhookEventRaised> = {}) {
  api.now.ms += 1
  const data: WebhookEventRaised = {
    event_id: timeOrderedId('evt', api.now.ms, randomBytes),
    organization_id: own.organizationId,
    environment: own.environment,
    type: 'webhook.test',
    subject_type: 'webhook_endpoint',
    subject_id: endpointId,
    data: `{"object":"webhook_test","endpoint":{"id":"${endpointId}"}}`,
    created_at: api.now.ms,
    endpoint_ids: [endpointId],
    route: 'queued',
    ...part,
  }
  return { type: 'WebhookEventRaised', data } as const
}

async function raise(part?: Partial<WebhookEventRaised>): Promise<WebhookEventRaised> {
  const event = eventRaised(part)
  await happen(event)
  return event.data
}

interface Shown {
  id: string
  data: unknown
  webhook_deliveries: { status: string }[]
}

const get = (id: string, by = own) => api.send({ url: `${by.path}/events/${id}`, key: by.key })
async function list(query = '', by = own): Promise<Shown[]> {
  return (await api.send({ url: `${by.path}/events${query}`, key: by.key })).body.data
}
const idsOf = (events: Shown[]) => events.map(({ id }) => id)

test('an event has its payload as it was stored, including members of later versions', async () => {
  const data = `{"later":{"b":[1,null],"a":"\\u00fc"},"object":"webhook_test","endpoint":{"id":"${endpointId}"}}`
  const { event_id } = await raise({ data })
  const headers = { authorization: `Bearer ${own.key}` }
  const response = await api.app.inject({ url: `${own.path}/events/${event_id}`, headers })
  expect(response.body).toContain(`"data":${data.replace('\\u00fc', 'ü')},"webhook_deliveries"`)
})

test('a pending delivery is shown as delivering while an attempt is in progress', async () => {
  const [waiting, leased, done] = [await raise(), await raise(), await raise()]
  await happen({
    type: 'WebhookDeliverySkipped',
    data: {
      event_id: done.event_id,
      delivery_id: deliveryId(done.event_id),
      organization_id: own.organizationId,
      environment: own.environment,
      endpoint_id: endpointId,
      reason: 'The endpoint is disabled.',
      skipped_at: api.now.ms,
    },
  })
  for (const { event_id } of [leased, done])
    await api.pool.query(
      `insert into tidegate.webhook_leases
         (delivery_id, attempt, due_at, event_id, endpoint_id, state, owner, expires_at)
       values ($1, 1, 0, $2, $3, 'sending', 'test', extract(epoch from now()) * 1000 + 3600000)`,
      [deliveryId(event_id), event_id, endpointId],
    )
  const shown = (await list()).map(({ id, webhook_deliveries: [delivery] }) => [
    id,
    delivery?.status,
  ])
  expect(shown).toEqual([
    [done.event_id, 'skipped'],
    [leased.event_id, 'delivering'],
    [waiting.event_id, 'pending'],
  ])
  expect((await get(leased.event_id)).body.data.webhook_deliveries[0].status).toBe('delivering')
})

test('an event is found only in its own environment and by its full id, even if it was never sent', async () => {
  const unsent = await raise({ endpoint_ids: [] })
  const foreign = await raise({ environment: 'test' })
  expect(idsOf(await list())).toEqual([unsent.event_id])
  expect(await list('?type=gate.session.approved')).toEqual([])
  for (const id of [foreign.event_id, '0123456789abcdef0123456789abcdef', `w${unsent.event_id}`])
    expect((await get(id)).status).toBe(404)
})

test('a list has 50 events by default and up to 200', async () => {
  const events = Array.from({ length: 201 }, () => eventRaised({ endpoint_ids: [] }))
  await api.append(webhooksProjection, own, ...events)
  const newest = events.map(({ data }) => data.event_id).toReversed()
  expect(idsOf(await list())).toEqual(newest.slice(0, 50))
  expect(idsOf(await list('?limit=200'))).toEqual(newest.slice(0, 200))
  const tooMany = await api.send({ url: `${own.path}/events?limit=201`, key: own.key })
  expect(tooMany.status).toBe(422)
})

test('an event is no longer returned after exactly 30 days', async () => {
  const { event_id, created_at } = await raise()
  api.now.ms = created_at + webhookRetentionMs
  expect([(await get(event_id)).status, idsOf(await list())]).toEqual([200, [event_id]])
  api.now.ms += 1
  expect([(await get(event_id)).status, await list()]).toEqual([404, []])
  expect(await list(`?endpoint_id=${endpointId}`)).toEqual([])
})

test('an event that was never sent has the id and data that it would have been sent with', async () => {
  const at = api.now.ms
  const decision = (n: number) =>
    sessionScored({
      event_id: timeOrderedId('evt', at + n, randomBytes),
      session_id: timeOrderedId('sid', at, randomBytes),
      organization_id: own.organizationId,
      is_provisional: false,
      created_at: at,
      evaluated_at: at + n,
    })
  const [unsent, sent] = [decision(1), decision(2)]
  for (const data of [unsent, sent]) await happen({ type: 'SessionScored', data })
  const eventsOf = (data: typeof sent) =>
    sessionEventTypes
      .map((type) => buildDecisionEvent(data, type, at + 10))
      .toSorted((a, b) => (a.event_id < b.event_id ? 1 : -1))
  const raised = eventsOf(sent)
  for (const data of raised) await raise({ ...data, endpoint_ids: [endpointId] })

  const events = [...raised, ...eventsOf(unsent)]
  const shown = await list()
  expect(shown.map(({ id, data }) => [id, data])).toEqual(
    events.map(({ event_id, data }) => [event_id, JSON.parse(data)]),
  )
  expect(shown.map(({ webhook_deliveries: { length } }) => length)).toEqual([1, 1, 0, 0])
  for (const event of shown) expect((await get(event.id)).body.data).toEqual(event)
  const newest = raised.find(({ type }) => type === 'session.result.persisted')
  expect(idsOf(await list('?type=session.result.persisted&limit=1'))).toEqual([newest?.event_id])
  expect(idsOf(await list(`?endpoint_id=${endpointId}`))).toEqual(idsOf(shown.slice(0, 2)))

  const stranger = await api.organization()
  expect(await list('', stranger)).toEqual([])
  for (const { id } of shown) expect((await get(id, stranger)).status).toBe(404)
  api.now.ms += webhookRetentionMs + 1000
  expect(await list()).toEqual([])
})
