import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Cluster, type Endpoint, startCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import { bodyProblems } from '../support/webhook-contract.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'
import { fastWebhooks } from '../support/webhook-world.ts'

interface Shown {
  id: string
  type: string
  subject: { type: string; id: string }
  data: unknown
  webhook_deliveries: { id: string; endpoint_id: string; status: string; attempts: number }[]
}

describe('a session that is scored', () => {
  let cluster: Cluster
  let receiver: WebhookReceiver
  let endpoint: Endpoint
  beforeAll(async () => {
    const roles = 'collect,api,scoring,projections,webhooks'
    cluster = await startCluster({ roles, env: fastWebhooks })
    receiver = await startWebhookReceiver()
    const types = ['session.fingerprint.calculated', 'session.result.persisted']
    endpoint = await cluster.createEndpoint(receiver.url('/'), types)
    receiver.expectSignature('/', endpoint.signing_secret)
  }, 90_000)
  afterAll(async () => {
    await cluster?.stop()
    await receiver?.close()
  })

  it('is told of by both events, as they are published, and the API shows their deliveries', async () => {
    const { baseUrl, owner } = cluster
    const load = ['simulate', '--base-url', baseUrl, '--publishable-key', owner.publishable.key]
    const args = ['--sessions', '5', '--seed', 'webhooks', '--returning', '0', '--json']
    expect(await cluster.cli([...load, ...args])).toMatchObject({ code: 0 })
    await receiver.reached(10)
    const problems = receiver.requests.flatMap(({ body }) => bodyProblems(schemaOf(body), body))
    expect([...problems, ...receiver.problems]).toEqual([])
    const path = `/v1/organizations/${owner.organizationId}/events`
    const shown = await eventually(async () => {
      const events = await cluster.read<Shown[]>(`${path}?endpoint_id=${endpoint.id}`)
      const deliveries = events.flatMap((event) => event.webhook_deliveries)
      expect(deliveries.map((delivery) => delivery.status)).toEqual(Array(10).fill('succeeded'))
      return events
    })
    for (const event of shown) {
      expect(event.webhook_deliveries).toMatchObject([{ endpoint_id: endpoint.id, attempts: 1 }])
      const body = receiver.requests.find(({ eventId }) => eventId === event.id)?.body ?? '{}'
      expect(JSON.parse(body)).toMatchObject({ id: event.id, type: event.type, data: event.data })
      expect(await cluster.read<Shown>(`${path}/${event.id}`)).toEqual(event)
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
