import type pg from 'pg'
import type { Logger } from 'pino'
import { type Periodic, runPeriodically } from '../flow/periodic.ts'
import { type EventLog, LogUnavailable, type Topic } from '../log/port.ts'
import { moveMarks, recordDamage, refuseDamage, refuseShorterLog, WrongLog } from './bound-log.ts'
import { LogClaimed } from './log-claim.ts'

interface LogWatchOptions<Guard> {
  log: EventLog<Guard>
  pool: pg.Pool
  topics: Topic[]
  logger: Logger
}

export interface WatchedClaim {
  renew: () => Promise<void>
  onLost: (error: LogClaimed) => void
}

export interface LogWatch<Guard> {
  /** The log; it rejects every append once there is a refusal. */
  log: EventLog<Guard>
  /** Why nothing is appended any more, until the next start of the process. */
  refusal(): Error | undefined
  /** Renews the claim and checks the log from now on. */
  start(claim: WatchedClaim): void
  stop(): Promise<void>
}

const intervalMs = 10_000

/** Ends all appends for good when the log turns out to have lost records or to belong to another database. */
export function watchLog<Guard>({ log, pool, topics, logger }: LogWatchOptions<Guard>): LogWatch<Guard> {
  const { append, appendIf } = log
  let refusal: Error | undefined
  let checks: Periodic | undefined
  let verifying: Promise<void> | undefined
  // A log that was away may come back as an older copy of itself.
  let wasAway = false

  // It usually awaits nothing, so consecutive appends keep their order.
  async function unlessRefused<T>(write: () => Promise<T>): Promise<T> {
    if (wasAway && checks) await verify()
    if (refusal) throw new LogUnavailable(refusal.message, { cause: refusal })
    return write().catch((error: unknown) => {
      wasAway = true
      throw error
    })
  }

  function verify(): Promise<void> {
    verifying ??= check().finally(() => {
      verifying = undefined
    })
    return verifying
  }

  async function check(): Promise<void> {
    try {
      await refuseDamage(pool)
      await refuseShorterLog(pool, log)
      await moveMarks(pool, log, topics)
      wasAway = false
    } catch (error) {
      wasAway = true
      if (!(error instanceof WrongLog)) throw error
      refuse(error)
      await recordDamage(pool, error.message)
    }
  }

  function refuse(reason: Error): void {
    refusal ??= reason
    logger.error({ err: reason }, `nothing is appended any more: ${reason.message}`)
  }

  async function work({ renew, onLost }: WatchedClaim): Promise<false> {
    await renew().catch((error: unknown) => {
      if (!(error instanceof LogClaimed)) throw error
      refuse(error)
      void checks?.stop()
      onLost(error)
    })
    if (!refusal) await verify()
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
