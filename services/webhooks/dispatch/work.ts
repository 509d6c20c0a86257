import type pg from 'pg'
import type { Clock } from '../../../infra/ids.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import type { WebhookMeter } from '../../../infra/webhooks/metrics.ts'
import type { OnEnd } from './deliver.ts'
import type { HeldLeases } from './held.ts'
import { abandonLeases } from './leases.ts'
import { type Job, loadJobs } from './load.ts'
import type { LeasedDelivery } from './take.ts'
import type { Take, Taken } from './taker.ts'
import { maxSending, type Windows } from './window.ts'

export interface WorkOptions {
  pool: pg.Pool
  owner: string
  held: HeldLeases
  windows: Windows
  take: (take: Take) => Promise<Taken>
  deliver: (job: Job, onEnd: OnEnd) => Promise<void>
  clock: Clock
  logger: Logger
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

/** Takes what is due and starts it; returns after how many milliseconds to look again at the latest. */
export function createWork(options: WorkOptions): () => Promise<number> {
  const { pool, owner, held, windows, clock, logger, meter } = options
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

  async function start(deliveries: LeasedDelivery[]): Promise<void> {
    // A lease that expired while its request goes on may come back to its owner.
    const fresh = deliveries.filter(({ id }) => !held.has(id))
    for (const { id, endpointId } of fresh) {
      held.add(id)
      windows.began(endpointId)
    }
    const jobs = await loadJobs(pool, fresh).catch(async (error) => {
      await giveBack(fresh)
      throw error
    })
    const known = new Set(jobs.map(({ delivery }) => delivery.id))
    await giveBack(fresh.filter(({ id }) => !known.has(id)))
    meter.onSending(held.sending())
    for (const job of jobs) void make(job)
  }

  async function giveBack(deliveries: LeasedDelivery[]): Promise<void> {
    if (deliveries.length === 0) return
    for (const { id, endpointId } of deliveries) {
      held.remove(id)
      windows.ended(endpointId)
    }
    await abandonLeases(pool, { owner, deliveryIds: deliveries.map(({ id }) => id) })
  }

  return async () => {
    const free = Math.min(maxSending - held.sending(), maxSending + maxUnrecorded - held.size())
    if (free <= 0) return pollMs
    freed = 0
    const taken = await options.take({ free, ended: held.takeEnded() })
    hasMore = taken.hasMore
    await start(taken.deliveries)
    return Math.max(0, Math.min(pollMs, taken.nextAt - clock()))
  }
}
