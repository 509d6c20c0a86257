import type { Db } from '../../infra/postgres/pool.ts'
import { correctionsOf } from '../../projections/corrections/projection.ts'
import { iso } from '../../projections/sessions/decision-shape.ts'
import {
  decisionsOf,
  marksOf,
  type Person,
  sessionsOf,
  usersOf,
} from '../../projections/sessions/person.ts'
import { findVisitor } from '../../projections/sessions/queries.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { eventsAbout } from '../../projections/webhooks/events-about.ts'

export interface ExportDeps {
  pool: Db
  /** Returns the scoring states by session; only sessions of the last day have one. */
  readStates: (sessionIds: string[]) => Promise<Map<string, object>>
  /** Returns the links of sessions to their visitors. */
  readLinks: (
    sessionIds: string[],
  ) => Promise<{ session_id: string; linked_at: number; merged_at: number | null }[]>
}

/** Returns all readable data of a person in the form of `exportSchema`; undefined for an unknown person. */
export async function exportPerson(
  { pool, readStates, readLinks }: ExportDeps,
  { scope, person }: { scope: DataScope; person: Person },
): Promise<object | undefined> {
  const sessions = await sessionsOf(pool, scope, person)
  if (sessions.length === 0) return undefined
  const sessionIds = sessions.map(({ session_id }) => session_id)
  const [decisions, users, marks, webhooks, states, links, corrections] = await Promise.all([
    decisionsOf(pool, sessionIds),
    usersOf(pool, sessionIds),
    marksOf(pool, sessionIds),
    eventsAbout(pool, { ...scope, sessionIds }),
    readStates(sessionIds),
    readLinks(sessionIds),
    correctionsOf(pool, scope, sessionIds),
  ])
  const ownSessionIds = new Set(sessionIds)
  const linkOf = new Map(links.map(({ session_id, ...link }) => [session_id, link]))
  const visitorIds = [...new Set(sessions.flatMap(({ visitor_id }) => visitor_id ?? []))]
  return {
    object: 'person_export',
    visitors: await visitorsJson(pool, scope, { visitorIds, person }),
    corrections: corrections.map(
      ({ kind, visitor_id, other_visitor_id, session_ids, reason, corrected_at }) => ({
        kind,
        visitor_id,
        other_visitor_id,
        reason,
        // A correction may also name sessions of other people.
        session_ids: session_ids.filter((id) => ownSessionIds.has(id)),
        corrected_at: iso(corrected_at),
      }),
    ),
    sessions: sessions.map(({ session_id: id, visitor_id }) => ({
      id,
      visitor_id,
      client_users: (users.get(id) ?? []).map(({ client_user_id, event_id }) => ({
        client_user_id,
        event_id,
      })),
      decisions: decisions.get(id) ?? [],
      marks: (marks.get(id) ?? []).map(({ mark_id, label, reason, marked_at, is_removed }) => ({
        id: mark_id,
        label,
        reason,
        marked_at: iso(marked_at),
        is_removed,
      })),
      webhook_events: webhooks
        .filter(({ subject_id }) => subject_id === id)
        .map((event) => ({
          id: event.id,
          type: event.type,
          created_at: iso(event.created_at),
          deliveries: event.deliveries,
          data: JSON.parse(event.data),
        })),
      state: states.get(id) ?? null,
      link: linkJson(linkOf.get(id)),
    })),
  }
}

// Exports only the ids of a user's visitors, because other people may share those.
async function visitorsJson(
  db: Db,
  scope: DataScope,
  { visitorIds, person }: { visitorIds: string[]; person: Person },
): Promise<object[]> {
  if (!('visitorId' in person)) return visitorIds.map((id) => ({ id }))
  const rows = await Promise.all(visitorIds.map((id) => findVisitor(db, scope, id)))
  return rows.flatMap((row) => {
    if (!row) return []
    const { activity: _, first_seen_at, last_seen_at, ...visitor } = row
    return [{ ...visitor, first_seen_at: iso(first_seen_at), last_seen_at: iso(last_seen_at) }]
  })
}

function linkJson(
  link: { linked_at: number; merged_at: number | null } | undefined,
): object | null {
  if (!link) return null
  const { linked_at, merged_at } = link
  return {
    ...link,
    linked_at: iso(linked_at),
    merged_at: merged_at === null ? null : iso(merged_at),
  }
}
