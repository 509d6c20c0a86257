import { createSecretKey, type KeyObject } from 'node:crypto'
import type pg from 'pg'
import type { Keyring } from '../crypto/keyring.ts'
import { dataKeyBytes } from '../crypto/sealing.ts'
import { unavailable } from '../errors/errors.ts'
import { createBatcher } from '../flow/batcher.ts'
import { type Clock, type Random, type SessionId, timeOrderedId } from '../ids.ts'
import { createLru } from '../lru.ts'
import type { Cte } from '../postgres/arrays.ts'
import {
  type DataKeyRow,
  insertDataKeys,
  loadDataKeys,
  newDataKeyInserts,
  openDataKey,
  type StoredKey,
  sealDataKey,
} from './data-key-table.ts'
import { createPrefetch } from './prefetch.ts'

/** A cache of the sessions' data keys, over `tidegate_keys.session_keys`. */
export interface DataKeys {
  /** Returns the key from memory: null if the session has none (erased), undefined if it was not looked up. */
  get(sessionId: string): KeyObject | null | undefined
  /** Loads keys that are not in memory. `get` stays undefined for a session without a key, which may still get one. */
  load(sessionIds: readonly string[]): Promise<void>
  /** Loads the keys of encrypted records. A session without a key was erased, so `get` then returns null. */
  loadOrMarkErased(sessionIds: readonly string[]): Promise<void>
  /**
   * Creates missing keys and loads the others: `get` then returns a key, or null for an erased session. Returns
   * undefined if all are in memory. Rejects with 503 while the database is unavailable.
   */
  ensure(sessionIds: readonly string[]): Promise<void> | undefined
  /**
   * Returns the id of a new session, whose key is in memory. With Kafka the key is already stored, or the call rejects
   * with 503. With the embedded log the session's first append stores it, and must not be retried if it fails.
   */
  newSession(): Promise<SessionId> | SessionId
  /** Drops the key of a new session whose first records were not appended. */
  discard(sessionId: string): void
  /** Removes and returns the statements that insert the new keys of the records' sessions, to run with the append. */
  takeInserts(records: readonly { key: string }[]): Cte[]
  /** Removes keys from memory after an erasure in any process. undefined = all keys. */
  evict(sessionIds: readonly string[] | undefined): void
}

interface DataKeysOptions {
  pool: pg.Pool
  keyring: Keyring
  random: Random
  clock: Clock
  // True if the log is in the same database, which then stores new keys with its records. Default: false.
  isLogEmbedded?: boolean
  // Keys kept in memory (default 20,000): enough for all open documents of a process, and for any batch.
  maxCached?: number
}

// A key that was not used for this long is dropped from memory.
const unusedMs = 60 * 60 * 1000
const maxPerInsert = 1000

interface NewKey {
  key: KeyObject
  row: DataKeyRow
}

interface NewSession extends NewKey {
  sessionId: SessionId
}

function throwUnavailable(cause: unknown): never {
  throw unavailable(cause)
}

