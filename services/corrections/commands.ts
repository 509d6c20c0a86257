import type { DomainEvent } from '../../infra/event-store/codec.ts'
import type { CommandDeps } from '../../infra/event-store/decide.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { isMove, type SessionMove } from '../../projections/sessions/apply-moves.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { eventTopics } from '../../schemas/events.ts'
import {
  decideMerger,
  decideSplit,
  type MergeVisitors,
  maxMoved,
  type SplitVisitor,
  splitVisitorId,
} from './decide.ts'

/** Who visitors are, as scoring knows them. */
export interface LinkedVisitors {
  /** Nobody links a session before the end of the transaction. */
  hold(tx: Tx): Promise<void>
  /** Sessions of the visitor, at most `limit`. */
  sessionsOf(tx: Tx, visitor: { scope: DataScope; visitorId: string; limit?: number }): Promise<string[]>
  /** Gives sessions of one visitor to another, and learns why. */
  move(tx: Tx, moves: SessionMove[]): Promise<void>
}

export interface CorrectionDeps extends Pick<CommandDeps, 'decide' | 'clock'> {
  visitors: LinkedVisitors
}

/** Returns when read models show it. */
export async function splitVisitor(
  { decide, clock, visitors }: CorrectionDeps,
  command: Omit<SplitVisitor, 'now'>,
): Promise<void> {
  const { scope, visitorId } = command
  await decide({
    ...moving(visitors, scope),
    async load(tx) {
      await visitors.hold(tx)
      const sessions = await visitors.sessionsOf(tx, { scope, visitorId })
      const parted = splitVisitorId(visitorId, command.sessionIds)
      return { sessions, parted: await visitors.sessionsOf(tx, { scope, visitorId: parted }) }
    },
    decide: (sessions) => decideSplit(sessions, { ...command, now: clock() }),
  })
}

/** Returns the moved sessions when read models show it. */
export async function mergeVisitors(
  { decide, clock, visitors }: CorrectionDeps,
  command: Omit<MergeVisitors, 'now'>,
): Promise<string[]> {
  const { scope, visitorId, otherId } = command
  const events = await decide({
    ...moving(visitors, scope),
    async load(tx) {
      await visitors.hold(tx)
      const [kept] = await visitors.sessionsOf(tx, { scope, visitorId, limit: 1 })
      const sessions = await visitors.sessionsOf(tx, { scope, visitorId: otherId, limit: maxMoved + 1 })
      return { isKnown: kept !== undefined, sessions }
    },
    decide: (state) => decideMerger(state, { ...command, now: clock() }),
  })
  return events.flatMap((event) => (event.type === 'VisitorMerged' ? [event.data.session_id] : []))
}

// The state is scoring's, which is held: no read model has to be read up to anywhere before.
function moving(visitors: LinkedVisitors, { organizationId }: DataScope) {
  return {
    locks: [`visitors:${organizationId}`],
    topic: eventTopics.VisitorSplit,
    key: organizationId,
    projection: 'sessions',
    write: (tx: Tx, events: DomainEvent[]) =>
      visitors.move(
        tx,
        events.filter(isMove).map(({ data }) => data),
      ),
  }
}
