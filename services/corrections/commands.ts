import { unavailable } from '../../infra/errors/errors.ts'
import type { CommandDeps } from '../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { type CorrectionRow, findSplit } from '../../projections/corrections/projection.ts'
import {
  isReassignment,
  type SessionReassignment,
} from '../../projections/sessions/apply-reassignments.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { eventTopics } from '../../schemas/events.ts'
import {
  decideMerger,
  decideSplit,
  type MergeVisitors,
  maxReassigned,
  type SplitVisitor,
  splitVisitorId,
} from './decide.ts'

/** The visitors of sessions, as scoring knows them. */
export interface LinkedVisitors {
  /** No session is linked before the end of the transaction. */
  hold(tx: Tx): Promise<void>
  /** Sessions of the visitor, at most `limit`. */
  sessionsOf(
    tx: Tx,
    visitor: { scope: DataScope; visitorId: string; limit?: number },
  ): Promise<string[]>
  /** Gives sessions of one visitor to another. */
  reassign(tx: Tx, reassigned: SessionReassignment[]): Promise<void>
}

export interface CorrectionDeps extends Pick<CommandDeps, 'decide' | 'clock'> {
  visitors: LinkedVisitors
}

export type SaidSplit = Pick<
  CorrectionRow,
  'other_visitor_id' | 'session_ids' | 'reason' | 'corrected_at'
>

/** Resolves once read models have it. A repetition returns the first one. */
export async function splitVisitor(
  { decide, clock, visitors }: CorrectionDeps,
  command: Omit<SplitVisitor, 'now'>,
): Promise<SaidSplit> {
  const { scope, visitorId, sessionIds } = command
  const newVisitorId = splitVisitorId(visitorId, sessionIds)
  let before: SaidSplit | undefined
  const events = await decide({
    ...reassigning(visitors, scope),
    alsoReads: [
      { projection: 'corrections', topic: eventTopics.VisitorCorrected, key: scope.organizationId },
    ],
    async load(tx) {
      before = await findSplit(tx, { scope, visitorId, newVisitorId })
      await visitors.hold(tx)
      const sessions = await visitors.sessionsOf(tx, { scope, visitorId })
      return { sessions, parted: await visitors.sessionsOf(tx, { scope, visitorId: newVisitorId }) }
    },
    decide: (sessions) => decideSplit(sessions, { ...command, now: clock() }),
  })
  const [said = before] = events.flatMap((event) =>
    event.type === 'VisitorCorrected' ? [event.data] : [],
  )
  if (!said) throw unavailable(new Error(`the split that made ${newVisitorId} is not readable`))
  return said
}

/** Returns the reassigned sessions once read models have them. */
export async function mergeVisitors(
  { decide, clock, visitors }: CorrectionDeps,
  command: Omit<MergeVisitors, 'now'>,
): Promise<string[]> {
  const { scope, visitorId, otherId } = command
  const events = await decide({
    ...reassigning(visitors, scope),
    async load(tx) {
      await visitors.hold(tx)
      const [known] = await visitors.sessionsOf(tx, { scope, visitorId, limit: 1 })
      const sessions = await visitors.sessionsOf(tx, {
        scope,
        visitorId: otherId,
        limit: maxReassigned + 1,
      })
      return { isKnown: known !== undefined, sessions }
    },
    decide: (state) => decideMerger(state, { ...command, now: clock() }),
  })
  return events.flatMap((event) => (event.type === 'VisitorMerged' ? [event.data.session_id] : []))
}

// The state is scoring's own, which is locked, so no read model has to catch up before.
function reassigning(visitors: LinkedVisitors, { organizationId }: DataScope) {
  return {
    locks: [`visitors:${organizationId}`],
    topic: eventTopics.VisitorSplit,
    key: organizationId,
    projection: 'sessions',
    write: (tx: Tx, events: DomainEvent[]) =>
      visitors.reassign(
        tx,
        events.filter(isReassignment).map(({ data }) => data),
      ),
  }
}
