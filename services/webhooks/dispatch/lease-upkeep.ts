import type pg from 'pg'
import type { AppliedOffsets } from '../../../infra/event-store/applied.ts'
import {
  findUnapplied,
  lastPositions,
  waitForRecords,
} from '../../../infra/event-store/catch-up.ts'
import { runPeriodically } from '../../../infra/flow/periodic.ts'
import type { EventLog } from '../../../infra/log/port.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { eventTopics } from '../../../schemas/events.ts'
import { findExpiredLeases, purgeRecorded, releaseLeases } from '../leases.ts'
import type { Dispatch } from './dispatch.ts'

/*
 * Lease upkeep:
 *
 * - The renewal extends the leases of deliveries in flight in this process.
 * - The reaper releases expired leases of any process, so that the deliveries of a dead process are due again.
 * - The purge deletes leases of recorded attempts once the read model has the attempts.
 */

interface ReapOptions {
  pool: pg.Pool
  log: Pick<EventLog, 'endPositions' | 'partitionOf'>
  applied: Pick<AppliedOffsets, 'waitFor'>
}

const topic = eventTopics.WebhookDeliveryAttempted
const projection = 'webhooks'

/**
 * Releases expired leases and returns their number. A lease is released only after the read model has applied the
 * records that the log had when the lease was found, so that an attempt recorded by then is not repeated. A stuck
 * partition delays only the deliveries of its own events.
 */
export async function reapExpiredLeases(
  { pool, log, applied }: ReapOptions,
  inFlight: readonly string[],
): Promise<number> {
  // 1. Find expired leases, except those of this process, which renews them.
  const { leases, asOf } = await findExpiredLeases(pool, inFlight)
  if (leases.length === 0) return 0
  // 2. Only then read the end of the log, and wait for the read model to reach it.
  const records = lastPositions(await log.endPositions(topic))
  await waitForRecords(pool, { applied, projection, records, timeoutMs: 1000 }).catch(() => {})
  const missing = await findUnapplied(pool, projection, records)
  const behind = new Set(missing.map(({ partition }) => partition))
  // 3. Release the leases whose partitions have caught up.
  const releasable = leases.map(async ({ deliveryId, eventId }) =>
    behind.has(await log.partitionOf(topic, eventId)) ? [] : [deliveryId],
  )
  const deliveryIds = (await Promise.all(releasable)).flat()
  return deliveryIds.length === 0 ? 0 : releaseLeases(pool, { deliveryIds, asOf })
}

interface LeaseUpkeepOptions extends ReapOptions {
  leaseMs: number
  dispatch: Pick<Dispatch, 'inFlight' | 'renewLeases'>
  logger: Logger
  onReleased: () => void
}

const reapIntervalMs = 1000

/** Starts the renewal, the reaper and the purge. Leases are renewed three times per lease duration. */
export function maintainLeases(options: LeaseUpkeepOptions): { stop(): Promise<void> } {
  const { pool, leaseMs, dispatch, logger, onReleased } = options
  const renewal = runPeriodically({
    intervalMs: leaseMs / 3,
    work: dispatch.renewLeases,
    onError: (err) => logger.warn({ err }, 'failed to renew webhook leases; retrying'),
  })
  const reaper = runPeriodically({
    intervalMs: Math.min(reapIntervalMs, leaseMs / 2),
    async work() {
      const hasMore = await purgeRecorded(pool)
      const deliveries = await reapExpiredLeases(options, dispatch.inFlight())
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
      await Promise.all([renewal.stop(), reaper.stop()])
    },
  }
}
