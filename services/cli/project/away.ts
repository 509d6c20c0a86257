import { setTimeout as delay } from 'node:timers/promises'
import { backoffMs, LogUnavailable } from '../../../infra/log/port.ts'
import { isConnectionError } from '../../../infra/postgres/pool.ts'

/**
 * Does the work again for as long as it fails because the database or the log does not answer, until the signal. The work
 * tells by `onAnswer` that both do, and an outage is said once.
 */
export async function untilBothAnswer(
  work: (onAnswer: () => void) => Promise<void>,
  signal: AbortSignal,
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
      const away = whoIsAway(error)
      if (!away) throw error
      failures += 1
      if (failures === 1) console.error(`The ${away} does not answer. The view waits for it.`)
      await delay(backoffMs(failures), undefined, { signal }).catch(() => {})
    }
  }
}

function whoIsAway(error: unknown): 'database' | 'log' | undefined {
  if (isConnectionError(error)) return 'database'
  return error instanceof LogUnavailable ? 'log' : undefined
}
