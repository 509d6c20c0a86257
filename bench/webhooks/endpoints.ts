import type { SubscribableType } from '../../infra/wire/webhooks/events.ts'
import type { Child } from '../child.ts'
import type { Environment } from '../environment.ts'

export interface Endpoints {
  organizationId: string
  /** The first is told of results; the others of what nothing in the bench makes. */
  ids: string[]
  secret: string
  disable(): Promise<void>
}

/** As many as an organization can have; each has at most ten deliveries under way. */
const count = 20

interface Places {
  environment: Environment
  /** A process with the role `api`. */
  api: Child
  receiver: Child
}

/** Endpoints of the development organization, all at the one receiver. */
export async function createEndpoints({ environment, api, receiver }: Places): Promise<Endpoints> {
  const { live, organization_id: organizationId } = await environment.credentials()
  const path = `${api.url}/v1/organizations/${organizationId}/webhooks/endpoints`

  async function send<Data>(method: string, url: string, body?: unknown): Promise<Data> {
    const headers = {
      authorization: `Bearer ${live.secret_key}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    }
    const response = await fetch(url, {
      method,
      headers,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    if (!response.ok)
      throw new Error(`${method} ${url}: ${response.status} ${await response.text()}`)
    const { data }: { data: Data } = JSON.parse(await response.text())
    return data
  }

  const created: { id: string; signing_secret: string }[] = []
  for (let i = 0; i < count; i++) {
    const type: SubscribableType = i === 0 ? 'session.result.persisted' : 'gate.session.approved'
    created.push(
      await send('POST', path, {
        name: `Bench ${i}`,
        url: `${receiver.url}/${i}`,
        event_types: [type],
      }),
    )
  }
  return {
    organizationId,
    ids: created.map(({ id }) => id),
    secret: created[0]?.signing_secret ?? '',
    async disable() {
      for (const { id } of created) await send('DELETE', `${path}/${id}`)
    },
  }
}
