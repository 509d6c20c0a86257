import type pg from 'pg'
import { type CommandDeps, newId } from '../../infra/event-store/decide.ts'
import { repeatedMark, sessionsToMark, sessionsWithMark } from '../../projections/sessions/marks.ts'
import type { StoredMark } from '../../projections/sessions/tables.ts'
import { eventTopics } from '../../schemas/events.ts'
import { decideMark, decideUnmark, type MarkCommand, type MarkSessions, maxMarked } from './decide.ts'

type MarkDeps = Omit<CommandDeps, 'keyring'> & { pool: pg.Pool; charge?: ChargeSessions }

/** Charges for as many sessions. ApiError: 429. */
type ChargeSessions = (sessions: number) => Promise<void>

/** Units of marking so many sessions: the events are written one by one. */
export const unitsOf = (sessions: number): number => Math.ceil(sessions / 100)

/** The rows of the mark, one for each session. ApiError: 422 as `decideMark`, and those of `charge`. */
export async function markSessions(
  { decide, clock, pool, charge, ...deps }: MarkDeps,
  command: Omit<MarkSessions, 'markId' | 'now'>,
): Promise<StoredMark[]> {
  const { scope, named } = command
  const now = clock()
  const markId = newId('mrk', { ...deps, now })
  let answered: string = markId
  await decide({
    ...streamOf(markId),
    async load(tx) {
      const sessions = await sessionsToMark(tx, scope, { named, limit: maxMarked + 1 })
      await charge?.(Math.min(sessions.length, maxMarked))
      const marked = await sessionsWithMark(tx, scope, markId)
      const repeated =
        marked.length === 0 ? await repeatedMark(tx, scope, { ...command, sessions }) : undefined
      answered = repeated ?? markId
      return { sessions, marked, isRepeated: repeated !== undefined }
    },
    decide: (state) => decideMark(state, { ...command, markId, now }),
  })
  return sessionsWithMark(pool, scope, answered)
}

/** The rows that the mark had. ApiError: 404, and those of `charge`. */
export async function unmarkSessions(
  { decide, clock, charge }: Pick<MarkDeps, 'decide' | 'clock' | 'charge'>,
  { scope, markId }: Omit<MarkCommand, 'now'>,
): Promise<StoredMark[]> {
  let rows: StoredMark[] = []
  await decide({
    ...streamOf(markId),
    async load(tx) {
      const all = await sessionsWithMark(tx, scope, markId)
      rows = all.filter(({ is_removed }) => !is_removed)
      await charge?.(rows.length)
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
