import type pg from 'pg'
import type { Logger } from 'pino'
import { type Periodic, runPeriodically } from '../flow/periodic.ts'
import { type EventLog, LogUnavailable, type Topic } from '../log/port.ts'
import { cachedFor } from '../timing.ts'
import { verifyLog, WrongLog } from './bound-log.ts'

/** Wraps the log to refuse all appends, until a restart, once it has lost records or belongs to another database. */
export function watchLog<Guard>(
  log: EventLog<Guard>,
  { pool, topics, logger }: { pool: pg.Pool; topics: Topic[]; logger: Logger },
) {
  const { append, appendIf } = log
  let refusal: Error | undefined
  let checks: Periodic | undefined
  // Set after a failure: the log may come back as an older copy of itself.
  let needsCheck = false

  function refuse(reason: Error): void {
    refusal ??= reason
    logger.error(
      { err: reason },
      `refusing appends until a restart finds the log healthy: ${reason.message}`,
    )
  }

  // Concurrent calls share a check; results aren't cached.
  const check = cachedFor(0, async () => {
    try {
      if (!refusal) await verifyLog(pool, log, topics)
      needsCheck = false
    } catch (error) {
      needsCheck = true
      if (!(error instanceof WrongLog)) throw error
      refuse(error)
    }
  })

  // Awaits nothing before the write unless a check is due, so that consecutive appends keep their order.
  async function unlessRefused<T>(write: () => Promise<T>): Promise<T> {
    if (needsCheck && checks) await check()
    if (refusal) throw new LogUnavailable(refusal.message, { cause: refusal })
    return write().catch((error: unknown) => {
      needsCheck = true
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
    /** Returns why appends are refused; undefined if they aren't. */
    refusal: () => refusal,
    refuse,
    /** Starts checking the log: every ten seconds, and before the next append after a failed one. */
    start() {
      const onError = (err: unknown) => logger.warn({ err }, 'failed to check the log; retrying')
      checks = runPeriodically({
        intervalMs: 10_000,
        work: check,
        onError,
      })
    },
    stop: async () => checks?.stop(),
  }
}
