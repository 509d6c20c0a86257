import type { CaughtUp } from '../../../infra/event-store/catch-up.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { WebhookMeter } from '../metrics.ts'
import { type ClaimOptions, createClaim } from './claim.ts'
import type { OnEnd } from './deliver.ts'
import { endSending } from './leases.ts'
import type { Job } from './load.ts'
import type { Take, Taken } from './taker.ts'
import { maxSending } from './window.ts'

export interface WorkOptions extends ClaimOptions {
  caughtUp: Pick<CaughtUp, 'waitUntilCaughtUp' | 'isUnchanged'>
  take: (take: Take) => Promise<Taken>
  deliver: (job: Job, onEnd: OnEnd) => Promise<void>
  clock: Clock
  meter: WebhookMeter
  /** A slot is free, and more is due than could be taken before: time to work again within so many milliseconds. */
  onFree: (withinMs: number) => void
}

/** Leases held beside those of running requests, whose records are on the way: while the log is away no more than this. */
const maxUnrecorded = 256
const pollMs = 500
/** A take costs as much for one free slot as for many, so a few wait for some more. */
const worthwhile = 8
const lingerMs = 15

/**
 * Takes what is due and starts it; returns after how many milliseconds to look again at the latest. Rejects while the
 * read models have not caught up: in a database that is filled from the log again every delivery ever made is due at
 * first, and would be made once more.
 */
export function createWork(options: WorkOptions): () => Promise<number> {
  const { pool, owner, held, windows, clock, logger, meter, monotonic = () => performance.now() } = options
  const claim = createClaim(options)
  let hasMore = false
  let freed = 0

  /** Where few are running, half of them are many. */
  const isWorthwhile = () => freed >= Math.min(worthwhile, held.sending())

  function ended(endpointId: string, id: string): OnEnd {
    return (end) => {
      windows.ended(endpointId, end)
      const isOurs = held.endSending(id)
      meter.onSending(held.sending())
      freed++
      if (hasMore) options.onFree(isWorthwhile() ? 0 : lingerMs)
      return isOurs
    }
  }

  async function make(job: Job): Promise<void> {
    const { id, endpointId } = job.delivery
    await options.deliver(job, ended(endpointId, id)).catch((err) => {
      // Nothing is known of it, so its lease runs out, and it is made again.
      logger.error({ err, deliveryId: id }, 'a webhook delivery ended in an unexpected error')
    })
    held.remove(id)
  }

  /** Tells the other processes that slots of endpoints are free, where no take does. */
  async function tellEnded(): Promise<void> {
    const deliveryIds = held.ended()
    if (deliveryIds.length === 0) return
    await endSending(pool, { owner, deliveryIds })
    held.told(deliveryIds)
  }

  async function begin(free: number): Promise<Taken> {
    const identity = await options.caughtUp.waitUntilCaughtUp()
    freed = 0
    const takenAt = monotonic()
    const ended = held.ended()
    const taken = await options.take({ free, ended })
    held.told(ended)
    const jobs = await claim({ deliveries: taken.deliveries, identity, takenAt })
    meter.onSending(held.sending())
    for (const job of jobs) void make(job)
    return taken
  }

  return async () => {
    const free = Math.min(maxSending - held.sending(), maxSending + maxUnrecorded - held.size())
    if (free <= 0) {
      await tellEnded()
      return pollMs
    }
    const taken = await begin(free)
    hasMore = taken.hasMore
    return Math.max(0, Math.min(pollMs, taken.nextAt - clock()))
  }
}
