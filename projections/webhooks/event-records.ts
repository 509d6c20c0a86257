import { storable } from '../../infra/event-store/text.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { type Column, unnest } from '../../infra/postgres/unnest.ts'
import type { RaisedEvent } from './evolve-delivery.ts'

/** The columns of an event in the table named `alias`, bigints as numbers: a `WebhookEventRow`. */
export const eventFields = (alias: string) => `${alias}.event_id as id, ${alias}.organization_id,
  ${alias}.environment, ${alias}.type, ${alias}.subject_type, ${alias}.subject_id, ${alias}.data,
  ${alias}.created_at::float8`

const columns: Column<RaisedEvent>[] = [
  { name: 'event_id', type: 'text', of: ({ data }) => data.event_id },
  { name: 'organization_id', type: 'text', of: ({ data }) => data.organization_id },
  { name: 'environment', type: 'text', of: ({ data }) => data.environment },
  { name: 'type', type: 'text', of: ({ data }) => storable(data.type) },
  { name: 'subject_type', type: 'text', of: ({ data }) => storable(data.subject_type) },
  { name: 'subject_id', type: 'text', of: ({ data }) => storable(data.subject_id) },
  // JSON has no bare NUL, so this changes nothing that could be sent.
  { name: 'data', type: 'text', of: ({ data }) => storable(data.data) },
  { name: 'created_at', type: 'bigint', of: ({ data }) => data.created_at },
  { name: 'log_partition', type: 'integer', of: ({ position }) => position.partition },
]

export async function insertEvents(tx: Tx, events: RaisedEvent[]): Promise<void> {
  if (events.length === 0) return
  const { names, source, values } = unnest(columns, events)
  await tx.query({
    name: 'insert-webhook-events',
    text: `insert into webhook_events (${names}) select * from ${source} on conflict do nothing`,
    values,
  })
}

/** The partition's newest time, undefined before its first event, and `created_at` of those of the events it has. */
export async function loadTimes(
  tx: Tx,
  partition: number,
  eventIds: string[],
): Promise<{ newest: number | undefined; events: Map<string, number> }> {
  const { rows } = await tx.query<{ id: string | null; at: number }>({
    name: 'load-webhook-event-times',
    text: `select null as id, newest_at::float8 as at from webhook_partition_times where log_partition = $1
      union all select event_id, created_at::float8 from webhook_events where event_id = any($2)`,
    values: [partition, eventIds],
  })
  const events = rows.flatMap(({ id, at }) => (id === null ? [] : [[id, at] as const]))
  return { newest: rows.find(({ id }) => id === null)?.at, events: new Map(events) }
}

export async function saveNewest(tx: Tx, partition: number, newest: number): Promise<void> {
  await tx.query({
    name: 'save-webhook-partition-time',
    text: `insert into webhook_partition_times (log_partition, newest_at) values ($1, $2)
      on conflict (log_partition) do update set newest_at = excluded.newest_at`,
    values: [partition, newest],
  })
}
