import { LRUCache } from 'lru-cache'
import type { SessionState } from './session-state.ts'

/** A state as a transaction wrote it: the row names that one as `xmin` until another writes it. */
export interface WrittenState {
  xmin: string
  state: SessionState
}

/** The newest states that this process wrote, by session id. */
export type WrittenStates = LRUCache<string, WrittenState>

// Some kilobytes each.
const mostWritten = 2000

export const createWrittenStates = (): WrittenStates => new LRUCache({ max: mostWritten })

/** What is written of a session after its end is seldom read again. */
export function noteWritten(written: WrittenStates, states: SessionState[], xmin: string): void {
  for (const state of states) {
    if (state.final_at === null) written.set(state.session_id, { xmin, state })
    else written.delete(state.session_id)
  }
}

export function writtenOf(written: WrittenStates, sessionIds: string[]): Map<string, WrittenState> {
  const found = sessionIds.map((id) => [id, written.get(id)] as const)
  return new Map(found.flatMap(([id, one]) => (one ? [[id, one] as const] : [])))
}
