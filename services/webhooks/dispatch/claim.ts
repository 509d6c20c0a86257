import type pg from 'pg'
import type { CaughtUp } from '../../../infra/event-store/catch-up.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import type { HeldLeases } from './held.ts'
import { abandonLeases } from './leases.ts'
import { type Job, loadJobs } from './load.ts'
import type { LeasedDelivery } from './take.ts'
import type { Windows } from './window.ts'

export interface ClaimOptions {
  pool: pg.Pool
  owner: string
  leaseMs: number
  held: HeldLeases
  windows: Windows
  caughtUp: Pick<CaughtUp, 'isUnchanged'>
  logger: Logger
  /** Nothing is begun any more. */
  signal: AbortSignal
  /** A monotonic clock in milliseconds; default: the process's. */
  monotonic?: (() => number) | undefined
}

export interface ClaimRequest {
  deliveries: LeasedDelivery[]
  /** The database's, as of before they were taken. */
  identity: string
  /** When the take began, by the monotonic clock. */
  takenAt: number
}

/** Of what was taken, what is to be begun now, at once; the rest is not held any more. */
export type Claim = (request: ClaimRequest) => Promise<Job[]>

/**
 * Looks at what was leased before anything of it is sent. It goes back when the database is not the one that had caught
 * up: there deliveries made long ago may look due. It goes back too when half the lease has passed, as in a process
 * that was stopped meanwhile: somebody else may have made the delivery since.
 */
export function createClaim({ monotonic = () => performance.now(), ...options }: ClaimOptions): Claim {
  const { pool, owner, leaseMs, held, windows, caughtUp, logger, signal } = options

  function hold({ id, endpointId }: LeasedDelivery): void {
    held.add(id)
    windows.began(endpointId)
  }

  function letGo({ id, endpointId }: LeasedDelivery): void {
    held.remove(id)
    windows.ended(endpointId)
  }

  async function giveBack(deliveries: LeasedDelivery[]): Promise<void> {
    deliveries.forEach(letGo)
    await abandonLeases(pool, { owner, deliveryIds: deliveries.map(({ id }) => id) })
  }

  /** Its lease is kept and not renewed, so that it is looked at again when that has expired, and not before. */
  function leave(delivery: LeasedDelivery): void {
    const { id: deliveryId, eventId, endpointId, organizationId } = delivery
    const line = { organizationId, eventId, deliveryId, endpointId }
    logger.warn(line, 'a webhook waits: the read model does not show its event, endpoint or organization')
    letGo(delivery)
  }

  async function jobsIfOurs(fresh: LeasedDelivery[], request: ClaimRequest): Promise<Job[] | undefined> {
    const jobs = await loadJobs(pool, fresh)
    // Asked last: the database may have gone back before what was just read.
    const isStill = await caughtUp.isUnchanged(request.identity)
    const isFresh = monotonic() - request.takenAt < leaseMs / 2
    return isStill && isFresh && !signal.aborted ? jobs : undefined
  }

  return async (request) => {
    // A lease that expired while its request goes on may come back to its owner.
    const fresh = request.deliveries.filter(({ id }) => !held.has(id))
    if (fresh.length === 0) return []
    fresh.forEach(hold)
    const jobs = await jobsIfOurs(fresh, request).catch(async (error) => {
      await giveBack(fresh)
      throw error
    })
    if (!jobs) {
      await giveBack(fresh)
      return []
    }
    const known = new Set(jobs.map(({ delivery }) => delivery.id))
    for (const delivery of fresh) if (!known.has(delivery.id)) leave(delivery)
    return jobs
  }
}