/** Creates the cache. Keys requested while an insert is running go into the next one. */
export function createDataKeys(options: DataKeysOptions): DataKeys {
  const { pool, keyring, clock, isLogEmbedded = false, maxCached = 20_000 } = options
  const cache = createLru<string, { key: KeyObject | null }>(maxCached, lifetime(clock))
  const pendingInserts = new Map<string, DataKeyRow>()
  const inserts = createBatcher({ runBatch: createKeys, maxItems: maxPerInsert })
  const prefetch = createPrefetch({ create: createStoredSessions, clock })

  function cacheStored(rows: StoredKey[]): void {
    for (const row of rows) {
      const key = openDataKey(row, keyring)
      cache.set(row.session_id, { key: key ? createSecretKey(key) : null })
    }
  }

  async function load(sessionIds: readonly string[]): Promise<void> {
    const missing = sessionIds.filter((id) => !cache.has(id))
    if (missing.length > 0) cacheStored(await loadDataKeys(pool, missing))
  }

  async function createKeys(sessionIds: string[]): Promise<boolean[]> {
    const keys = [...new Set(sessionIds)].map((id) => generateKey(id, options))
    const { inserted, existing } = await insertOrLoad(pool, keys)
    for (const key of inserted) cacheNew(key)
    cacheStored(existing)
    return sessionIds.map(() => true)
  }

  async function createStoredSessions(count: number): Promise<NewSession[]> {
    const sessions = Array.from({ length: count }, () => generateSession(options))
    await insertDataKeys(pool, rowsOf(sessions)).catch(throwUnavailable)
    return sessions
  }

  function ensure(sessionIds: readonly string[]): Promise<void> | undefined {
    // Also retries cached misses: the session may get its key now.
    const missing = sessionIds.filter((id) => !cache.get(id)?.key)
    if (missing.length === 0) return undefined
    for (const id of missing) cache.delete(id)
    return inserts.run(missing).then(() => undefined, throwUnavailable)
  }

  const cacheNew = ({ key, row }: NewKey) => cache.set(row.session_id, { key })

  function cacheSession(session: NewSession): SessionId {
    cacheNew(session)
    return session.sessionId
  }

  return {
    get: (sessionId) => cache.get(sessionId)?.key,
    load,
    async loadOrMarkErased(sessionIds) {
      await load(sessionIds)
      for (const id of sessionIds) if (!cache.has(id)) cache.set(id, { key: null })
    },
    ensure,
    newSession() {
      if (!isLogEmbedded) return prefetch.take().then(cacheSession)
      const session = generateSession(options)
      pendingInserts.set(session.sessionId, session.row)
      return cacheSession(session)
    },
    discard(sessionId) {
      pendingInserts.delete(sessionId)
      cache.delete(sessionId)
    },
    takeInserts(records) {
      if (pendingInserts.size === 0) return []
      const rows = new Set(records.flatMap(({ key }) => pendingInserts.get(key) ?? []))
      for (const { session_id } of rows) pendingInserts.delete(session_id)
      return newDataKeyInserts([...rows])
    },
    evict(sessionIds) {
      if (!sessionIds) cache.clear()
      else for (const id of sessionIds) cache.delete(id)
    },
  }
}

const rowsOf = (keys: NewKey[]): DataKeyRow[] => keys.map(({ row }) => row)

const lifetime = (clock: Clock) => ({
  ttl: unusedMs,
  ttlAutopurge: true,
  updateAgeOnGet: true,
  perf: { now: clock },
  ttlResolution: 0,
})

/** Inserts the keys of sessions without a row, and loads those that another process has inserted. */
async function insertOrLoad(
  pool: pg.Pool,
  keys: NewKey[],
): Promise<{ inserted: NewKey[]; existing: StoredKey[] }> {
  const inserted: NewKey[] = []
  const existing: StoredKey[] = []
  // Loops because a row that another process is inserting right now can neither be inserted nor read.
  for (let pending = keys; pending.length > 0; ) {
    const rows = rowsOf(pending)
    const written = await insertDataKeys(pool, rows)
    const conflicts = rows.flatMap(({ session_id: id }) => (written.has(id) ? [] : id))
    const stored = conflicts.length > 0 ? await loadDataKeys(pool, conflicts) : []
    const settled = new Set([...written, ...stored.map(({ session_id }) => session_id)])
    inserted.push(...pending.filter(({ row }) => written.has(row.session_id)))
    existing.push(...stored)
    pending = pending.filter(({ row }) => !settled.has(row.session_id))
  }
  return { inserted, existing }
}

type GenerateOptions = Pick<DataKeysOptions, 'keyring' | 'random' | 'clock'>

function generateSession(options: GenerateOptions): NewSession {
  const sessionId = timeOrderedId('sid', options.clock(), options.random)
  return { sessionId, ...generateKey(sessionId, options) }
}

function generateKey(sessionId: string, { keyring, random, clock }: GenerateOptions): NewKey {
  const key = random(dataKeyBytes)
  const made_at = clock()
  return {
    // Each use of a KeyObject is several times faster than a use of raw bytes.
    key: createSecretKey(key),
    row: {
      session_id: sessionId,
      made_at,
      sealed_key: sealDataKey(key, { sessionId, keyring, random, now: made_at }),
    },
  }
}
