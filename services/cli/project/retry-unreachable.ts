import { setTimeout as delay } from 'node:timers/promises'
import { backoffMs, LogUnavailable } from '../../../infra/log/port.ts'
import { isConnectionError } from '../../../infra/postgres/pool.ts'

/**
 * Runs `work`, and runs it again with backoff while the database or the log is unreachable, until `signal` aborts. `work`
 * calls `onConnected` when both respond. Prints each outage once.
 */
export async function retryWhileUnreachable(
  work: (onConnected: () => void) => Promise<void>,
  { signal, isLogEmbedded }: { signal: AbortSignal; isLogEmbedded: boolean },
): Promise<void> {
  let failures = 0
  const onConnected = () => {
    if (failures > 0) console.error('Reconnected to the database and the log.')
    failures = 0
  }
  while (!signal.aborted) {
    try {
      return await work(onConnected)
    } catch (error) {
      const unreachable = findUnreachable(error, isLogEmbedded)
      if (!unreachable) throw error
      failures += 1
      if (failures === 1) console.error(`Cannot reach the ${unreachable}; waiting for it.`)
      await delay(backoffMs(failures), undefined, { signal }).catch(() => {})
    }
  }
}

function findUnreachable(error: unknown, isLogEmbedded: boolean): 'database' | 'log' | undefined {
  if (isConnectionError(error)) return 'database'
  if (!(error instanceof LogUnavailable)) return undefined
  return isLogEmbedded ? 'database' : 'log'
}
