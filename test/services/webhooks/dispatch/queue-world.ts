import { randomBytes } from 'node:crypto'
import { createTestDatabase } from '../../../support/postgres.ts'

export const hex = (bytes: number) => randomBytes(bytes).toString('hex')

export interface DueRows {
  endpointId: string
  count: number
  /** When they are due (epoch milliseconds), one millisecond apart. */
  dueAt: number
}

export type QueueWorld = Awaited<ReturnType<typeof openQueueWorld>>

/** The read model's tables, filled by hand: what receiving does depends on rows alone. */
export async function openQueueWorld() {
  const database = await createTestDatabase()
  const { pool } = database
  const { rows } = await pool.query<{ schema: string }>(
    `select schema_name as schema from tidegate.projection_builds where projection = 'webhooks' and status = 'live'`,
  )
  const schema = rows[0]?.schema ?? ''

  return {
    pool,
    async due({ endpointId, count, dueAt }: DueRows): Promise<void> {
      await pool.query(
        `insert into ${schema}.webhook_deliveries (delivery_id, event_id, endpoint_id, organization_id, environment,
           event_type, status, attempts, attempts_in_round, next_attempt_at, created_at, updated_at)
         select $1 || '/' || n, 'evt_' || n, $1, 'org', 'live', 'webhook.test', 'pending', 0, 0, $3::bigint + n, $3, $3
         from generate_series(1, $2::integer) n`,
        [endpointId, count, dueAt],
      )
    },
    /** As the projection does when an attempt has ended the delivery. */
    async finish(deliveryIds: string[]): Promise<void> {
      await pool.query(
        `update ${schema}.webhook_deliveries set status = 'succeeded', next_attempt_at = null where delivery_id = any($1)`,
        [deliveryIds],
      )
    },
    async appliedUpTo(partition: number, nextOffset: number): Promise<void> {
      await pool.query(
        `insert into tidegate.projection_offsets (projection, build, topic, partition, next_offset)
         select projection, build, 'tidegate.webhooks.v1', $1, $2 from tidegate.projection_builds
         where projection = 'webhooks' and status = 'live'
         on conflict (projection, build, topic, partition) do update set next_offset = excluded.next_offset`,
        [partition, nextOffset],
      )
    },
    async inFlight(): Promise<string[]> {
      const { rows: found } = await pool.query<{ delivery_id: string }>(
        'select delivery_id from tidegate.webhook_leases order by 1',
      )
      return found.map(({ delivery_id }) => delivery_id)
    },
    close: () => database.drop(),
  }
}
