import { runPeriodically } from '../../../infra/timing.ts'
import { createFailedEnds } from './failed-ends.ts'
import { type PurgeParts, purgeGate } from './purge.ts'
import { endOverdue, type TimeOutParts } from './time-outs.ts'

export interface SchedulerOptions extends TimeOutParts, PurgeParts {
  /** Milliseconds between looks for what is past its time (default 1000). */
  timeOutsMs?: number
  /** Milliseconds between looks for what is of no use any more (default 10,000). */
  purgeMs?: number
}

/** Ends what is past its time and deletes what is left of it. Several may run; one works at a time. */
export function runScheduler(options: SchedulerOptions): { stop(): Promise<void> } {
  const { logger, timeOutsMs = 1000, purgeMs = 10_000 } = options
  const failed = createFailedEnds()
  const workers = [
    runPeriodically({
      intervalMs: timeOutsMs,
      look: async () => (await endOverdue(options, { failed })) > 0,
      onError: (err) => logger.error({ err }, 'what is past its time did not end; the next look tries again'),
    }),
    runPeriodically({
      intervalMs: purgeMs,
      look: async () => (await purgeGate(options)) > 0,
      onError: (err) =>
        logger.error({ err }, 'what Gate needs no more was not deleted; the next look tries again'),
    }),
  ]
  return {
    async stop() {
      await Promise.all(workers.map((worker) => worker.stop()))
    },
  }
}
