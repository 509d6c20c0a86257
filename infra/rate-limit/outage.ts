import type { Clock } from '../ids.ts'
import type { Logger } from '../telemetry.ts'

const retryMs = 1000

/** Whether the store answers. While it does not, one round trip a second finds out whether it does again. */
export function createOutage({ clock, logger }: { clock: Clock; logger: Logger }) {
  let isAway = false
  let retryAt = 0

  return {
    isAway: () => isAway,
    /** Whether a round trip may start now. */
    mayAsk(): boolean {
      if (!isAway) return true
      if (clock() < retryAt) return false
      retryAt = clock() + retryMs
      return true
    },
    failed(err: unknown): void {
      if (!isAway) logger.warn({ err }, 'rate limits: the shared buckets are away, this process limits alone')
      isAway = true
      retryAt = clock() + retryMs
    },
    answered(): void {
      if (isAway) logger.info('rate limits: the shared buckets are back')
      isAway = false
    },
  }
}

export type Outage = ReturnType<typeof createOutage>
