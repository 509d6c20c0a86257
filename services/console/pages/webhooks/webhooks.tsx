import './webhooks.css'
import { useAnswer } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { organizationPath } from '../shared/person.ts'
import type { ApiEndpoint, ApiEvent } from '../shared/types.ts'
import { Loaded } from '../shell/states.tsx'
import { Endpoints } from './endpoints.tsx'
import { Events } from './events.tsx'

const listedEvents = 50

/** Where events are sent, what was sent, and what came back. */
export function WebhooksPage({ query }: { query: URLSearchParams }) {
  const path = organizationPath()
  const chosen = query.get('endpoint')
  const parameters = new URLSearchParams({ limit: String(listedEvents) })
  if (chosen) parameters.set('endpoint_id', chosen)
  const paths = { endpoints: `${path}/webhooks/endpoints`, events: `${path}/events?${parameters}` }
  const endpoints = useAnswer<{ data: ApiEndpoint[] }>(paths.endpoints, { everyMs: 60_000 })
  const events = useAnswer<{ data: ApiEvent[] }>(paths.events, { everyMs: 5000 })
  return (
    <>
      <h1>Webhooks</h1>
      <Loaded answer={endpoints}>
        {({ data }) => (
          <Endpoints
            endpoints={data}
            path={paths.endpoints}
            changed={() => {
              endpoints.reload()
              events.reload()
            }}
          />
        )}
      </Loaded>
      <Loaded answer={events}>
        {({ data }) => (
          <Events
            events={data}
            endpoints={endpoints.data?.data ?? []}
            chosen={chosen}
            open={query.get('open')}
          />
        )}
      </Loaded>
      <ApiRequest paths={Object.values(paths)} />
    </>
  )
}
