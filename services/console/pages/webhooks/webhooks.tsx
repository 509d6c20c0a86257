import './webhooks.css'
import type { WebhookEndpoint } from '../../../webhooks/endpoints/schemas.ts'
import type { WebhookEvent } from '../../../webhooks/events/schemas.ts'
import { useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { organizationPath } from '../shared/person.ts'
import { Loaded } from '../shell/loaded.tsx'
import { Endpoints } from './endpoints.tsx'
import { Events } from './events.tsx'

const maxEvents = 50

export function WebhooksPage({ query }: { query: URLSearchParams }) {
  const path = organizationPath()
  const endpointId = query.get('endpoint')
  const parameters = new URLSearchParams({ limit: String(maxEvents) })
  if (endpointId) parameters.set('endpoint_id', endpointId)
  const paths = { endpoints: `${path}/webhooks/endpoints`, events: `${path}/events?${parameters}` }
  const endpoints = useResponse<{ data: WebhookEndpoint[] }>(paths.endpoints, { pollMs: 60_000 })
  const events = useResponse<{ data: WebhookEvent[] }>(paths.events, { pollMs: 5000 })
  return (
    <>
      <h1>Webhooks</h1>
      <Loaded response={endpoints}>
        {({ data }) => <Endpoints endpoints={data} path={paths.endpoints} />}
      </Loaded>
      <Loaded response={events}>
        {({ data }) => (
          <Events
            events={data}
            endpoints={endpoints.data?.data ?? []}
            endpointId={endpointId}
            open={query.get('open')}
          />
        )}
      </Loaded>
      <ApiRequest paths={Object.values(paths)} />
    </>
  )
}
