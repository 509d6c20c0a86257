import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { EventLog, Position } from '../../../infra/log/port.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import type { Applied } from '../../../projections/applied.ts'
import { catchUp, lastBefore } from '../../../projections/catch-up.ts'
import { eventTopics } from '../../../schemas/events.ts'

export interface CaughtUpOptions {
  pool: pg.Pool
  log: Pick<EventLog, 'endPositions'>
  applied: Pick<Applied, 'waitFor'>
  logger: Logger
  /** Ends the wait. */
  signal: AbortSignal
}

/** The organizations too: a delivery is skipped where its organization is not active. */
const readModels = [
  { projection: 'webhooks', topic: eventTopics.WebhookDeliveryAttempted },
  { projection: 'organizations', topic: eventTopics.OrganizationCreated },
]
const retryMs = 500

/**
 * Resolves when the read models show all that the log has now, false when that was aborted. In a database that is
 * filled from the log again every delivery ever made is due at first, and would be made once more.
 */
export async function caughtUp({ pool, log, applied, logger, signal }: CaughtUpOptions): Promise<boolean> {
  for (const { projection, topic } of readModels) {
    let records: Position[] | undefined
    let failures = 0
    const isShown = async () => {
      // Read once: records that come later are nothing to wait for.
      records ??= lastBefore(await log.endPositions(topic))
      await catchUp(pool, { applied, projection, records, timeoutMs: retryMs })
      return true
    }
    const onFailure = (err: unknown) => {
      if (failures++ === 0)
        logger.info({ err, projection }, 'webhooks wait until the read model shows the whole log')
      return false
    }
    while (!signal.aborted && !(await isShown().catch(onFailure))) {
      await delay(retryMs, undefined, { signal }).catch(() => {})
    }
  }
  return !signal.aborted
}
