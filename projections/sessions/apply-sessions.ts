import type { Tx } from '../../infra/postgres/pool.ts'
import { searchable } from '../../infra/postgres/text.ts'
import { type Column, unnest } from '../../infra/postgres/unnest.ts'
import { decisionColumns, linkedVisitor, type ScoredEvent } from './apply-decisions.ts'
import { writeDetail } from './detail.ts'
import { searchEventsLength } from './tables.ts'

/** A session's latest decision of a batch, with the ids of all its new ones. */
interface Latest {
  event: ScoredEvent
  first: ScoredEvent
  eventIds: string[]
}

const latestColumns: Column<Latest>[] = [
  ...decisionColumns.map(({ name, type, of }) => ({ name, type, of: ({ event }: Latest) => of(event) })),
  {
    name: 'visitor',
    type: 'text',
    of: ({ event: { data } }) => data.visitor && JSON.stringify(linkedVisitor(data)),
  },
  { name: 'detail', type: 'text', of: ({ event: { data } }) => writeDetail(data) },
  {
    name: 'search_request',
    type: 'text',
    of: ({ event: { data } }) =>
      searchable(
        data.session_id,
        data.visitor?.id ?? null,
        data.request.url,
        data.request.user_agent,
        data.request.ip_address,
      ),
  },
]
const columns: Column<Latest>[] = [
  ...latestColumns,
  { name: 'created_at', type: 'bigint', of: ({ first }) => first.data.created_at },
  {
    name: 'search_events',
    type: 'text',
    of: ({ eventIds }) => searchable(...eventIds).slice(-searchEventsLength),
  },
]
const kept = new Set(['session_id', 'organization_id', 'environment'])
const replaced = latestColumns
  .filter(({ name }) => !kept.has(name))
  .map(({ name }) => `${name} = excluded.${name}`)

/** Brings each session to its latest decision; `fresh` are decisions not applied before, in offset order. */
export async function upsertSessions(tx: Tx, fresh: ScoredEvent[]): Promise<void> {
  const { names, source, values } = unnest(columns, latestBySession(fresh))
  await tx.query({
    name: 'upsert-sessions',
    // A session that is new here may have been given its client user id already. The end of all event ids is the same
    // however they were divided into batches, so a rebuild finds the same.
    text: `insert into sessions as s (${names}, client_user_id, search_user)
      select i.*, u.client_user_id, coalesce(u.search_user, '') from ${source} as i (${names})
      left join lateral (
        select client_user_id, search_user from client_user_changes c
        where c.session_id = i.session_id order by log_offset desc limit 1
      ) u on true
      on conflict (session_id) do update set ${replaced.join(', ')},
        search_events = right(s.search_events || E'\\n' || excluded.search_events, ${searchEventsLength})`,
    values,
  })
}

function latestBySession(fresh: ScoredEvent[]): Latest[] {
  const sessions = new Map<string, Latest>()
  for (const event of fresh) {
    const known = sessions.get(event.data.session_id)
    const eventIds = [...(known?.eventIds ?? []), event.data.event_id]
    sessions.set(event.data.session_id, { event, first: known?.first ?? event, eventIds })
  }
  return [...sessions.values()]
}
