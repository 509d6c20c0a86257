import { createSecretKey, type KeyObject } from 'node:crypto'
import type pg from 'pg'
import type { Keyring } from '../crypto/keyring.ts'
import { dataKeyBytes } from '../crypto/sealing.ts'
import { unavailable } from '../errors/errors.ts'
import { createGroupCommit } from '../flow/group-commit.ts'
import { type Clock, type Random, type SessionId, timeOrderedId } from '../ids.ts'
import { createLru } from '../lru.ts'
import type { Part } from '../postgres/arrays.ts'
import {
  type DataKeyRow,
  type FoundKey,
  findDataKeys,
  insertDataKeys,
  openDataKey,
  putDataKeys,
  sealDataKey,
} from './data-key-table.ts'
import { createPrefetch } from './prefetch.ts'

export interface DataKeys {
  /** null where the session has none (any more); undefined where it was not looked up. */
  get(sessionId: string): KeyObject | null | undefined
  /** Looks up those that are not in memory. A session without a key stays unknown, since it may be given one. */
  find(sessionIds: readonly string[]): Promise<void>
  /** Looks up those of encrypted records: a session without a key has none any more. */
  load(sessionIds: readonly string[]): Promise<void>
  /**
   * Makes the keys that are missing, and looks up the others: `get` is not undefined afterwards, and null for an
   * erased session alone. undefined = all are in memory. Rejects with 503 while the database does not answer.
   */
  ensure(sessionIds: readonly string[]): Promise<void> | undefined
  /**
   * The id of a new session, with its key. With Kafka the key is stored by then, or it rejects with 503. On the
   * embedded log the append of the session's first records stores it: where that fails, they must not be appended
   * again.
   */
  newSession(): Promise<SessionId> | SessionId
  /** Forgets the key of a session whose first records were not appended. */
  giveUp(sessionId: string): void
  /** What is to be stored together with the records. */
  storedWith(records: readonly { key: string }[]): Part[]
  /** Sessions that may have been erased, in whatever process; undefined = any may. */
  forget(sessionIds: readonly string[] | undefined): void
}

interface DataKeysOptions {
  pool: pg.Pool
  keyring: Keyring
  random: Random
  clock: Clock
  // Whether the log is in the same database, and stores keys with its records. Default: it does not.
  isLogEmbedded?: boolean
  // How many keys are kept in memory (default 20,000): as many as documents of a process, and more than any batch.
  max?: number
}

// So long after its last use a key is gone from memory.
const unusedMs = 60 * 60 * 1000
const maxTogether = 1000

interface NewKey {
  key: KeyObject
  row: DataKeyRow
}

interface DrawnSession extends NewKey {
  sessionId: SessionId
}

function refuse(cause: unknown): never {
  throw unavailable(cause)
}

/**
 * Keys of sessions, kept in memory. New ones that are asked for while a statement is under way are the next
 * statement.
 */
export function createDataKeys(options: DataKeysOptions): DataKeys {
  const { pool, keyring, clock, isLogEmbedded = false, max = 20_000 } = options
  const known = createLru<string, { key: KeyObject | null }>(max, lifetime(clock))
  const unstored = new Map<string, DataKeyRow>()
  const groups = createGroupCommit({ write, maxRecords: maxTogether })
  const prefetch = createPrefetch({ make: drawStored, clock })

  function note(found: FoundKey[]): void {
    for (const one of found) {
      const key = openDataKey(one, keyring)
      known.set(one.session_id, { key: key ? createSecretKey(key) : null })
    }
  }

  async function find(sessionIds: readonly string[]): Promise<void> {
    const missing = sessionIds.filter((id) => !known.has(id))
    if (missing.length > 0) note(await findDataKeys(pool, missing))
  }

  async function write(sessionIds: string[]): Promise<boolean[]> {
    const drawn = [...new Set(sessionIds)].map((id) => drawKey(id, options))
    const { inserted, found } = await insertOrFind(pool, drawn)
    for (const key of inserted) remember(key)
    note(found)
    return sessionIds.map(() => true)
  }

  async function drawStored(count: number): Promise<DrawnSession[]> {
    const drawn = Array.from({ length: count }, () => drawSession(options))
    await insertDataKeys(pool, rowsOf(drawn)).catch(refuse)
    return drawn
  }

  function ensure(sessionIds: readonly string[]): Promise<void> | undefined {
    // What was not there when it was looked up may be made now.
    const missing = sessionIds.filter((id) => !known.get(id)?.key)
    if (missing.length === 0) return undefined
    for (const id of missing) known.delete(id)
    return groups.append(missing).then(() => undefined, refuse)
  }

  const remember = ({ key, row }: NewKey) => known.set(row.session_id, { key })

  function begin(drawn: DrawnSession): SessionId {
    remember(drawn)
    return drawn.sessionId
  }

  return {
    get: (sessionId) => known.get(sessionId)?.key,
    find,
    async load(sessionIds) {
      await find(sessionIds)
      for (const id of sessionIds) if (!known.has(id)) known.set(id, { key: null })
    },
    ensure,
    newSession() {
      if (!isLogEmbedded) return prefetch.take().then(begin)
      const drawn = drawSession(options)
      unstored.set(drawn.sessionId, drawn.row)
      return begin(drawn)
    },
    giveUp(sessionId) {
      unstored.delete(sessionId)
      known.delete(sessionId)
    },
    storedWith(records) {
      if (unstored.size === 0) return []
      const rows = new Set(records.flatMap(({ key }) => unstored.get(key) ?? []))
      for (const { session_id } of rows) unstored.delete(session_id)
      return putDataKeys([...rows])
    },
    forget(sessionIds) {
      if (!sessionIds) known.clear()
      else for (const id of sessionIds) known.delete(id)
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

/** Stores the keys of sessions that have none, and finds those that another process has stored. */
async function insertOrFind(
  pool: pg.Pool,
  drawn: NewKey[],
): Promise<{ inserted: NewKey[]; found: FoundKey[] }> {
  const inserted: NewKey[] = []
  const found: FoundKey[] = []
  // A row that another process writes at the same time is neither written nor found the first time.
  for (let left = drawn; left.length > 0; ) {
    const rows = rowsOf(left)
    const written = await insertDataKeys(pool, rows)
    const others = rows.flatMap(({ session_id: id }) => (written.has(id) ? [] : id))
    const stored = others.length > 0 ? await findDataKeys(pool, others) : []
    const settled = new Set([...written, ...stored.map(({ session_id }) => session_id)])
    inserted.push(...left.filter(({ row }) => written.has(row.session_id)))
    found.push(...stored)
    left = left.filter(({ row }) => !settled.has(row.session_id))
  }
  return { inserted, found }
}

type Drawing = Pick<DataKeysOptions, 'keyring' | 'random' | 'clock'>

function drawSession(options: Drawing): DrawnSession {
  const sessionId = timeOrderedId('sid', options.clock(), options.random)
  return { sessionId, ...drawKey(sessionId, options) }
}

function drawKey(sessionId: string, { keyring, random, clock }: Drawing): NewKey {
  const key = random(dataKeyBytes)
  const made_at = clock()
  return {
    // Several times as quick as from bytes, each time that it is used.
    key: createSecretKey(key),
    row: {
      session_id: sessionId,
      made_at,
      sealed_key: sealDataKey(key, { sessionId, keyring, random, now: made_at }),
    },
  }
}
