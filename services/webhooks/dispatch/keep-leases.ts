import type pg from 'pg'
import type { Applied } from '../../../infra/event-store/applied.ts'
import { catchUp, lastBefore, notApplied } from '../../../infra/event-store/catch-up.ts'
import { runPeriodically } from '../../../infra/flow/periodic.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { expiredLeases, purgeRecorded, releaseLeases } from '../leases.ts'
import type { Dispatch } from './work.ts'

interface ReleaseOptions {
  pool: pg.Pool
  log: Pick<EventLog, 'endPositions' | 'partitionOf'>
  applied: Pick<Applied, 'waitFor'>
}

const topic = eventTopics.WebhookDeliveryAttempted
const projection = 'webhooks'

/**
 * Makes deliveries due again whose process died, and returns how many. An attempt that was recorded before its lease
 * expired is not made again: the lease stays until the read model has all that the log had after that. All of an event
 * is in one partition, so a partition that is stopped delays no other.
 */
export async function releaseExpired(
  { pool, log, applied }: ReleaseOptions,
  inFlight: readonly string[],
): Promise<number> {
  // 1. Find expired leases. Those of this process are renewed, though late.
  const { leases, asOf } = await expiredLeases(pool, inFlight)
  if (leases.length === 0) return 0
  // 2. Only then look where the log ends, and wait for the read model.
  const records = lastBefore(await log.endPositions(topic))
  await catchUp(pool, { applied, projection, records, timeoutMs: 1000 }).catch(() => {})
  const missing = await notApplied(pool, projection, records)
  const behind = new Set(missing.map(({ partition }) => partition))
  // 3. Release those whose partitions have caught up.
  const checked = leases.map(async ({ deliveryId, eventId }) =>
    behind.has(await log.partitionOf(topic, eventId)) ? [] : [deliveryId],
  )
  const deliveryIds = (await Promise.all(checked)).flat()
  return deliveryIds.length === 0 ? 0 : releaseLeases(pool, { deliveryIds, asOf })
}

interface KeepOptions extends ReleaseOptions {
  leaseMs: number
  work: Pick<Dispatch, 'inFlight' | 'renewLeases'>
  logger: Logger
  onReleased: () => void
}

const keepEveryMs = 1000

/** Renews the leases of this process, three times before one could expire, and clears away those that have ended. */
export function keepLeases(options: KeepOptions): { stop(): Promise<void> } {
  const { pool, leaseMs, work, logger, onReleased } = options
  const renewing = runPeriodically({
    intervalMs: leaseMs / 3,
    async work() {
      await work.renewLeases()
      return false
    },
    onError: (err) => logger.warn({ err }, 'failed to renew webhook leases; retrying'),
  })
  const clearing = runPeriodically({
    intervalMs: Math.min(keepEveryMs, leaseMs / 2),
    async work() {
      const hasMore = await purgeRecorded(pool)
      const deliveries = await releaseExpired(options, work.inFlight())
      if (deliveries > 0) {
        logger.info({ deliveries }, 'released expired webhook leases')
        onReleased()
      }
      return hasMore
    },
    onError: (err) => logger.debug({ err }, 'failed to clear webhook leases; retrying'),
  })
  return {
    async stop() {
      await Promise.all([renewing.stop(), clearing.stop()])
    },
  }
}
