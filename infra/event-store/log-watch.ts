import type pg from 'pg'
import type { Logger } from 'pino'
import { type Periodic, runPeriodically } from '../flow/periodic.ts'
import { type EventLog, LogUnavailable, type Topic } from '../log/port.ts'
import { seldom } from '../timing.ts'
import { verifyLog, WrongLog } from './bound-log.ts'

/** Ends all appends for good when the log turns out to have lost records or to belong to another database. */
export function watchLog<Guard>(
  log: EventLog<Guard>,
  { pool, topics, logger }: { pool: pg.Pool; topics: Topic[]; logger: Logger },
) {
  const { append, appendIf } = log
  let refusal: Error | undefined
  let checks: Periodic | undefined
  // A log that was away may come back as an older copy of itself.
  let wasAway = false

  function refuse(reason: Error): void {
    refusal ??= reason
    logger.error({ err: reason }, `refusing appends: ${reason.message}`)
  }

  // Calls during a check share it.
  const check = seldom(0, async () => {
    try {
      if (!refusal) await verifyLog(pool, log, topics)
      wasAway = false
    } catch (error) {
      wasAway = true
      if (!(error instanceof WrongLog)) throw error
      refuse(error)
    }
  })

  // It usually awaits nothing, so consecutive appends keep their order.
  async function unlessRefused<T>(write: () => Promise<T>): Promise<T> {
    if (wasAway && checks) await check()
    if (refusal) throw new LogUnavailable(refusal.message, { cause: refusal })
    return write().catch((error: unknown) => {
      wasAway = true
      throw error
    })
  }

  const guarded: EventLog<Guard> = {
    ...log,
    append: (records) => unlessRefused(() => append(records)),
    ...(appendIf && { appendIf: (record, guard) => unlessRefused(() => appendIf(record, guard)) }),
  }
  return {
    log: guarded,
    /** Returns why appends are refused until the process starts again. */
    refusal: () => refusal,
    refuse,
    /** Checks the log every ten seconds from now on, and after each failed append before the next one. */
    start() {
      const onError = (err: unknown) =>
        logger.warn({ err }, 'failed to check the log; trying again')
      checks = runPeriodically({
        intervalMs: 10_000,
        work: () => check().then(() => false),
        onError,
      })
    },
    stop: async () => checks?.stop(),
  }
}
