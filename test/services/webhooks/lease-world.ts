import { randomBytes } from 'node:crypto'
import type { DeliveryRow } from '../../../projections/webhooks/tables.ts'
import { createTestDatabase } from '../../support/postgres.ts'

export const hex = (bytes: number) => randomBytes(bytes).toString('hex')

export type LeaseWorld = Awaited<ReturnType<typeof openLeaseWorld>>

/** Leases, and tables of the read model that tests fill directly. */
export async function openLeaseWorld() {
  const database = await createTestDatabase()
  const { pool } = database
  const { rows } = await pool.query<{ schema: string }>(
    `select schema_name as schema from tidegate.projection_builds where projection = 'webhooks' and status = 'live'`,
  )
  const schema = rows[0]?.schema ?? ''

  return {
    pool,
    schema,
    /** Inserts deliveries `${endpointId}/1` and so on, due one millisecond apart from `dueAt` (epoch milliseconds). */
    async show(due: { endpointId: string; count: number; dueAt: number }): Promise<void> {
      await pool.query(
        `insert into ${schema}.webhook_deliveries (delivery_id, event_id, endpoint_id, organization_id, environment,
           event_type, status, attempts, attempts_in_round, next_attempt_at, created_at, updated_at)
         select $1 || '/' || n, 'evt_' || n, $1, 'org', 'live', 'webhook.test', 'pending', 0, 0, $3::bigint + n, $3, $3
         from generate_series(1, $2::integer) n`,
        [due.endpointId, due.count, due.dueAt],
      )
    },
    /** Updates the delivery as the projection would. */
    async apply(
      deliveryId: string,
      {
        status = 'pending',
        attempts = 0,
        nextAttemptAt = null,
      }: { status?: DeliveryRow['status']; attempts?: number; nextAttemptAt?: number | null },
    ): Promise<void> {
      await pool.query(
        `update ${schema}.webhook_deliveries set status = $2, attempts = $3, next_attempt_at = $4
         where delivery_id = $1`,
        [deliveryId, status, attempts, nextAttemptAt],
      )
    },
    /** Returns the leases as `delivery attempt state`. */
    async leases(): Promise<string[]> {
      const { rows: found } = await pool.query<{ lease: string }>(
        `select concat_ws(' ', delivery_id, attempt, state) as lease from tidegate.webhook_leases order by 1`,
      )
      return found.map(({ lease }) => lease)
    },
    close: () => database.drop(),
  }
}
