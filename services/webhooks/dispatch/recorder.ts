import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { EventCodec } from '../../../infra/event-store/codec.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { EventLog, NewRecord } from '../../../infra/log/port.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { finish } from './queue.ts'

interface RecorderOptions {
  owner: string
  pool: pg.Pool
  log: Pick<EventLog, 'append'>
  codec: EventCodec
  logger: Logger
}

export interface Ended {
  deliveryId: string
  decision: DecidedEvent
  /** Epoch milliseconds; null when no attempt follows. */
  nextAttemptAt: number | null
}

interface Waiting extends Omit<Ended, 'decision'> {
  record: NewRecord
  recorded: () => void
}

export interface Recorder {
  /** Resolves when the record is on the log and the queue knows; never, once closed. */
  record(ended: Ended): Promise<void>
  /** The deliveries that are not recorded yet. */
  ids(): string[]
  has(deliveryId: string): boolean
  /** What is not recorded yet stays hidden until its visibility timeout expires. */
  close(): void
}

// What ends within it is recorded together: a record alone costs as much as many.
const lingerMs = 10
const appendRetryMs = { first: 100, most: 2000 }

/**
 * Appends what became of deliveries, and then tells the queue: one append and one statement for all that ended
 * meanwhile. While the log is away records wait here. Appended twice it is the same record: the read model takes the
 * first of an attempt's number.
 */
export function createRecorder({ owner, pool, log, codec, logger }: RecorderOptions): Recorder {
  const waiting = new Map<string, Waiting>()
  const closed = new AbortController()
  let isFlushing = false

  async function append(records: NewRecord[]): Promise<void> {
    let wait = appendRetryMs.first
    while (!closed.signal.aborted) {
      try {
        await log.append(records)
        return
      } catch (err) {
        logger.warn({ err, attempts: records.length }, 'webhook attempts were not recorded, trying again')
        await delay(wait, undefined, { signal: closed.signal }).catch(() => {})
        wait = Math.min(2 * wait, appendRetryMs.most)
      }
    }
  }

  async function flush(): Promise<void> {
    await delay(lingerMs, undefined, { signal: closed.signal }).catch(() => {})
    const finished = [...waiting.values()]
    await append(finished.map(({ record }) => record))
    if (closed.signal.aborted) return
    await finish(pool, { owner, finished }).catch((err) => {
      logger.debug({ err }, 'the queue was not told of webhook attempts, a sweep will')
    })
    for (const { deliveryId, recorded } of finished) {
      waiting.delete(deliveryId)
      recorded()
    }
  }

  async function flushAll(): Promise<void> {
    isFlushing = true
    while (waiting.size > 0 && !closed.signal.aborted) await flush()
    isFlushing = false
  }

  return {
    async record({ decision, ...ended }) {
      const record = codec.toRecord(decision.event, decision.meta)
      const { promise, resolve: recorded } = Promise.withResolvers<void>()
      waiting.set(ended.deliveryId, { ...ended, record, recorded })
      if (!isFlushing) void flushAll()
      return promise
    },
    ids: () => [...waiting.keys()],
    has: (deliveryId) => waiting.has(deliveryId),
    close: () => closed.abort(),
  }
}
