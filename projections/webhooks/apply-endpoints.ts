import type { Tx } from '../../infra/postgres/pool.ts'
import { loadEndpoints, saveEndpoints } from './endpoint-records.ts'
import { type EndpointEvent, evolveEndpoint } from './evolve-endpoint.ts'

/**
 * Loads the endpoints that the events touch, evolves them, writes them back whole. Event ids met before are dropped,
 * so a repeat cannot bring an old URL or status back.
 */
export async function applyEndpointEvents(tx: Tx, events: EndpointEvent[]): Promise<void> {
  const fresh = await newEvents(tx, events)
  if (fresh.length === 0) return
  const endpoints = await loadEndpoints(
    tx,
    fresh.map(({ data }) => data.endpoint_id),
  )
  for (const event of fresh) {
    const next = evolveEndpoint(endpoints.get(event.data.endpoint_id), event)
    if (next) endpoints.set(next.id, next)
  }
  await saveEndpoints(tx, [...endpoints.values()])
}

async function newEvents(tx: Tx, events: EndpointEvent[]): Promise<EndpointEvent[]> {
  const { rows } = await tx.query<{ event_id: string }>(
    `insert into webhook_applied_events select * from unnest($1::text[])
     on conflict do nothing returning event_id`,
    [events.map(({ meta }) => meta.eventId)],
  )
  const fresh = new Set(rows.map((row) => row.event_id))
  // delete makes a second event of the same id within the batch a repeat, too.
  return events.filter(({ meta }) => fresh.delete(meta.eventId))
}
