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
import type { Dispatch } from './work.ts'

/*
 * Lease upkeep, in three parts:
 *
 * - renewal extends the leases of the deliveries in flight in this process;
 * - the reaper releases expired leases of any process, so that the deliveries of a dead process are due again;
 * - the purge deletes leases of recorded attempts once the read model shows the attempts.
 *
 * A lease is released only after the read model has caught up with the log, which may hold the attempt's outcome.
 */

interface ReapOptions {
  pool: pg.Pool
  log: Pick<EventLog, 'endPositions' | 'partitionOf'>
  applied: Pick<AppliedOffsets, 'waitFor'>
}

const topic = eventTopics.WebhookDeliveryAttempted
const projection = 'webhooks'

/**
 * Releases expired leases, so that their deliveries are due again, and returns how many. An attempt that was recorded
 * before its lease expired is not repeated: the lease is kept until the read model has applied every record that the
 * log had then. All records of an event are in one partition, so a stuck partition delays only its own events.
 */
export async function reapExpiredLeases(
  { pool, log, applied }: ReapOptions,
  inFlight: readonly string[],
): Promise<number> {
  // 1. Find expired leases, except of deliveries in flight here, whose leases will still be renewed.
  const { leases, asOf } = await findExpiredLeases(pool, inFlight)
  if (leases.length === 0) return 0
  // 2. Read the end of the log, which must come after step 1, and wait for the read model to reach it.
  const records = lastPositions(await log.endPositions(topic))
  await waitForRecords(pool, { applied, projection, records, timeoutMs: 1000 }).catch(() => {})
  const missing = await findUnapplied(pool, projection, records)
  const behind = new Set(missing.map(({ partition }) => partition))
  // 3. Release those whose partitions have caught up.
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

/** Renews the leases of this process at a third of their time, reaps expired leases and purges recorded ones. */
export function maintainLeases(options: LeaseUpkeepOptions): { stop(): Promise<void> } {
  const { pool, leaseMs, dispatch, logger, onReleased } = options
  const renewal = runPeriodically({
    intervalMs: leaseMs / 3,
    async work() {
      await dispatch.renewLeases()
      return false
    },
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
