import type { Logger } from '../../../infra/telemetry.ts'

const retryMs = 500
const notReadyAfterMs = 10_000

export interface Trouble {
  /** Work was done, and comes again after so many milliseconds; returns them. */
  over(ms: number): number
  /** Work failed; returns after how many milliseconds to try again. */
  met(error: unknown): number
  /** Rejects once work has failed for ten seconds. */
  check(): Promise<void>
}

/** Says once when deliveries cannot be taken, and when they can again. */
export function createTrouble(logger: Logger): Trouble {
  let since: number | undefined
  return {
    over(ms) {
      if (since !== undefined) logger.info('webhooks are taken again')
      since = undefined
      return ms
    },
    met(err) {
      if (since === undefined) logger.warn({ err }, 'webhooks cannot be taken, trying again')
      since ??= performance.now()
      return retryMs
    },
    async check() {
      if (since === undefined || performance.now() - since < notReadyAfterMs) return
      throw new Error('webhooks cannot be taken')
    },
  }
}
