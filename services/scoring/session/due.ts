import { sessionLifetimeMs } from '../../../infra/wire/collect/protocol.ts'
import type { SessionState } from './state.ts'

export const idleAfterMs = 30 * 60 * 1000

// Tokens of a session die at its 24 hours; what arrives in the last moment still finds its state.
const keepMs = sessionLifetimeMs + 60 * 60 * 1000
const dueStepMs = 10 * 60 * 1000

/**
 * Returns when the state of a session has to be looked at again, epoch milliseconds: an open session is to be ended, a
 * final one to be forgotten. In steps of ten minutes, so that few events change it.
 */
export function dueAt(
  state: Pick<SessionState, 'created_at' | 'last_activity_at' | 'final_at'>,
): number {
  const { created_at, last_activity_at, final_at } = state
  const endsAt = Math.min(last_activity_at + idleAfterMs, created_at + sessionLifetimeMs)
  const at = final_at === null ? endsAt : created_at + keepMs
  return Math.ceil(at / dueStepMs) * dueStepMs
}
