import { storable } from '../../infra/event-store/text.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { type Column, unnest } from '../../infra/postgres/unnest.ts'
import type { WebhookDeliveryAttempted } from '../../schemas/events.ts'
import type { DeliveryState, StoredDelivery } from './evolve-delivery.ts'

/** The columns of a delivery in the table named `alias`, bigints as numbers: a `DeliveryRow`. */
export const deliveryFields = (alias: string) => `${alias}.delivery_id as id, ${alias}.event_id,
  ${alias}.endpoint_id, ${alias}.organization_id, ${alias}.environment, ${alias}.event_type, ${alias}.status,
  ${alias}.attempts, ${alias}.attempts_in_round, ${alias}.next_attempt_at::float8, ${alias}.response_status,
  ${alias}.response_body, ${alias}.error, ${alias}.created_at::float8, ${alias}.updated_at::float8`

const rowColumns: Column<StoredDelivery>[] = [
  { name: 'delivery_id', type: 'text', of: (row) => row.id },
  { name: 'event_id', type: 'text', of: (row) => row.event_id },
  { name: 'endpoint_id', type: 'text', of: (row) => row.endpoint_id },
  { name: 'organization_id', type: 'text', of: (row) => row.organization_id },
  { name: 'environment', type: 'text', of: (row) => row.environment },
  { name: 'event_type', type: 'text', of: (row) => storable(row.event_type) },
  { name: 'status', type: 'text', of: (row) => row.status },
  { name: 'attempts', type: 'integer', of: (row) => row.attempts },
  { name: 'attempts_in_round', type: 'integer', of: (row) => row.attempts_in_round },
  { name: 'next_attempt_at', type: 'bigint', of: (row) => row.next_attempt_at },
  { name: 'response_status', type: 'integer', of: (row) => row.response_status },
  { name: 'response_body', type: 'text', of: (row) => row.response_body && storable(row.response_body) },
  { name: 'error', type: 'text', of: (row) => row.error && storable(row.error) },
  { name: 'created_at', type: 'bigint', of: (row) => row.created_at },
  { name: 'updated_at', type: 'bigint', of: (row) => row.updated_at },
]
const columns: Column<DeliveryState>[] = [
  ...rowColumns.map(({ name, type, of }) => ({ name, type, of: ({ row }: DeliveryState) => of(row) })),
  {
    name: 'changes',
    type: 'text',
    of: ({ changes }) => (changes.length === 0 ? null : JSON.stringify(changes)),
  },
]

type DeliveryRecord = StoredDelivery & { changes: string | null; tried: number[]; arrived: number[] }

/** The deliveries that exist among the ids. */
export async function loadDeliveries(tx: Tx, ids: string[]): Promise<Map<string, DeliveryState>> {
  if (ids.length === 0) return new Map()
  const { rows } = await tx.query<DeliveryRecord>({
    name: 'load-webhook-deliveries',
    text: `select ${deliveryFields('d')}, d.changes,
        array(select attempt from webhook_attempts a where a.delivery_id = d.delivery_id) as tried,
        array(select attempt from webhook_attempts a where a.delivery_id = d.delivery_id and succeeded) as arrived
      from webhook_deliveries d where d.delivery_id = any($1)`,
    values: [ids],
  })
  return new Map(
    rows.map(({ changes, tried, arrived, ...row }) => [
      row.id,
      {
        row,
        tried: new Map(tried.map((attempt) => [attempt, arrived.includes(attempt)])),
        changes: changes === null ? [] : JSON.parse(changes),
        made: [],
      },
    ]),
  )
}

/** Writes deliveries whole, and the attempts made. */
export async function saveDeliveries(tx: Tx, states: DeliveryState[]): Promise<void> {
  if (states.length === 0) return
  const { names, source, values } = unnest(columns, states)
  const replaced = columns.slice(1).map(({ name }) => `${name} = excluded.${name}`)
  await tx.query({
    name: 'save-webhook-deliveries',
    text: `insert into webhook_deliveries (${names}) select * from ${source}
      on conflict (delivery_id) do update set ${replaced.join(', ')}`,
    values,
  })
  await saveAttempts(
    tx,
    states.flatMap(({ made }) => made),
  )
}

const attemptColumns: Column<WebhookDeliveryAttempted>[] = [
  { name: 'delivery_id', type: 'text', of: (data) => data.delivery_id },
  { name: 'attempt', type: 'integer', of: (data) => data.attempt },
  { name: 'endpoint_id', type: 'text', of: (data) => data.endpoint_id },
  { name: 'succeeded', type: 'boolean', of: (data) => data.outcome === 'succeeded' },
  { name: 'attempted_at', type: 'bigint', of: (data) => data.attempted_at },
]

async function saveAttempts(tx: Tx, attempts: WebhookDeliveryAttempted[]): Promise<void> {
  if (attempts.length === 0) return
  const { names, source, values } = unnest(attemptColumns, attempts)
  await tx.query({
    name: 'save-webhook-attempts',
    text: `insert into webhook_attempts (${names}) select * from ${source}
      on conflict (delivery_id, attempt) do update
        set succeeded = excluded.succeeded, attempted_at = excluded.attempted_at`,
    values,
  })
}
