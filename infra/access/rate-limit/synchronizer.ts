import type { Clock } from '../../ids.ts'
import { settlesWithin } from '../../timing.ts'
import type { BucketRequest, RateLimitResult } from './bucket.ts'
import {
  advance,
  applySynced,
  awaitConfirmation,
  chargeSeparately,
  confirm,
  decideAlone,
  decideHere,
  hasUnconfirmed,
  type LocalBucket,
  rateLimitResult,
  reportAgain,
  type SentReport,
  startInquiry,
  startReport,
} from './local-bucket.ts'
import { type BucketStore, type SyncRequest, type SyncResult, synchronize } from './shared-bucket.ts'
import type { StoreHealth } from './store-health.ts'

interface Start {
  release?: boolean
  queue?: WaitingRequest[]
}

interface WaitingRequest extends BucketRequest {
  answer: (result: RateLimitResult) => void
}

/** One exchange of a bucket with the store. The bucket is advanced before each step. */
interface Exchange {
  sent: SentReport
  serial: number | undefined
  wantsLease: boolean
  requests: WaitingRequest[]
  queue: WaitingRequest[]
  done: Promise<void>
}

export interface SynchronizerOptions {
  store: BucketStore
  node: string
  clock: Clock
  health: StoreHealth
  answerWithinMs: number
}

export function createSynchronizer({ store, node, clock, health, answerWithinMs }: SynchronizerOptions) {
  const exchanges = new Map<LocalBucket, Exchange>()
  let serials = 0
  const nextSerial = () => ++serials

  function start(bucket: LocalBucket, { release = false, queue = [] }: Start = {}): Promise<void> {
    advance(bucket, clock())
    const isInquiry = hasUnconfirmed(bucket)
    const exchange = isInquiry
      ? inquiry(bucket, queue)
      : report(bucket, { release, requests: queue, nextSerial })
    exchanges.set(bucket, exchange)
    exchange.done = run(bucket, exchange).then((answered) => {
      exchanges.delete(bucket)
      if (!answered) return undefined
      const rest = decideFirst(bucket, exchange.queue)
      const mustRelease = release && isInquiry
      return rest.length > 0 || mustRelease ? start(bucket, { release: mustRelease, queue: rest }) : undefined
    })
    return exchange.done
  }

  /**
   * Whether the store answered in time. Waiting requests are answered in time in any case. But the bucket is not asked
   * for again, and nothing is put back into the next report, before it is settled what became of this one.
   */
  async function run(bucket: LocalBucket, exchange: Exchange): Promise<boolean> {
    const { change, hasRun } = send(bucket, exchange, { store, node })
    const isInTime = await settlesWithin(change, answerWithinMs)
    if (!isInTime) giveUp(bucket, exchange, new Error(`no answer within ${answerWithinMs} ms`))
    try {
      const synced = await change
      advance(bucket, clock())
      succeed(bucket, exchange, synced)
      if (isInTime) health.answered(bucket)
      else health.postpone(bucket)
      return isInTime
    } catch (error) {
      if (isInTime) giveUp(bucket, exchange, error)
      else health.postpone(bucket)
      advance(bucket, clock())
      fail(bucket, exchange, hasRun())
      return false
    }
  }

  function giveUp(bucket: LocalBucket, exchange: Exchange, error: unknown): void {
    health.failed(bucket, error)
    advance(bucket, clock())
    chargeSeparately(bucket, exchange.sent, () => decideAllAlone(bucket, exchange.requests.splice(0)))
    decideAllAlone(bucket, exchange.queue.splice(0))
  }

  /**
   * Uses the new lease for the requests of the queue and returns those that still have to wait. Without this a bucket
   * in steady use would never again be free of waiting requests, and all would go by way of the store.
   */
  function decideFirst(bucket: LocalBucket, queue: WaitingRequest[]): WaitingRequest[] {
    advance(bucket, clock())
    for (const [i, waiting] of queue.entries()) {
      const result = decideHere(bucket, waiting)
      if (!result) return queue.slice(i)
      waiting.answer(result)
    }
    return []
  }

  function decideAllAlone(bucket: LocalBucket, requests: WaitingRequest[]): void {
    for (const request of requests) request.answer(decideAlone(bucket, request))
  }

  return {
    start,
    decide(bucket: LocalBucket, { limit, cost }: BucketRequest): Promise<RateLimitResult> {
      const { promise, resolve: answer } = Promise.withResolvers<RateLimitResult>()
      const waiting = { limit, cost, answer }
      const exchange = exchanges.get(bucket)
      if (exchange) exchange.queue.push(waiting)
      else void start(bucket, { queue: [waiting] })
      return promise
    },
    isRunning: (bucket: LocalBucket) => exchanges.has(bucket),
    /** Whether requests wait for the exact answer: later ones then come after them. */
    hasWaiting(bucket: LocalBucket): boolean {
      const exchange = exchanges.get(bucket)
      return exchange !== undefined && exchange.requests.length + exchange.queue.length > 0
    },
    running: () => exchanges.size,
    async idle(bucket: LocalBucket): Promise<void> {
      for (let exchange = exchanges.get(bucket); exchange; exchange = exchanges.get(bucket)) {
        await exchange.done
      }
    },
  }
}

export type Synchronizer = ReturnType<typeof createSynchronizer>

function inquiry(bucket: LocalBucket, queue: WaitingRequest[]): Exchange {
  const sent = startInquiry(bucket)
  return { sent, serial: undefined, wantsLease: false, requests: [], queue, done: Promise.resolve() }
}

interface ReportOptions {
  release: boolean
  requests: WaitingRequest[]
  nextSerial: () => number
}

function report(bucket: LocalBucket, { release, requests, nextSerial }: ReportOptions): Exchange {
  const sent = startReport(bucket, { exact: release || requests.length > 0 })
  const serial = sent.sync.report || requests.length > 0 ? nextSerial() : undefined
  const wantsLease = bucket.isBusy && !release
  return { sent, serial, wantsLease, requests, queue: [], done: Promise.resolve() }
}

function send(
  bucket: LocalBucket,
  { sent, serial, wantsLease, requests }: Exchange,
  { store, node }: { store: BucketStore; node: string },
): { change: Promise<SyncResult>; hasRun: () => boolean } {
  const wanted = requests.map(({ limit, cost }) => ({ limit, cost }))
  const sync: SyncRequest = { ...sent.sync, node, serial, wantsLease, requests: wanted }
  let hasRun = false
  const change = store.update(bucket.id, (row, now) => {
    hasRun = true
    const { row: next, synced } = synchronize(row, sync, now)
    return { row: next, result: synced }
  })
  return { change, hasRun: () => hasRun }
}

function succeed(bucket: LocalBucket, { sent, requests }: Exchange, synced: SyncResult): void {
  confirm(bucket, synced.serial)
  applySynced(bucket, sent, synced)
  requests.forEach(({ cost, answer }, i) => {
    const decision = synced.decisions[i]
    if (decision) answer(rateLimitResult(decision, cost))
  })
}

/** What the store has not begun to change cannot have been charged; else it has to say so itself. */
function fail(bucket: LocalBucket, { sent, serial }: Exchange, hasRun: boolean): void {
  if (hasRun && serial !== undefined) awaitConfirmation(bucket, { serial, sent })
  else reportAgain(bucket, sent)
}
