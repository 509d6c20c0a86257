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
  decideMerge,
  decideSplit,
  type MergeVisitors,
  maxSessionsPerCorrection,
  type SplitVisitor,
  splitVisitorId,
} from './decide.ts'

/** Links of sessions to visitors, which scoring maintains. */
export interface VisitorLinks {
  /** Blocks scoring, and therefore linking, until the transaction ends. */
  lockLinks(tx: Tx): Promise<void>
  /** Returns sessions of the visitor, at most `limit`. */
  sessionsOf(
    tx: Tx,
    visitor: { scope: DataScope; visitorId: string; limit?: number },
  ): Promise<string[]>
  /** Moves sessions of one visitor to another. */
  reassign(tx: Tx, reassigned: SessionReassignment[]): Promise<void>
}

export interface CorrectionDeps extends Pick<CommandDeps, 'decide' | 'clock'> {
  visitors: VisitorLinks
}

export type SplitResult = Pick<
  CorrectionRow,
  'other_visitor_id' | 'session_ids' | 'reason' | 'corrected_at'
>

/** Splits a visitor. Resolves once read models have applied the split. A repeated command returns the first split. */
export async function splitVisitor(
  { decide, clock, visitors }: CorrectionDeps,
  command: Omit<SplitVisitor, 'now'>,
): Promise<SplitResult> {
  const { scope, visitorId, sessionIds } = command
  const newVisitorId = splitVisitorId(visitorId, sessionIds)
  let earlierSplit: SplitResult | undefined
  const events = await decide({
    ...reassignmentDefaults(visitors, scope),
    alsoReads: [
      { projection: 'corrections', topic: eventTopics.VisitorCorrected, key: scope.organizationId },
    ],
    async load(tx) {
      earlierSplit = await findSplit(tx, { scope, visitorId, newVisitorId })
      await visitors.lockLinks(tx)
      const sessions = await visitors.sessionsOf(tx, { scope, visitorId })
      const alreadySplit = await visitors.sessionsOf(tx, { scope, visitorId: newVisitorId })
      return { sessions, alreadySplit }
    },
    decide: (state) => decideSplit(state, { ...command, now: clock() }),
  })
  const [split = earlierSplit] = events.flatMap((event) =>
    event.type === 'VisitorCorrected' ? [event.data] : [],
  )
  if (!split) throw unavailable(new Error(`the read model has no split to ${newVisitorId} yet`))
  return split
}

/** Merges two visitors. Resolves to the moved sessions once read models have applied the merge. */
export async function mergeVisitors(
  { decide, clock, visitors }: CorrectionDeps,
  command: Omit<MergeVisitors, 'now'>,
): Promise<string[]> {
  const { scope, visitorId, mergedVisitorId } = command
  const events = await decide({
    ...reassignmentDefaults(visitors, scope),
    async load(tx) {
      await visitors.lockLinks(tx)
      const [survivorSession] = await visitors.sessionsOf(tx, { scope, visitorId, limit: 1 })
      const sessions = await visitors.sessionsOf(tx, {
        scope,
        visitorId: mergedVisitorId,
        limit: maxSessionsPerCorrection + 1,
      })
      return { hasSurvivor: survivorSession !== undefined, sessions }
    },
    decide: (state) => decideMerge(state, { ...command, now: clock() }),
  })
  return events.flatMap((event) => (event.type === 'VisitorMerged' ? [event.data.session_id] : []))
}

// Corrections read scoring's links, which `lockLinks` locks, and of the read models only `alsoReads`.
function reassignmentDefaults(visitors: VisitorLinks, { organizationId }: DataScope) {
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
