import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../support/eventually.ts'
import { bodyProblems } from '../support/webhook-contract.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { type Endpoint, openWebhookWorld, type WebhookWorld } from '../support/webhook-world.ts'

interface Shown {
  id: string
  type: string
  subject: { type: string; id: string }
  data: unknown
  webhook_deliveries: { id: string; endpoint_id: string; status: string; attempts: number }[]
}

describe('a session that is scored', () => {
  let world: WebhookWorld
  let receiver: WebhookReceiver
  let endpoint: Endpoint
  beforeAll(async () => {
    world = await openWebhookWorld({
      log: 'postgres',
      roles: 'collect,api,scoring,projections,webhooks',
    })
    receiver = await startWebhookReceiver()
    endpoint = await world.createEndpoint(world.tenant, {
      url: receiver.url('/'),
      types: ['session.fingerprint.calculated', 'session.result.persisted'],
    })
    receiver.expectSignature('/', endpoint.signing_secret)
  }, 90_000)
  afterAll(async () => {
    await world?.close()
    await receiver?.close()
  })

  it('is told of by both events, as they are published, and the API shows their deliveries', async () => {
    const { owner } = world.tenant
    const [baseUrl = ''] = world.cluster.baseUrls
    const load = ['simulate', '--base-url', baseUrl, '--publishable-key', owner.publishable.key]
    const args = ['--sessions', '5', '--seed', 'webhooks', '--returning', '0', '--json']
    expect(await world.cluster.cli([...load, ...args])).toMatchObject({ code: 0 })
    await receiver.reached(10)
    const problems = receiver.requests.flatMap(({ body }) => bodyProblems(schemaOf(body), body))
    expect([...problems, ...receiver.problems]).toEqual([])
    const shown = await eventually(async () => {
      const events = await world.rest<Shown[]>(world.tenant, `/events?endpoint_id=${endpoint.id}`)
      const deliveries = events.flatMap((event) => event.webhook_deliveries)
      expect(deliveries.map((delivery) => delivery.status)).toEqual(Array(10).fill('succeeded'))
      return events
    })
    for (const event of shown) {
      expect(event.webhook_deliveries).toMatchObject([{ endpoint_id: endpoint.id, attempts: 1 }])
      const body = receiver.requests.find(({ eventId }) => eventId === event.id)?.body ?? '{}'
      expect(JSON.parse(body)).toMatchObject({ id: event.id, type: event.type, data: event.data })
      expect(await world.rest<Shown>(world.tenant, `/events/${event.id}`)).toEqual(event)
    }
    const sessions = shown.map(({ type, subject }) => `${type} ${subject.id}`)
    expect(new Set(sessions).size).toBe(10)
  }, 60_000)
})

function schemaOf(body: string) {
  const { type }: { type: string } = JSON.parse(body)
  return type === 'session.fingerprint.calculated'
    ? 'SessionFingerprintCalculatedWebhookEvent'
    : 'SessionResultPersistedWebhookEvent'
}
