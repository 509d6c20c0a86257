import type { VisitorErased } from '../../schemas/events.ts'
import type { Keyring } from '../crypto/keyring.ts'
import { keyIdBytes, open, seal } from '../crypto/sealing.ts'
import type { Random } from '../ids.ts'
import type { Cte } from '../postgres/arrays.ts'
import { ddlOf, type Migrations } from '../postgres/migrations.ts'
import type { Db, PoolOptions } from '../postgres/pool.ts'
import {
  column,
  constrained,
  insertInto,
  nullable,
  primaryKey,
  type RowOf,
  table,
  writeRows,
} from '../postgres/table.ts'
import { WrongMasterKeys } from './master-key-canary.ts'

// Crypto-shredding: the personal fields of a session's events are encrypted under its data key, and erasing the session
// deletes the key. The row stays without its key, so the session never gets a new one.
const sessionKeys = table(
  'tidegate_keys.session_keys',
  {
    session_id: primaryKey(column.id()),
    made_at: column.bigint(),
    /** null = the session was erased. */
    sealed_key: nullable(column.bytea()),
    is_ended: constrained(column.boolean(), 'default false'),
  },
  { indexes: ['(made_at) where is_ended'] },
)

export const dataKeyMigrations: Migrations = {
  name: 'session-keys',
  schema: 'tidegate_keys',
  create: ddlOf(sessionKeys),
}

/** `made_at` is in epoch milliseconds. */
export type DataKeyRow = Omit<RowOf<typeof sessionKeys>, 'is_ended'>
const columns = sessionKeys.columnsWithout('is_ended')

/** Inserts keys for sessions without a row. Returns the sessions that it inserted. */
export async function insertDataKeys(db: Db, rows: DataKeyRow[]): Promise<Set<string>> {
  const written = await db.query<{ session_id: string }>({
    name: 'insert-data-keys',
    ...insertInto(sessionKeys, {
      columns,
      rows,
      ordered: true,
      conflict: 'on conflict do nothing returning session_id',
    }),
  })
  return new Set(written.rows.map(({ session_id }) => session_id))
}

/** Returns the statement that inserts keys of new sessions, which don't have a row yet. */
export function newDataKeyInserts(rows: DataKeyRow[]): Cte[] {
  return writeRows(sessionKeys, { as: 'put_data_keys', columns, rows })
}

export type StoredKey = Pick<DataKeyRow, 'session_id' | 'sealed_key'>

export async function loadDataKeys(db: Db, sessionIds: readonly string[]): Promise<StoredKey[]> {
  const { rows } = await db.query<StoredKey>({
    name: 'find-data-keys',
    text: 'select session_id, sealed_key from tidegate_keys.session_keys where session_id = any($1)',
    values: [sessionIds],
  })
  return rows
}

const purpose = 'session-data-key'
const dayBytes = 2
const dayMs = 24 * 60 * 60 * 1000

interface KeySealing {
  sessionId: string
  keyring: Keyring
  random: Random
  // Epoch milliseconds.
  now: number
}

/**
 * Seals a data key with a daily subkey of the current master key. The session id is authenticated, so a sealed key
 * copied into another row does not open. Subkeys are daily because IVs are random, which is safe for 2^32 values under
 * one AES-GCM key (NIST SP 800-38D, 8.3). The format is the master key's id, the day number, then the ciphertext.
 */
export function sealDataKey(
  key: Uint8Array,
  { sessionId: context, keyring, random, now }: KeySealing,
): Buffer {
  const day = Math.floor(now / dayMs)
  const sealed = seal(key, { keyring, purpose: purposeOf(day), context, random })
  const stored = Buffer.alloc(dayBytes)
  stored.writeUInt16BE(day)
  return Buffer.concat([sealed.subarray(0, keyIdBytes), stored, sealed.subarray(keyIdBytes)])
}

/** Returns the data key; undefined if it was erased, or if no master key of the keyring opens it. */
export function openDataKey(
  { session_id: context, sealed_key }: StoredKey,
  keyring: Keyring,
): Buffer | undefined {
  if (!sealed_key) return undefined
  const day = sealed_key.readUInt16BE(keyIdBytes)
  const sealed = Buffer.concat([
    sealed_key.subarray(0, keyIdBytes),
    sealed_key.subarray(keyIdBytes + dayBytes),
  ])
  return open(sealed, { keyring, purpose: purposeOf(day), context })
}

