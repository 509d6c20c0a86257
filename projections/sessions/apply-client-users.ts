import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { searchable, storable } from '../../infra/postgres/text.ts'
import { type Column, unnest } from '../../infra/postgres/unnest.ts'

export type ClientUserEvent = Extract<RecordedEvent, { type: 'ClientUserAttached' | 'ClientUserCleared' }>

const sessionColumns: Column<ClientUserEvent>[] = [
  { name: 'session_id', type: 'text', of: ({ data }) => data.session_id },
  { name: 'client_user_id', type: 'text', of: (event) => storedUser(event) },
  { name: 'search_user', type: 'text', of: (event) => searchable(storedUser(event)) },
]
const columns: Column<ClientUserEvent>[] = [
  ...sessionColumns,
  { name: 'event_id', type: 'text', of: ({ data }) => data.event_id },
  { name: 'log_offset', type: 'bigint', of: ({ position }) => position.offset },
]

/** Gives each session the client user id of the last change not applied before. */
export async function applyClientUsers(tx: Tx, events: ClientUserEvent[]): Promise<void> {
  const changes = unnest(columns, events)
  const { rows } = await tx.query<{ event_id: string }>({
    name: 'insert-client-user-changes',
    text: `insert into client_user_changes (${changes.names}) select * from ${changes.source}
      on conflict do nothing returning event_id`,
    values: changes.values,
  })
  const fresh = new Set(rows.map((row) => row.event_id))
  const last = new Map<string, ClientUserEvent>()
  // delete makes a second event of the same id within the batch a repeat, too.
  for (const event of events) if (fresh.delete(event.data.event_id)) last.set(event.data.session_id, event)
  if (last.size > 0) await updateSessions(tx, [...last.values()])
}

async function updateSessions(tx: Tx, changes: ClientUserEvent[]): Promise<void> {
  const { names, source, values } = unnest(sessionColumns, changes)
  await tx.query({
    name: 'update-client-users',
    text: `update sessions as s set client_user_id = c.client_user_id, search_user = c.search_user
      from ${source} as c (${names}) where s.session_id = c.session_id`,
    values,
  })
}

function storedUser(event: ClientUserEvent): string | null {
  return event.type === 'ClientUserAttached' ? storable(event.data.client_user_id) : null
}
