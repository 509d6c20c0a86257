import type pg from 'pg'
import { eventTopics } from '../../schemas/events.ts'
import { type Db, transaction } from '../postgres/pool.ts'
import { type RestoredKeys, restoreDataKeys } from './data-key-backup.ts'
import { eraseDataKeys } from './data-key-table.ts'
import type { RecordedEvent } from './event.ts'
import { type EventSource, readEvents } from './read-events.ts'

type ErasureEvent = Extract<RecordedEvent, { type: 'VisitorErased' }>

export const isErasure = (event: RecordedEvent): event is ErasureEvent =>
  event.type === 'VisitorErased'

interface ReappliedErasures {
  sessions: number
  // Number of those sessions that were erased after `since`.
  erasedSince: number
}

/**
 * Deletes the keys of all sessions whose erasure is on the log, because restored keys may predate the erasure.
 */
export async function reapplyErasures(
  db: Db,
  source: EventSource,
  { since }: { since: number },
): Promise<ReappliedErasures> {
  const counts = { sessions: 0, erasedSince: 0 }
  await readEvents(source, {
    topic: eventTopics.VisitorErased,
    async handle(events) {
      const erased = events.filter(isErasure).map(({ data }) => data)
      await eraseDataKeys(db, erased)
      for (const { session_ids, erased_at } of erased) {
        counts.sessions += session_ids.length
        if (erased_at > since) counts.erasedSince += session_ids.length
      }
    },
  })
  return counts
}

interface RestoreDeps extends EventSource {
  pool: pg.Pool
}

/** Adds the keys of a backup in one transaction, except those of erased sessions, which never become visible. */
export function restoreKeyBackup(
  { pool, ...source }: RestoreDeps,
  { file }: { file: string },
): Promise<RestoredKeys & ReappliedErasures> {
  return transaction(pool, async (tx) => {
    const restored = await restoreDataKeys(tx, { file })
    return { ...restored, ...(await reapplyErasures(tx, source, { since: restored.madeAt })) }
  })
}
