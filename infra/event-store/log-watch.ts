import type pg from 'pg'
import type { Logger } from 'pino'
import { type Periodic, runPeriodically } from '../flow/periodic.ts'
import { type EventLog, LogTruncated, LogUnavailable, type Position, type Topic } from '../log/port.ts'
import { LogClaimed } from './log-claim.ts'
import {
  readEnds,
  readMarks,
  readPositions,
  recordDamage,
  refuseDamage,
  refuseMovedMarks,
  refuseShorter,
  saveMarks,
  WrongLog,
} from './log-integrity.ts'

interface LogWatchOptions<Guard> {
  log: EventLog<Guard>
  pool: pg.Pool
  topics: Topic[]
  logger: Logger
  /** It is restored together with the database, so marks would prove nothing. */
  isEmbedded: boolean
}

interface WatchedClaim {
  renew: () => Promise<void>
  onLost: (error: LogClaimed) => void
}

export interface LogWatch<Guard> {
  /** The log; it rejects every append once there is a refusal. */
  log: EventLog<Guard>
  /** Why nothing is appended any more, until the next start of the process. */
  refusal(): Error | undefined
  /** Checks the log from now on, every ten seconds, and renews the claim. */
  start(claim?: WatchedClaim): void
  stop(): Promise<void>
}

const intervalMs = 10_000

/** Ends all appends for good when the log turns out to have lost records or to belong to another database. */
export function watchLog<Guard>(options: LogWatchOptions<Guard>): LogWatch<Guard> {
  const { log, pool, topics, logger, isEmbedded } = options
  const { append, appendIf } = log
  let refusal: Error | undefined
  let unrecorded: WrongLog | undefined
  let reached: Position[] = []
  let checks: Periodic | undefined
  // A log that was away may come back as an older copy of itself.
  let isDoubtful = false
  let verifying: Promise<void> | undefined

  function refuse(reason: Error): void {
    if (refusal) return
    refusal = reason
    logger.error({ err: reason }, `nothing is appended any more: ${reason.message}`)
    if (reason instanceof WrongLog) unrecorded = reason
    checks?.wake()
  }

  // Nothing is awaited in general, so that appends made one after the other keep their order.
  async function unlessRefused<T>(write: () => Promise<T>): Promise<T> {
    if (checks && isDoubtful) await verify()
    if (refusal) throw new LogUnavailable(refusal.message, { cause: refusal })
    try {
      return await write()
    } catch (error) {
      if (error instanceof LogTruncated) refuse(new WrongLog(error.message, error.evidence))
      isDoubtful = !isEmbedded
      throw error
    }
  }

  function verify(): Promise<void> {
    verifying ??= check()
      .then(
        () => {
          isDoubtful = false
        },
        (error: unknown) => {
          isDoubtful = !isEmbedded
          if (!(error instanceof WrongLog)) throw error
          refuse(error)
        },
      )
      .finally(() => {
        verifying = undefined
      })
    return verifying
  }

  async function check(): Promise<void> {
    await refuseDamage(pool)
    const read = await readPositions(pool)
    const time = Date.now()
    const ends = await readEnds(log, topics)
    refuseShorter([...reached, ...read], { ends, time })
    reached = ends
    if (isEmbedded) return
    // Read before the old ones are checked: what they show then holds for these, too.
    const marks = await readMarks(log, { topics, time })
    await refuseMovedMarks(pool, log)
    await saveMarks(pool, marks)
  }

  async function work(claim?: WatchedClaim): Promise<false> {
    await claim?.renew().catch((error: unknown) => {
      if (!(error instanceof LogClaimed)) throw error
      if (!refusal) claim.onLost(error)
      refuse(error)
    })
    if (!refusal) await verify()
    if (unrecorded) await recordDamage(pool, unrecorded)
    unrecorded = undefined
    return false
  }

  return {
    log: {
      ...log,
      append: (records) => unlessRefused(() => append(records)),
      ...(appendIf && { appendIf: (record, guard) => unlessRefused(() => appendIf(record, guard)) }),
    },
    refusal: () => refusal,
    start(claim) {
      const onError = (err: unknown) => logger.warn({ err }, 'failed to check the log; trying again')
      checks = runPeriodically({ intervalMs, work: () => work(claim), onError })
    },
    stop: async () => checks?.stop(),
  }
}
