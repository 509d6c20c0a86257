import { timeOfId } from '../../infra/ids.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { findMarksOf, findUserChanges } from './selected-sessions.ts'
import { readEvent } from './stored-event.ts'
import { maxEarlierDecisions } from './tables.ts'

export const timelineKinds = [
  ...(['opened', 'document_opened', 'data_received', 'decided'] as const),
  ...(['user_changed', 'marked'] as const),
] as const

export interface TimelineEntry {
  kind: (typeof timelineKinds)[number]
  /** Epoch milliseconds. */
  at: number
  /** Decision of the entry; otherwise null. */
  event_id: string | null
  /** URL of the document, reason of the decision, user id (null = removed) or label. */
  value: string | null
}

interface SessionDocument {
  opened_at: number
  url: string
}

/** Returns what happened in the session, oldest first, with the newest decisions up to the limit. */
export async function findTimeline(
  db: Db,
  { id, created_at }: { id: string; created_at: number },
  documents: SessionDocument[],
): Promise<TimelineEntry[]> {
  const [decisions, users, marks] = await Promise.all([
    findNewestDecisions(db, id),
    findUserChanges(db, [id]),
    findMarksOf(db, [id]),
  ])
  const entry = (
    kind: TimelineEntry['kind'],
    at: number,
    { event_id = null, value = null }: Partial<TimelineEntry> = {},
  ) => ({ kind, at, event_id, value })
  const dataTimes = new Set(decisions.map(({ observed_at }) => observed_at))
  const entries = [
    entry('opened', created_at),
    // Documents whose opening was never received have no URL.
    ...documents.flatMap(({ opened_at, url }) =>
      url === '' ? [] : [entry('document_opened', opened_at, { value: url })],
    ),
    ...[...dataTimes].map((at) => entry('data_received', at)),
    ...decisions.map(({ evaluated_at, event_id, reason }) =>
      entry('decided', evaluated_at, { event_id, value: reason }),
    ),
    ...(users.get(id) ?? []).map(({ event_id, client_user_id }) =>
      entry('user_changed', timeOfId(event_id), { value: client_user_id }),
    ),
    ...(marks.get(id) ?? [])
      .filter(({ is_removed }) => !is_removed)
      .map(({ marked_at, label }) => entry('marked', marked_at, { value: label })),
  ]
  // The sort is stable, so entries of the same millisecond stay in the order of their kinds.
  return entries.toSorted((a, b) => a.at - b.at)
}

async function findNewestDecisions(db: Db, sessionId: string) {
  const { rows } = await db.query<{ event: Buffer }>({
    name: 'session-timeline',
    text: `select event from read.decisions where session_id = $1 order by log_offset desc limit ${maxEarlierDecisions + 1}`,
    values: [sessionId],
  })
  return rows.toReversed().map(({ event }) => readEvent(event))
}
