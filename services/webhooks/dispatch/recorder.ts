import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Applied } from '../../../infra/event-store/applied.ts'
import type { EventCodec } from '../../../infra/event-store/codec.ts'
import type { DecidedEvent } from '../../../infra/event-store/decide.ts'
import type { EventLog, Position } from '../../../infra/log/port.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { releaseApplied } from './leases.ts'

export interface RecorderOptions {
  owner: string
  /** Commits without waiting for the disk. */
  pool: pg.Pool
  log: Pick<EventLog, 'append'>
  codec: EventCodec
  applied: Pick<Applied, 'onAdvance'>
  logger: Logger
}

export interface Recorder {
  /** Resolves when the record is on the log, applied, and the delivery's lease given back; never, once closed. */
  record(deliveryId: string, decision: DecidedEvent): Promise<void>
  /** Leaves what is not recorded or applied yet to whoever reaps its lease. */
  close(): void
}

/** Releases of about one round of the projection travel together. */
const releaseLingerMs = 10
/** How often to look where no news came, as when a notification was lost. */
const lookMs = 500
const appendRetryMs = { first: 100, most: 2000 }

interface Waiting {
  position: Position
  released: () => void
}

/**
 * Appends what became of deliveries and gives their leases back once the read model shows it: before, the delivery
 * would look due to the next dispatcher. While the log is away records wait here, and whoever holds the leases renews
 * them.
 */
export function createRecorder(options: RecorderOptions): Recorder {
  const { owner, pool, log, codec, applied, logger } = options
  const waiting = new Map<string, Waiting>()
  const nextOf = new Map<number, number>()
  const closed = new AbortController()
  const warn = createWarning(logger)
  let releasing: NodeJS.Timeout | undefined
  let isReleasing = false
  let isWantedAgain = false

  async function append(decision: DecidedEvent): Promise<Position | undefined> {
    const record = codec.toRecord(decision.event, decision.meta)
    for (
      let wait = appendRetryMs.first;
      !closed.signal.aborted;
      wait = Math.min(2 * wait, appendRetryMs.most)
    ) {
      try {
        const [position] = await log.append([record])
        return position
      } catch (err) {
        // Appended twice it is the same record: the read model takes the first of an attempt's number.
        warn(err, decision)
        await delay(wait, undefined, { signal: closed.signal }).catch(() => {})
      }
    }
    return undefined
  }

  function releaseSoon(): void {
    if (closed.signal.aborted) return
    // The round under way has read how far the read model was.
    if (isReleasing) isWantedAgain = true
    else releasing ??= setTimeout(() => void releaseRound(), releaseLingerMs)
  }

  async function releaseRound(): Promise<void> {
    releasing = undefined
    isReleasing = true
    isWantedAgain = false
    await release((position) => position.offset < (nextOf.get(position.partition) ?? 0))
    isReleasing = false
    if (isWantedAgain) releaseSoon()
  }

  async function release(isCandidate: (position: Position) => boolean): Promise<void> {
    const recorded = [...waiting].flatMap(([deliveryId, { position }]) =>
      isCandidate(position) ? [{ deliveryId, position }] : [],
    )
    if (recorded.length === 0) return
    try {
      for (const id of await releaseApplied(pool, { owner, recorded })) {
        waiting.get(id)?.released()
        waiting.delete(id)
      }
    } catch (err) {
      logger.debug({ err }, 'webhook leases were not given back, trying again')
    }
  }

  const stopListening = applied.onAdvance('webhooks', ({ partition, offset }) => {
    nextOf.set(partition, offset)
    if (waiting.size > 0) releaseSoon()
  })
  const look = setInterval(() => void release(() => true), lookMs)

  return {
    async record(deliveryId, decision) {
      const position = await append(decision)
      const { promise, resolve: released } = Promise.withResolvers<void>()
      if (!position) return promise
      waiting.set(deliveryId, { position, released })
      if (position.offset < (nextOf.get(position.partition) ?? 0)) releaseSoon()
      return promise
    },
    close() {
      closed.abort()
      clearInterval(look)
      clearTimeout(releasing)
      stopListening()
    },
  }
}

const warnEveryMs = 1000

/** Some hundred records may wait for a log that is away, each of which tries again: one line a second says it. */
function createWarning(logger: Logger): (err: unknown, decision: DecidedEvent) => void {
  let quietUntil = -Infinity
  let failures = 0
  return (err, { meta: { eventId } }) => {
    failures++
    if (performance.now() < quietUntil) return
    logger.warn({ err, eventId, failures }, 'webhook attempts were not recorded, trying again')
    quietUntil = performance.now() + warnEveryMs
    failures = 0
  }
}
