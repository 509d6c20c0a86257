import { runPeriodically } from '../../../infra/flow/periodic.ts'
import type { Clock } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import type { Logger } from '../../../infra/telemetry.ts'
import { type LookupSubject, readDirectories, type StoredLookup } from './tables.ts'

/** In-memory copy of the fetched key directories. Reads never wait for the database or the network. */
export interface Directories {
  find(directory: string): StoredLookup | undefined
  stop(): Promise<void>
}

interface FollowOptions {
  pool: Db
  clock: Clock
  logger: Logger
  /** Directories to load first, so that others never push them out of memory. */
  preferred: () => readonly LookupSubject[]
  intervalMs?: number
}

/** Every 30 seconds, rereads the directories that scoring has fetched. */
export function followDirectories({
  pool,
  clock,
  logger,
  preferred,
  intervalMs = 30_000,
}: FollowOptions): Directories {
  let directories = new Map<string, StoredLookup>()
  const { stop } = runPeriodically({
    intervalMs,
    work: async () => {
      const rows = await readDirectories(pool, { preferred: preferred(), now: clock() })
      directories = new Map(rows.map((row) => [row.subject, row]))
    },
    onError: (err) => logger.error({ err }, 'failed to read agent directories; retrying'),
  })
  return {
    find(directory) {
      const lookup = directories.get(directory)
      return lookup && lookup.ends_at > clock() ? lookup : undefined
    },
    stop,
  }
}
