import { runPeriodically } from '../../../infra/flow/periodic.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { type LookedUp, type LookupSubject, readDirectories } from './tables.ts'

/** What this process has in memory of directories that were fetched; nothing waits for the database or the internet. */
export interface Directories {
  find(directory: string): LookedUp | undefined
  stop(): Promise<void>
}

interface FollowOptions {
  pool: Db
  clock: Clock
  logger: Logger
  /** Directories that new ones of others cannot displace. */
  preferred: () => readonly LookupSubject[]
  intervalMs?: number
}

/** Reads twice a minute what scoring has fetched, so that a key counts here half a minute later at most. */
export function followDirectories({
  pool,
  clock,
  logger,
  preferred,
  intervalMs = 30_000,
}: FollowOptions): Directories {
  let known = new Map<string, LookedUp>()
  const { stop } = runPeriodically({
    intervalMs,
    work: async () => {
      const rows = await readDirectories(pool, { preferred: preferred(), now: clock() })
      known = new Map(rows.map((row) => [row.subject, row]))
      return false
    },
    onError: (err) =>
      logger.error({ err }, 'directories of agents were not read; the next run tries again'),
  })
  return {
    find(directory) {
      const found = known.get(directory)
      return found && found.ends_at > clock() ? found : undefined
    },
    stop,
  }
}