/** Throws WrongMasterKeys if the oldest or the newest key can't be decrypted: all events would look erased. */
export async function refuseOtherMasterKeys(db: Db, keyring: Keyring): Promise<void> {
  if ((await probeDataKeys(db, keyring)).includes(false)) throw new WrongMasterKeys()
}

/** Tries to decrypt the oldest and the newest key. Returns a result for each; an empty list without keys. */
export async function probeDataKeys(db: Db, keyring: Keyring): Promise<boolean[]> {
  const first = (
    order: 'asc' | 'desc',
  ) => `(select session_id, sealed_key from tidegate_keys.session_keys
    where sealed_key is not null order by session_id ${order} limit 1)`
  const { rows } = await db.query<StoredKey>(`${first('asc')} union all ${first('desc')}`)
  return rows.map((row) => openDataKey(row, keyring) !== undefined)
}

const purposeOf = (day: number) => `${purpose} ${day}`

/**
 * Returns the settings of the pool for data keys. With the embedded log its commits need not wait for the disk, because
 * the append that follows does, later in the same write-ahead log. With Kafka they must: otherwise an event could
 * survive a crash that loses its key.
 */
export function dataKeyPoolOptions({ isLogEmbedded }: { isLogEmbedded: boolean }) {
  return {
    max: 1,
    applicationName: 'tidegate data keys',
    queryTimeoutMs: 2500,
    statementTimeoutMs: 2000,
    settings: { synchronous_commit: isLogEmbedded ? 'off' : 'on' },
  } satisfies Omit<PoolOptions, 'url'>
}

/** Deletes the sessions' keys permanently. Sessions that never had one can't get one later. */
export function eraseDataKeys(db: Db, erased: VisitorErased[]): Promise<unknown> {
  const rows = erased.flatMap(({ session_ids, erased_at: made_at }): DataKeyRow[] =>
    session_ids.map((session_id) => ({ session_id, made_at, sealed_key: null })),
  )
  // A statement cannot change a row twice.
  const distinct = [...new Map(rows.map((row) => [row.session_id, row])).values()]
  return db.query({
    name: 'erase-data-keys',
    ...insertInto(sessionKeys, {
      columns,
      rows: distinct,
      ordered: true,
      conflict: 'on conflict (session_id) do update set sealed_key = null',
    }),
  })
}

/** Marks the keys of sessions that no read model contains any more. Webhook events may need them for 30 days. */
export async function markDataKeysEnded(db: Db, sessionIds: string[]): Promise<void> {
  if (sessionIds.length === 0) return
  await db.query({
    name: 'end-data-keys',
    text: `update tidegate_keys.session_keys set is_ended = true
      where session_id = any($1) and sealed_key is not null`,
    values: [sessionIds],
  })
}

// A session lasts up to a day, and webhook events about it are kept for 30.
const referencedForMs = 32 * 24 * 60 * 60 * 1000

/** Deletes up to `limit` keys that were marked as ended and are no longer needed. Returns true if more may be left. */
export async function deleteEndedDataKeys(db: Db, limit: number): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'delete-ended-data-keys',
    text: `delete from tidegate_keys.session_keys where session_id in (
        select session_id from tidegate_keys.session_keys
        where is_ended and sealed_key is not null and made_at < extract(epoch from now()) * 1000 - ${referencedForMs} order by made_at limit $1
      )`,
    values: [limit],
  })
  return (rowCount ?? 0) >= limit
}

/** Deletes the keys of a range of ids. For keys of other things than sessions. Returns the number deleted. */
export async function deleteDataKeys(db: Db, { from, before }: { from: string; before: string }) {
  const { rowCount } = await db.query({
    name: 'delete-data-keys',
    text: 'delete from tidegate_keys.session_keys where session_id >= $1 and session_id < $2',
    values: [from, before],
  })
  return rowCount ?? 0
}
