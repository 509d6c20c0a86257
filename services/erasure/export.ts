import { iso, isoOrNull } from '../../infra/iso.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { correctionsOf } from '../../projections/corrections/projection.ts'
import { findVisitor } from '../../projections/sessions/queries.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import {
  findAllDecisions,
  findMarksOf,
  findSelectedSessions,
  findUserChanges,
  type SessionSelector,
} from '../../projections/sessions/selected-sessions.ts'
import { findEventsAboutSessions } from '../../projections/webhooks/events-about-sessions.ts'

export interface ExportDeps {
  pool: Db
  /** Returns scoring states by session id. Only sessions of the last day have one. */
  readStates: (sessionIds: string[]) => Promise<Map<string, object>>
  /** Returns the links between sessions and visitors. */
  readLinks: (
    sessionIds: string[],
  ) => Promise<{ session_id: string; linked_at: number; merged_at: number | null }[]>
}

/** Returns all readable data of a person as described by `exportSchema`; undefined if the person is unknown. */
export async function exportPerson(
  { pool, readStates, readLinks }: ExportDeps,
  { scope, person }: { scope: DataScope; person: SessionSelector },
): Promise<object | undefined> {
  const sessions = await findSelectedSessions(pool, scope, person)
  if (sessions.length === 0) return undefined
  const sessionIds = sessions.map(({ session_id }) => session_id)
  const [decisions, users, marks, webhooks, states, links, corrections] = await Promise.all([
    findAllDecisions(pool, sessionIds),
    findUserChanges(pool, sessionIds),
    findMarksOf(pool, sessionIds),
    findEventsAboutSessions(pool, { ...scope, sessionIds }),
    readStates(sessionIds),
    readLinks(sessionIds),
    correctionsOf(pool, scope, sessionIds),
  ])
  const exportedSessionIds = new Set(sessionIds)
  const linksBySession = new Map(links.map(({ session_id, ...link }) => [session_id, link]))
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
        // A correction may also have moved sessions of other people.
        session_ids: session_ids.filter((id) => exportedSessionIds.has(id)),
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
      link: linkJson(linksBySession.get(id)),
    })),
  }
}

// Exports only the ids of a user's visitors, because other people may share the visitors.
async function visitorsJson(
  db: Db,
  scope: DataScope,
  { visitorIds, person }: { visitorIds: string[]; person: SessionSelector },
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
    merged_at: isoOrNull(merged_at),
  }
}
