import { sessionLifetimeMs } from '../../../infra/wire/collect/protocol.ts'
import type { SessionState } from './state.ts'

export const idleAfterMs = 30 * 60 * 1000

// Tokens expire after 24 hours. The extra hour keeps the state for bodies that arrive at the last moment.
const finalStateLifetimeMs = sessionLifetimeMs + 60 * 60 * 1000
const dueStepMs = 10 * 60 * 1000

/**
 * Returns the time when the scheduler ends an open session, or deletes the state of a final one, in epoch milliseconds.
 * Rounds up to ten minutes, so that few events change the time.
 */
export function dueAt(
  state: Pick<SessionState, 'created_at' | 'last_activity_at' | 'final_at'>,
): number {
  const { created_at, last_activity_at, final_at } = state
  const endsAt = Math.min(last_activity_at + idleAfterMs, created_at + sessionLifetimeMs)
  const at = final_at === null ? endsAt : created_at + finalStateLifetimeMs
  return Math.ceil(at / dueStepMs) * dueStepMs
}
