import type pg from 'pg'
import { type CommandDeps, newId } from '../../infra/event-store/decide.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { currentMarks, sessionsToMark, sessionsWithMark } from '../../projections/sessions/marks.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import type { SessionSelector } from '../../projections/sessions/selected-sessions.ts'
import type { StoredMark } from '../../projections/sessions/tables.ts'
import { eventTopics } from '../../schemas/events.ts'
import {
  decideMark,
  decideUnmark,
  type MarkCommand,
  type MarkSessions,
  type MarkState,
  maxSessionsPerMark,
} from './decide.ts'

type MarkDeps = Omit<CommandDeps, 'keyring'> & { pool: pg.Pool }

/**
 * Marks the sessions. Returns the rows of the mark, one per changed session, or the rows of the newest existing mark if
 * no session changes. Throws the errors of `decideMark`.
 */
export async function markSessions(
  { decide, clock, pool, ...deps }: MarkDeps,
  command: Omit<MarkSessions, 'markId' | 'now'>,
): Promise<StoredMark[]> {
  const { scope, target } = command
  const now = clock()
  const markId = newId('mrk', { ...deps, now })
  let newest: string | undefined
  const events = await decide({
    ...markStream(markId),
    async load(tx) {
      const sessions = await sessionsToMark(tx, scope, { target, limit: maxSessionsPerMark + 1 })
      const marks = await currentMarks(tx, scope, sessions)
      newest = newestIn(marks)
      return { sessions, marks }
    },
    decide: (state) => decideMark(state, { ...command, markId, now }),
  })
  return sessionsWithMark(pool, scope, events.length === 0 && newest ? newest : markId)
}

function newestIn(marks: MarkState['marks']): string | undefined {
  const present = [...marks.values()].filter((mark) => mark !== null)
  return present.toSorted((a, b) => b.marked_at - a.marked_at)[0]?.id
}

/** Returns the cost in units, which depends on the number of sessions because each needs an event. */
export async function markingCost(
  db: Db,
  scope: DataScope,
  target: SessionSelector,
): Promise<number> {
  if ('sessionIds' in target) return unitsOf(target.sessionIds.length)
  return unitsOf((await sessionsToMark(db, scope, { target, limit: maxSessionsPerMark })).length)
}

export async function unmarkingCost(db: Db, scope: DataScope, markId: string): Promise<number> {
  return unitsOf(
    (await sessionsWithMark(db, scope, markId)).filter(({ is_removed }) => !is_removed).length,
  )
}

const unitsOf = (sessions: number): number => Math.ceil(sessions / 100)

/** Removes the mark from its sessions. Returns the removed rows. Throws 404 if there are none. */
export async function unmarkSessions(
  { decide, clock }: Pick<MarkDeps, 'decide' | 'clock'>,
  { scope, markId }: Omit<MarkCommand, 'now'>,
): Promise<StoredMark[]> {
  let rows: StoredMark[] = []
  await decide({
    ...markStream(markId),
    async load(tx) {
      const stored = await sessionsWithMark(tx, scope, markId)
      rows = stored.filter(({ is_removed }) => !is_removed)
      return rows.map(({ session_id }) => session_id)
    },
    decide: (sessions) => decideUnmark(sessions, { scope, markId, now: clock() }),
  })
  return rows
}

// The sessions of a mark are in many partitions, so commands wait for the whole topic.
function markStream(markId: string) {
  const topic = eventTopics.SessionMarked
  return {
    topic,
    projection: 'sessions',
    key: markId,
    locks: [`mark:${markId}`],
    reads: 'topic' as const,
  }
}
