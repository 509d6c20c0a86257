import type { RecordedEvent } from '../../infra/event-store/event.ts'
import { unnest } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import type { RowOf } from '../../infra/postgres/table.ts'
import { sessionMarks } from './tables.ts'

type MarkedEvent = Extract<RecordedEvent, { type: 'SessionMarked' }>
type UnmarkedEvent = Extract<RecordedEvent, { type: 'SessionUnmarked' }>
export type MarkEvent = MarkedEvent | UnmarkedEvent

export const isMarkEvent = (event: RecordedEvent): event is MarkEvent =>
  event.type === 'SessionMarked' || event.type === 'SessionUnmarked'

/** One partition has all of a session's events, so a mark is there before it is taken away. */
export async function applyMarks(tx: Tx, events: MarkEvent[]): Promise<void> {
  if (events.length === 0) return
  const marked = events.filter((event) => event.type === 'SessionMarked')
  const unmarked = events.filter((event) => event.type === 'SessionUnmarked')
  if (marked.length > 0) await insertMarks(tx, marked)
  if (unmarked.length > 0) await removeMarks(tx, unmarked)
  await showNewest(tx, [...new Set(events.map(({ data }) => data.session_id))])
}

// Retention may have deleted the session, or be about to: its row is locked, so that no mark outlives it.
async function insertMarks(tx: Tx, events: MarkedEvent[]): Promise<void> {
  const { names, source, values } = unnest(sessionMarks.columns, events.map(markRow))
  await tx.query(
    `with held as (select session_id from sessions where session_id = any($${values.length + 1}) for update)
     insert into session_marks (${names}) select ${names} from ${source} as m (${names})
     join held using (session_id) on conflict do nothing`,
    [...values, events.map(({ data }) => data.session_id)],
  )
}

function markRow({ data, position }: MarkedEvent): RowOf<typeof sessionMarks> {
  return { ...data, log_offset: position.offset, is_removed: false }
}

async function removeMarks(tx: Tx, events: UnmarkedEvent[]): Promise<void> {
  await tx.query(
    `update session_marks m set is_removed = true from unnest($1::text[], $2::text[]) as gone (mark_id, session_id)
     where m.mark_id = gone.mark_id and m.session_id = gone.session_id`,
    [events.map(({ data }) => data.mark_id), events.map(({ data }) => data.session_id)],
  )
}

async function showNewest(tx: Tx, sessionIds: string[]): Promise<void> {
  await tx.query(
    `update sessions s set mark_id = newest.mark_id, mark = newest.label, mark_reason = newest.reason,
       marked_at = newest.marked_at
     from unnest($1::text[]) as changed (session_id) left join lateral (
       select * from session_marks m where m.session_id = changed.session_id and not m.is_removed
       order by m.log_offset desc limit 1
     ) newest on true
     where s.session_id = changed.session_id`,
    [sessionIds],
  )
}
