import type { RecordedEvent } from '../../infra/event-store/codec.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { applyClientUsers, type ClientUserEvent } from './apply-client-users.ts'
import { insertDecisions, type ScoredEvent } from './apply-decisions.ts'
import { upsertSessions } from './apply-sessions.ts'
import { upsertVisitors } from './apply-visitors.ts'

/**
 * Applies one partition's events. All of a session's events are in one partition, so the offset says which decision
 * is its latest; a visitor's sessions are in many, so there the evaluation time says it.
 */
export async function apply(tx: Tx, events: RecordedEvent[]): Promise<void> {
  const scored = events.filter((event): event is ScoredEvent => event.type === 'SessionScored')
  const users = events.filter(isClientUserEvent)
  if (scored.length > 0) await applyScored(tx, scored)
  if (users.length > 0) await applyClientUsers(tx, users)
}

async function applyScored(tx: Tx, scored: ScoredEvent[]): Promise<void> {
  const fresh = await insertDecisions(tx, scored)
  if (fresh.length === 0) return
  await upsertSessions(tx, fresh)
  await upsertVisitors(tx, fresh)
}

function isClientUserEvent(event: RecordedEvent): event is ClientUserEvent {
  return event.type === 'ClientUserAttached' || event.type === 'ClientUserCleared'
}
