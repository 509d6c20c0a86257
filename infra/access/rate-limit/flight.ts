import { accept, type Departure, depart, doubt, inquire, keep, resolve } from './journey.ts'
import { answerOf, type LocalBucket } from './local-bucket.ts'
import type { Taken } from './port.ts'
import { type Ask, type Sync, type Synced, synchronize } from './shared.ts'
import type { BucketStore } from './store.ts'

/** A request that waits for its answer. */
export interface Waiting extends Ask {
  answer: (taken: Taken) => void
}

/** One round trip of a bucket with the store. The bucket is advanced before each step. */
export interface Flight {
  departure: Departure
  /** Of what the store is to charge; undefined when there is nothing. */
  serial: number | undefined
  wantsLease: boolean
  /** What this round trip decides. */
  asks: Waiting[]
  /** What the next one will decide. */
  queue: Waiting[]
  done: Promise<void>
}

/** Only asks whether the last report was charged; `queue` waits for the next round trip. */
export function inquiry(bucket: LocalBucket, queue: Waiting[]): Flight {
  const departure = inquire(bucket)
  return { departure, serial: undefined, wantsLease: false, asks: [], queue, done: Promise.resolve() }
}

/** Reports what was taken and asks for what is needed; `nextSerial` gives a number that was never used before. */
export function visit(
  bucket: LocalBucket,
  { leave, asks, nextSerial }: { leave: boolean; asks: Waiting[]; nextSerial: () => number },
): Flight {
  const departure = depart(bucket, { exact: leave || asks.length > 0 })
  const serial = departure.told.report || asks.length > 0 ? nextSerial() : undefined
  return { departure, serial, wantsLease: bucket.isBusy && !leave, asks, queue: [], done: Promise.resolve() }
}

/** Sends it to the store. `hasRun`: whether the store has begun to change the bucket. */
export function send(
  bucket: LocalBucket,
  { departure, serial, wantsLease, asks }: Flight,
  { store, node }: { store: BucketStore; node: string },
): { change: Promise<Synced>; hasRun: () => boolean } {
  const wanted = asks.map(({ limit, cost }) => ({ limit, cost }))
  const sync: Sync = { ...departure.told, node, serial, wantsLease, asks: wanted }
  let hasRun = false
  const change = store.update(bucket.id, (row, now) => {
    hasRun = true
    const { row: next, synced } = synchronize(row, sync, now)
    return { row: next, result: synced }
  })
  return { change, hasRun: () => hasRun }
}

/** The store's answer, for the bucket and for those that still wait for it. */
export function arrive(bucket: LocalBucket, { departure, asks }: Flight, synced: Synced): void {
  resolve(bucket, synced.serial)
  accept(bucket, departure, synced)
  asks.forEach(({ cost, answer }, i) => {
    const decision = synced.decisions[i]
    if (decision) answer(answerOf(decision, cost))
  })
}

/** No answer. What the store has not begun to change cannot have been charged; else it has to say so itself. */
export function fail(bucket: LocalBucket, { departure, serial }: Flight, hasRun: boolean): void {
  if (hasRun && serial !== undefined) doubt(bucket, { serial, departure })
  else keep(bucket, departure)
}
