import type pg from 'pg'
import type { EventLog } from '../../../infra/log/port.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { runPeriodically } from '../../../infra/timing.ts'
import type { HeldLeases } from './held.ts'
import { renewLeases } from './leases.ts'
import { createReaper, type Reap } from './reaper.ts'

export interface KeepLeasesOptions {
  pool: pg.Pool
  log: Pick<EventLog, 'endPositions' | 'partitionOf'>
  owner: string
  leaseMs: number
  held: HeldLeases
  logger: Logger
  /** Deliveries of somebody who died can be taken. */
  onReaped: () => void
}

const reapEveryMs = 1000

/** Renews the leases held, three times before one could expire, and frees those that others left behind. */
export function keepLeases(options: KeepLeasesOptions): { stop(): Promise<void> } {
  const { logger, leaseMs } = options
  const reap = createReaper(options)
  const renewing = runPeriodically({
    intervalMs: leaseMs / 3,
    look: () => renew(options),
    onError: (err) => logger.warn({ err }, 'webhook leases not renewed, trying again'),
  })
  const reaping = runPeriodically({
    intervalMs: Math.min(reapEveryMs, leaseMs / 2),
    look: () => free(reap, options),
    onError: (err) => logger.debug({ err }, 'expired webhook leases not freed, trying again'),
  })
  return {
    async stop() {
      await Promise.all([renewing.stop(), reaping.stop()])
    },
  }
}

async function renew({ pool, owner, leaseMs, held, logger }: KeepLeasesOptions): Promise<boolean> {
  const deliveryIds = held.ids()
  if (deliveryIds.length === 0) return false
  const renewed = await renewLeases(pool, { owner, deliveryIds, leaseMs })
  // One given back meanwhile is not held any more either.
  const lost = deliveryIds.filter((id) => !renewed.has(id) && held.has(id))
  if (lost.length > 0)
    logger.warn({ leases: lost.length }, 'webhook leases expired, deliveries may be made twice')
  return false
}

async function free(
  reap: Reap,
  { held, logger, onReaped }: Pick<KeepLeasesOptions, 'held' | 'logger' | 'onReaped'>,
): Promise<boolean> {
  const freed = await reap({ except: held.ids() })
  if (freed === 0) return false
  logger.info({ leases: freed }, 'expired webhook leases freed')
  onReaped()
  return false
}
