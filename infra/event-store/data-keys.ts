import { createSecretKey, type KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type pg from 'pg'
import type { Keyring } from '../crypto/keyring.ts'
import { dataKeyBytes, seal } from '../crypto/sealing.ts'
import { unavailable } from '../errors/errors.ts'
import type { Clock, Random } from '../ids.ts'
import { createGroupCommit } from '../log/group-commit.ts'
import type { Part } from '../postgres/arrays.ts'
import {
  type DataKeyRow,
  dataKeySealing,
  type FoundKey,
  findDataKeys,
  insertDataKeys,
  openDataKey,
  putDataKeys,
} from './data-key-table.ts'

export interface KeyedSession {
  sessionId: string
  organizationId: string
}

export interface DataKeys {
  // null where the session has none (any more); undefined where it was not looked up.
  get(sessionId: string): KeyObject | null | undefined
  // Looks up those that are not in memory.
  load(sessionIds: readonly string[]): Promise<void>
  // Makes the keys that are missing, and looks up the others: `get` is not undefined afterwards, and null for an erased
  // session alone. undefined = all are in memory. Rejects with 503 while the database does not answer.
  ensure(sessions: readonly KeyedSession[]): Promise<void> | undefined
  // Draws the key of a session that nobody else knows yet. With Kafka it is stored when this resolves. On the embedded
  // log the append of the session's first records stores it: where that fails, they must not be appended again.
  make(session: KeyedSession): Promise<void> | undefined
  // Forgets the key of a session whose first records were not appended.
  unmake(sessionId: string): void
  // What is to be stored together with the records.
  storedWith(records: readonly { key: string }[]): Part[]
  // Sessions that may have been erased, in whatever process; undefined = any may.
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

const maxTogether = 1000

// Keys of sessions, kept in memory. New ones that are asked for while a statement is under way are the next statement.
export function createDataKeys(options: DataKeysOptions): DataKeys {
  const { pool, keyring, random, clock, isLogEmbedded = false, max = 20_000 } = options
  const known = new LRUCache<string, { key: KeyObject | null }>({ max })
  const unstored = new Map<string, DataKeyRow>()
  const groups = createGroupCommit({ write, maxRecords: maxTogether })

  function note(found: FoundKey): void {
    const key = openDataKey(found, keyring)
    known.set(found.session_id, { key: key ? createSecretKey(key) : null })
  }

  // A row that another process writes at the same time is neither written nor found the first time.
  async function write(sessions: KeyedSession[]): Promise<boolean[]> {
    const rows = new Map(sessions.map((session) => [session.sessionId, newRow(session)]))
    for (let left = [...rows.keys()]; left.length > 0; left = left.filter((id) => !known.has(id))) {
      const drawn = left.flatMap((id) => rows.get(id) ?? [])
      const written = await insertDataKeys(
        pool,
        drawn.map(({ row }) => row),
      )
      for (const { key, row } of drawn) if (written.has(row.session_id)) known.set(row.session_id, { key })
      const others = left.filter((id) => !written.has(id))
      if (others.length > 0) for (const found of await findDataKeys(pool, others)) note(found)
    }
    return sessions.map(() => true)
  }

  function newRow({ sessionId, organizationId }: KeyedSession): { key: KeyObject; row: DataKeyRow } {
    const key = random(dataKeyBytes)
    const sealed_key = seal(key, { ...dataKeySealing(sessionId, keyring), random })
    return {
      // Several times as quick as from bytes, each time that it is used.
      key: createSecretKey(key),
      row: { session_id: sessionId, organization_id: organizationId, made_at: clock(), sealed_key },
    }
  }

  function ensure(sessions: readonly KeyedSession[]): Promise<void> | undefined {
    // What was not there when it was looked up may be made now.
    const missing = sessions.filter(({ sessionId }) => !known.get(sessionId)?.key)
    if (missing.length === 0) return undefined
    for (const { sessionId } of missing) known.delete(sessionId)
    return groups.append([...missing]).then(
      () => undefined,
      (cause) => {
        throw unavailable(cause)
      },
    )
  }

  return {
    get: (sessionId) => known.get(sessionId)?.key,
    async load(sessionIds) {
      const asked = sessionIds.filter((id) => !known.has(id))
      if (asked.length === 0) return
      for (const found of await findDataKeys(pool, asked)) note(found)
      for (const id of asked) if (!known.has(id)) known.set(id, { key: null })
    },
    ensure,
    make(session) {
      if (!isLogEmbedded) return ensure([session])
      const { key, row } = newRow(session)
      known.set(session.sessionId, { key })
      unstored.set(session.sessionId, row)
      return undefined
    },
    unmake(sessionId) {
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
