import type pg from 'pg'
import { type CommandDeps, newId } from '../../infra/event-store/decide.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { currentMarks, sessionsToMark, sessionsWithMark } from '../../projections/sessions/marks.ts'
import type { Person } from '../../projections/sessions/person.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import type { StoredMark } from '../../projections/sessions/tables.ts'
import { eventTopics } from '../../schemas/events.ts'
import {
  decideMark,
  decideUnmark,
  type MarkCommand,
  type MarkSessions,
  type MarkState,
  maxMarked,
} from './decide.ts'

type MarkDeps = Omit<CommandDeps, 'keyring'> & { pool: pg.Pool }

/**
 * Returns the rows of the mark, one for each session that it changes; if it changes none, those of the newest mark of the
 * sessions. ApiError: 422 as `decideMark`.
 */
export async function markSessions(
  { decide, clock, pool, ...deps }: MarkDeps,
  command: Omit<MarkSessions, 'markId' | 'now'>,
): Promise<StoredMark[]> {
  const { scope, named } = command
  const now = clock()
  const markId = newId('mrk', { ...deps, now })
  let newest: string | undefined
  const events = await decide({
    ...streamOf(markId),
    async load(tx) {
      const sessions = await sessionsToMark(tx, scope, { named, limit: maxMarked + 1 })
      const marks = await currentMarks(tx, scope, sessions)
      newest = newestIn(marks)
      return { sessions, marks }
    },
    decide: (state) => decideMark(state, { ...command, markId, now }),
  })
  return sessionsWithMark(pool, scope, events.length === 0 && newest ? newest : markId)
}

function newestIn(marks: MarkState['marks']): string | undefined {
  const all = [...marks.values()].filter((mark) => mark !== null)
  return all.toSorted((a, b) => b.marked_at - a.marked_at)[0]?.id
}

/** Returns the units of marking: the events are written one by one. */
export async function priceOfMarking(db: Db, scope: DataScope, named: Person): Promise<number> {
  if ('sessionIds' in named) return unitsOf(named.sessionIds.length)
  return unitsOf((await sessionsToMark(db, scope, { named, limit: maxMarked })).length)
}

export async function priceOfUnmarking(db: Db, scope: DataScope, markId: string): Promise<number> {
  return unitsOf(
    (await sessionsWithMark(db, scope, markId)).filter(({ is_removed }) => !is_removed).length,
  )
}

const unitsOf = (sessions: number): number => Math.ceil(sessions / 100)

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
  return {
    topic,
    projection: 'sessions',
    key: markId,
    locks: [`mark:${markId}`],
    reads: 'topic' as const,
  }
}
