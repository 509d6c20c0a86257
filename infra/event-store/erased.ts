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

interface ErasedAgain {
  sessions: number
  // How many of them were erased since.
  erasedSince: number
}

/** Deletes the keys of all sessions that the log says were erased: a copy of the keys may be older than that. */
export async function eraseKeysAgain(
  db: Db,
  source: EventSource,
  { since }: { since: number },
): Promise<ErasedAgain> {
  const again = { sessions: 0, erasedSince: 0 }
  await readEvents(source, {
    topic: eventTopics.VisitorErased,
    async handle(events) {
      const erased = events.filter(isErasure).map(({ data }) => data)
      await eraseDataKeys(db, erased)
      for (const { session_ids, erased_at } of erased) {
        again.sessions += session_ids.length
        if (erased_at > since) again.erasedSince += session_ids.length
      }
    },
  })
  return again
}

interface Restoring extends EventSource {
  pool: pg.Pool
}

/** Adds the keys of a backup, but for those of erased sessions. Nobody sees one of these, wherever it ends. */
export function restoreUnerased(
  { pool, ...source }: Restoring,
  { file }: { file: string },
): Promise<RestoredKeys & ErasedAgain> {
  return transaction(pool, async (tx) => {
    const restored = await restoreDataKeys(tx, { file })
    return { ...restored, ...(await eraseKeysAgain(tx, source, { since: restored.madeAt })) }
  })
}
