import type { WebhookEndpoint } from '../../../webhooks/endpoints/schemas.ts'
import type { WebhookEvent } from '../../../webhooks/events/schemas.ts'
import { useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { hasScope, organizationPath } from '../shared/person.ts'
import { Loaded } from '../shell/loaded.tsx'
import { AddEndpoint } from './endpoint-actions.tsx'
import { Endpoints } from './endpoints.tsx'
import { EventDrawer } from './event-drawer.tsx'
import { Events } from './events.tsx'

const maxEvents = 50

export function WebhooksPage({ query }: { query: URLSearchParams }) {
  const path = organizationPath()
  const endpointId = query.get('endpoint')
  const open = query.get('open')
  const parameters = new URLSearchParams({ limit: String(maxEvents) })
  if (endpointId) parameters.set('endpoint_id', endpointId)
  const paths = { endpoints: `${path}/webhooks/endpoints`, events: `${path}/events?${parameters}` }
  const endpoints = useResponse<{ data: WebhookEndpoint[] }>(paths.endpoints, { pollMs: 10_000 })
  const events = useResponse<{ data: WebhookEvent[] }>(paths.events, { pollMs: 5000 })
  const nameOf = (id: string) =>
    endpoints.data?.data.find((endpoint) => endpoint.id === id)?.name ?? id
  return (
    <>
      <div class="title">
        <h1>Webhooks</h1>
        {hasScope('webhooks:manage') && <AddEndpoint listPath={paths.endpoints} />}
      </div>
      <Loaded response={endpoints}>
        {({ data }) => <Endpoints endpoints={data} listPath={paths.endpoints} />}
      </Loaded>
      <Loaded response={events} lines={8}>
        {({ data }) => (
          <Events events={data} endpointName={endpointId && nameOf(endpointId)} open={open} />
        )}
      </Loaded>
      {open && (
        <EventDrawer
          key={open}
          path={`${path}/events/${encodeURIComponent(open)}`}
          nameOf={nameOf}
        />
      )}
      <ApiRequest paths={Object.values(paths)} />
    </>
  )
}
