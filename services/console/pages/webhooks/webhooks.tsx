import './webhooks.css'
import type { WebhookEndpoint } from '../../../webhooks/endpoints/schemas.ts'
import type { WebhookEvent } from '../../../webhooks/events/schemas.ts'
import { useAnswer } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { organizationPath } from '../shared/person.ts'
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
  const endpoints = useAnswer<{ data: WebhookEndpoint[] }>(paths.endpoints, { everyMs: 60_000 })
  const events = useAnswer<{ data: WebhookEvent[] }>(paths.events, { everyMs: 5000 })
  return (
    <>
      <h1>Webhooks</h1>
      <Loaded answer={endpoints}>
        {({ data }) => <Endpoints endpoints={data} path={paths.endpoints} />}
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
