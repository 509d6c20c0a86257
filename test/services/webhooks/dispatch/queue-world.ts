import { randomBytes } from 'node:crypto'
import { createTestDatabase } from '../../../support/postgres.ts'

export const hex = (bytes: number) => randomBytes(bytes).toString('hex')

export interface DueRows {
  endpointId: string
  count: number
  /** When they are due (epoch milliseconds), one millisecond apart. */
  dueAt: number
}

/** A delivery as the read model shows it. */
export interface Shown {
  status?: 'pending' | 'succeeded' | 'failed' | 'skipped'
  attempts?: number
  nextAttemptAt?: number | null
}

export type QueueWorld = Awaited<ReturnType<typeof openQueueWorld>>

/** The read model's tables and the queue, filled by hand: what taking does depends on rows alone. */
export async function openQueueWorld() {
  const database = await createTestDatabase()
  const { pool } = database
  const { rows } = await pool.query<{ schema: string }>(
    `select schema_name as schema from tidegate.projection_builds where projection = 'webhooks' and status = 'live'`,
  )
  const schema = rows[0]?.schema ?? ''

  /** Deliveries `${endpointId}/1` and on, which the read model shows and nobody has queued. */
  async function show({ endpointId, count, dueAt }: DueRows): Promise<void> {
    await pool.query(
      `insert into ${schema}.webhook_deliveries (delivery_id, event_id, endpoint_id, organization_id, environment,
         event_type, status, attempts, attempts_in_round, next_attempt_at, created_at, updated_at)
       select $1 || '/' || n, 'evt_' || n, $1, 'org', 'live', 'webhook.test', 'pending', 0, 0, $3::bigint + n, $3, $3
       from generate_series(1, $2::integer) n`,
      [endpointId, count, dueAt],
    )
  }

  async function queue({ endpointId, count, dueAt }: DueRows): Promise<void> {
    await pool.query(
      `insert into tidegate.webhook_queue (delivery_id, endpoint_id, organization_id, due_at, attempts)
       select $1 || '/' || n, $1, 'org', $3::bigint + n, 0 from generate_series(1, $2::integer) n`,
      [endpointId, count, dueAt],
    )
  }

  return {
    pool,
    show,
    queue,
    async due(rows: DueRows): Promise<void> {
      await show(rows)
      await queue(rows)
    },
    /** As the projection does when it applies what happened. */
    async apply(deliveryId: string, shown: Shown): Promise<void> {
      const { status = 'pending', attempts = 0, nextAttemptAt = null } = shown
      await pool.query(
        `update ${schema}.webhook_deliveries set status = $2, attempts = $3, next_attempt_at = $4
         where delivery_id = $1`,
        [deliveryId, status, attempts, nextAttemptAt],
      )
    },
    async inFlight(): Promise<string[]> {
      const { rows: found } = await pool.query<{ delivery_id: string }>(
        'select delivery_id from tidegate.webhook_queue where owner is not null order by 1',
      )
      return found.map(({ delivery_id }) => delivery_id)
    },
    async rows(): Promise<
      Record<string, { dueAt: number; attempts: number; owner: string | null }>
    > {
      const { rows: found } = await pool.query<{
        id: string
        row: { dueAt: number; attempts: number; owner: string }
      }>(
        `select delivery_id as id, json_build_object('dueAt', due_at, 'attempts', attempts, 'owner', owner) as row
         from tidegate.webhook_queue order by 1`,
      )
      return Object.fromEntries(found.map(({ id, row }) => [id, row]))
    },
    close: () => database.drop(),
  }
}
