import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import type { DataKeys } from '../../infra/event-store/data-keys.ts'
import { timeOrderedId } from '../../infra/ids.ts'

export interface MemoryDataKeys extends DataKeys {
  /** As where another process erased them. */
  erase(...sessionIds: string[]): void
}

/** Keys without a database; all processes that share one see the same. */
export function createMemoryDataKeys(): MemoryDataKeys {
  const keys = new Map<string, KeyObject | null>()
  return {
    get: (sessionId) => keys.get(sessionId),
    async find() {},
    async load(sessionIds) {
      for (const id of sessionIds) if (!keys.has(id)) keys.set(id, null)
    },
    ensure(sessionIds) {
      for (const id of sessionIds) if (!keys.has(id)) keys.set(id, createSecretKey(randomBytes(32)))
      return undefined
    },
    newSession() {
      const sessionId = timeOrderedId('sid', Date.now(), randomBytes)
      keys.set(sessionId, createSecretKey(randomBytes(32)))
      return sessionId
    },
    discard: (sessionId) => void keys.delete(sessionId),
    takeInserts: () => [],
    forget: () => {},
    erase(...sessionIds) {
      for (const id of sessionIds) keys.set(id, null)
    },
  }
}
