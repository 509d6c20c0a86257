import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import type { DataKeys } from '../../infra/event-store/data-keys.ts'
import { timeOrderedId } from '../../infra/ids.ts'

export interface MemoryDataKeys extends DataKeys {
  /** Erases keys, as if another process did. */
  erase(...sessionIds: string[]): void
}

/** Creates data keys without a database. Processes that share them see the same keys. */
export function createMemoryDataKeys(): MemoryDataKeys {
  const keys = new Map<string, KeyObject | null>()
  return {
    get: (sessionId) => keys.get(sessionId),
    async load() {},
    async loadOrMarkErased(sessionIds) {
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
    evict: () => {},
    erase(...sessionIds) {
      for (const id of sessionIds) keys.set(id, null)
    },
  }
}
