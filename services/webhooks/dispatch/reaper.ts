import type pg from 'pg'
import type { EventLog } from '../../../infra/log/port.ts'
import { transaction } from '../../../infra/postgres/pool.ts'
import type { Applied } from '../../../projections/applied.ts'
import { catchUp, lastBefore } from '../../../projections/catch-up.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { deleteExpired, expiredLeases } from './leases.ts'

export interface ReapOptions {
  pool: pg.Pool
  log: Pick<EventLog, 'endPositions'>
  applied: Pick<Applied, 'waitFor'>
}

export interface ReapRequest {
  /** Deliveries that this process itself is making: it knows that they are not abandoned. */
  except: string[]
  timeoutMs?: number
}

/**
 * Frees deliveries whose dispatcher has died, and returns how many. Before that the read model must show what the log
 * had when the leases were seen expired: the dead dispatcher may have sent a delivery and recorded that, and until its
 * record is applied the delivery still looks due. Rejects while the read model is too far behind; the leases stay.
 */
export async function reapLeases(
  { pool, log, applied }: ReapOptions,
  { except, timeoutMs = 5000 }: ReapRequest,
): Promise<number> {
  const expired = await expiredLeases(pool, { except })
  if (expired.length === 0) return 0
  const records = lastBefore(await log.endPositions(eventTopics.WebhookDeliveryAttempted))
  // On one connection: it ends with a Postgres that crashes, so nothing is deleted by what is no longer shown.
  return transaction(pool, async (tx) => {
    await catchUp(tx, { applied, projection: 'webhooks', records, timeoutMs })
    return deleteExpired(tx, expired)
  })
}
