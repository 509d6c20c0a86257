import { setTimeout as delay } from 'node:timers/promises'
import { backoffMs, LogUnavailable } from '../../../infra/log/port.ts'
import { isConnectionError } from '../../../infra/postgres/pool.ts'

/**
 * Retries the work while the database or the log does not answer, until the signal. The work calls `onAnswer` when both do,
 * and each outage is printed once.
 */
export async function untilBothAnswer(
  work: (onAnswer: () => void) => Promise<void>,
  { signal, isLogEmbedded }: { signal: AbortSignal; isLogEmbedded: boolean },
): Promise<void> {
  let failures = 0
  const onAnswer = () => {
    if (failures > 0) console.error('The database and the log answer again.')
    failures = 0
  }
  while (!signal.aborted) {
    try {
      return await work(onAnswer)
    } catch (error) {
      const away = whoIsAway(error, isLogEmbedded)
      if (!away) throw error
      failures += 1
      if (failures === 1) console.error(`The ${away} does not answer. The view waits for it.`)
      await delay(backoffMs(failures), undefined, { signal }).catch(() => {})
    }
  }
}

function whoIsAway(error: unknown, isLogEmbedded: boolean): 'database' | 'log' | undefined {
  if (isConnectionError(error)) return 'database'
  if (!(error instanceof LogUnavailable)) return undefined
  return isLogEmbedded ? 'database' : 'log'
}
