import type { WebhookEndpoint } from '../../../webhooks/endpoints/schemas.ts'
import { useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { useFilteredPath } from '../shared/list-filters.tsx'
import { hasScope, organizationPath } from '../shared/person.ts'
import { Loaded } from '../shell/loaded.tsx'
import { Deliveries } from './deliveries.tsx'
import { addEndpoint } from './endpoint-actions.tsx'
import { Endpoints } from './endpoints.tsx'
import { EventDrawer } from './event-drawer.tsx'
import { Events } from './events.tsx'

const deliveryFilters = ['endpoint_id', 'status', 'type']

export function WebhooksPage({ query }: { query: URLSearchParams }) {
  const path = organizationPath()
  const endpointId = query.get('endpoint_id')
  const open = query.get('open')
  const endpointsPath = `${path}/webhooks/endpoints`
  const deliveriesPath = useFilteredPath(`${path}/webhooks/deliveries`, query, deliveryFilters)
  const listPath = endpointId ? deliveriesPath : `${path}/events?limit=50`
  const endpoints = useResponse<{ data: WebhookEndpoint[] }>(endpointsPath, { pollMs: 10_000 })
  const find = (id: string | null) => endpoints.data?.data.find((endpoint) => endpoint.id === id)
  const chosen = find(endpointId)
  return (
    <>
      <div class="title">
        <h1>Webhooks</h1>
        {hasScope('webhooks:manage') && (
          <button type="button" class="button" onClick={() => addEndpoint(endpointsPath)}>
            Add endpoint
          </button>
        )}
      </div>
      <Loaded response={endpoints}>
        {({ data }) => <Endpoints endpoints={chosen ? [chosen] : data} listPath={endpointsPath} />}
      </Loaded>
      {endpointId ? (
        <Deliveries path={listPath} name={chosen?.name ?? endpointId} query={query} open={open} />
      ) : (
        <Events path={listPath} open={open} />
      )}
      {open && (
        <EventDrawer
          key={open}
          path={`${path}/events/${encodeURIComponent(open)}`}
          nameOf={(id) => find(id)?.name ?? id}
        />
      )}
      <ApiRequest paths={[endpointsPath, listPath]} />
    </>
  )
}
