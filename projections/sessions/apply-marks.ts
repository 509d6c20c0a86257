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

/** Applies marks and removals. All events of a session are in the same partition, so a mark precedes its removal. */
export async function applyMarks(tx: Tx, events: MarkEvent[]): Promise<void> {
  if (events.length === 0) return
  const marked = events.filter((event) => event.type === 'SessionMarked')
  const unmarked = events.filter((event) => event.type === 'SessionUnmarked')
  if (marked.length > 0) await insertMarks(tx, marked)
  if (unmarked.length > 0) await removeMarks(tx, unmarked)
  await copyNewestMarks(tx, [...new Set(events.map(({ data }) => data.session_id))])
}

// Locks the sessions, because retention may be deleting them and a mark must not outlive its session.
async function insertMarks(tx: Tx, events: MarkedEvent[]): Promise<void> {
  const { names, source, values } = unnest(sessionMarks.columns, events.map(markRow))
  await tx.query(
    `with locked as (select session_id from sessions where session_id = any($${values.length + 1}) for update)
     insert into session_marks (${names}) select ${names} from ${source} as m (${names})
     join locked using (session_id) on conflict do nothing`,
    [...values, events.map(({ data }) => data.session_id)],
  )
}

function markRow({ data, position }: MarkedEvent): RowOf<typeof sessionMarks> {
  return { ...data, log_offset: position.offset, is_removed: false }
}

async function removeMarks(tx: Tx, events: UnmarkedEvent[]): Promise<void> {
  await tx.query(
    `update session_marks m set is_removed = true from unnest($1::text[], $2::text[]) as removed (mark_id, session_id)
     where m.mark_id = removed.mark_id and m.session_id = removed.session_id`,
    [events.map(({ data }) => data.mark_id), events.map(({ data }) => data.session_id)],
  )
}

// Copies each session's newest mark into its row.
async function copyNewestMarks(tx: Tx, sessionIds: string[]): Promise<void> {
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
