import type pg from 'pg'
import { type CommandDeps, newId } from '../../infra/event-store/decide.ts'
import { sessionsToMark, sessionsWithMark } from '../../projections/sessions/marks.ts'
import type { StoredMark } from '../../projections/sessions/tables.ts'
import { eventTopics } from '../../schemas/events.ts'
import { decideMark, decideUnmark, type MarkCommand, type MarkSessions, maxMarked } from './decide.ts'

type MarkDeps = Omit<CommandDeps, 'keyring'> & { pool: pg.Pool }

/** The rows of the mark, one for each session. ApiError: 422 as `decideMark`. */
export async function markSessions(
  { decide, clock, pool, ...deps }: MarkDeps,
  command: Omit<MarkSessions, 'markId' | 'now'>,
): Promise<StoredMark[]> {
  const { scope, named } = command
  const now = clock()
  const markId = newId('mrk', { ...deps, now })
  await decide({
    ...streamOf(markId),
    load: async (tx) => ({
      sessions: await sessionsToMark(tx, scope, { named, limit: maxMarked + 1 }),
      marked: await sessionsWithMark(tx, scope, markId),
    }),
    decide: (state) => decideMark(state, { ...command, markId, now }),
  })
  return sessionsWithMark(pool, scope, markId)
}

/** The rows that the mark had. ApiError: 404. */
export async function unmarkSessions(
  { decide, clock }: Pick<MarkDeps, 'decide' | 'clock'>,
  { scope, markId }: Omit<MarkCommand, 'now'>,
): Promise<StoredMark[]> {
  let rows: StoredMark[] = []
  await decide({
    ...streamOf(markId),
    async load(tx) {
      const all = await sessionsWithMark(tx, scope, markId)
      rows = all.filter(({ is_removed }) => !is_removed)
      return rows.map(({ session_id }) => session_id)
    },
    decide: (sessions) => decideUnmark(sessions, { scope, markId, now: clock() }),
  })
  return rows
}

// A visitor's sessions are in all partitions, and so are those of a mark.
function streamOf(markId: string) {
  const topic = eventTopics.SessionMarked
  return { topic, projection: 'sessions', key: markId, locks: [`mark:${markId}`], reads: 'topic' as const }
}
