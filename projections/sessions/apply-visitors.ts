import type { Tx } from '../../infra/postgres/pool.ts'
import { searchable, storable } from '../../infra/postgres/text.ts'
import { type Column, unnest } from '../../infra/postgres/unnest.ts'
import type { VisitorLink } from '../../schemas/events.ts'
import type { ScoredEvent } from './apply-decisions.ts'

interface Seen extends ScoredEvent {
  visitor: VisitorLink
}

/** What a batch says about one visitor. */
interface Visit {
  first: number
  last: number
  latest: Seen
}

const keyColumns: Column<Seen>[] = [
  { name: 'organization_id', type: 'text', of: ({ data }) => data.organization_id },
  { name: 'environment', type: 'text', of: ({ data }) => data.environment },
  { name: 'visitor_id', type: 'text', of: ({ visitor }) => visitor.id },
]
const linkColumns: Column<Seen>[] = [
  ...keyColumns,
  { name: 'session_id', type: 'text', of: ({ data }) => data.session_id },
]
const latestColumns: Column<Seen>[] = [
  { name: 'event_id', type: 'text', of: ({ data }) => data.event_id },
  { name: 'evaluated_at', type: 'bigint', of: ({ data }) => data.evaluated_at },
  { name: 'user_agent', type: 'text', of: ({ data }) => storable(data.request.user_agent) },
  { name: 'ip_address', type: 'text', of: ({ data }) => storable(data.request.ip_address) },
  { name: 'storage', type: 'text', of: ({ visitor }) => JSON.stringify(visitor.storage) },
  { name: 'anchors', type: 'text', of: ({ visitor }) => JSON.stringify(visitor.anchors) },
  { name: 'vector', type: 'text', of: ({ visitor }) => JSON.stringify(visitor.vector) },
  {
    name: 'search_text',
    type: 'text',
    of: ({ visitor, data }) => searchable(visitor.id, data.request.user_agent, data.request.ip_address),
  },
]
const visitColumns: Column<Visit>[] = [
  ...[...keyColumns, ...latestColumns].map(({ name, type, of }) => ({
    name,
    type,
    of: ({ latest }: Visit) => of(latest),
  })),
  { name: 'first_seen_at', type: 'bigint', of: ({ first }) => first },
  { name: 'last_seen_at', type: 'bigint', of: ({ last }) => last },
]
const keys = keyColumns.map(({ name }) => name).join(', ')
// Every column compares the old row, so all of them come from the same event.
const newest = latestColumns.map(
  ({ name }) =>
    `${name} = case when (excluded.evaluated_at, excluded.event_id) > (v.evaluated_at, v.event_id)
       then excluded.${name} else v.${name} end`,
)

/** Adds decisions not applied before to their visitors; the result is the same in whatever order partitions come. */
export async function upsertVisitors(tx: Tx, fresh: ScoredEvent[]): Promise<void> {
  const seen = fresh.flatMap((event) =>
    event.data.visitor ? [{ ...event, visitor: event.data.visitor }] : [],
  )
  if (seen.length === 0) return
  const links = unnest(linkColumns, seen)
  const visits = unnest(visitColumns, visitsOf(seen), linkColumns.length + 1)
  await tx.query({
    name: 'upsert-visitors',
    // Rows are locked in the order of their key: partitions applied side by side cannot deadlock.
    text: `with links as (
        insert into visitor_sessions (${links.names}) select * from ${links.source}
        on conflict do nothing returning ${keys}
      ), counts as (select ${keys}, count(*) as seen_count from links group by ${keys})
      insert into visitors as v (${visits.names}, seen_count)
      select visit.*, coalesce(seen_count, 0) from ${visits.source} as visit (${visits.names})
      left join counts using (${keys}) order by ${keys}
      on conflict (${keys}) do update set ${newest.join(', ')},
        first_seen_at = least(v.first_seen_at, excluded.first_seen_at),
        last_seen_at = greatest(v.last_seen_at, excluded.last_seen_at),
        seen_count = v.seen_count + excluded.seen_count`,
    values: [...links.values, ...visits.values],
  })
}

function visitsOf(seen: Seen[]): Visit[] {
  const visits = new Map<string, Visit>()
  for (const event of seen) {
    const key = `${event.data.organization_id} ${event.data.environment} ${event.visitor.id}`
    const known = visits.get(key)
    const at = event.data.observed_at
    visits.set(key, {
      first: Math.min(known?.first ?? at, at),
      last: Math.max(known?.last ?? at, at),
      latest: known && isNewer(known.latest, event) ? known.latest : event,
    })
  }
  return [...visits.values()]
}

function isNewer({ data: a }: Seen, { data: b }: Seen): boolean {
  return a.evaluated_at === b.evaluated_at ? a.event_id > b.event_id : a.evaluated_at > b.evaluated_at
}
