import type { VisitorErased } from '../../schemas/events.ts'
import type { Keyring } from '../crypto/keyring.ts'
import { dataKeyBytes, headerBytes, keyIdBytes, open, seal } from '../crypto/sealing.ts'
import type { Random } from '../ids.ts'
import { type Column, type Part, unnest } from '../postgres/arrays.ts'
import { ensureTables } from '../postgres/ensure-tables.ts'
import type { Db, PoolOptions, Tx } from '../postgres/pool.ts'

// One row for each session: what was recorded of it is encrypted under its key. The row of an erased session stays
// without the key, so that nothing gives it another one. Programs of before write the organization, which nothing reads.
const ddl = `
create schema if not exists tidegate_keys;
create table if not exists tidegate_keys.session_keys (
  session_id text collate "C" primary key,
  organization_id text collate "C" not null default '',
  made_at bigint not null,
  sealed_key bytea,
  is_ended boolean not null default false
);
alter table tidegate_keys.session_keys alter column organization_id set default '';
create index if not exists ended_session_keys on tidegate_keys.session_keys (made_at) where is_ended;
`

export function createDataKeyTables(tx: Tx): Promise<void> {
  return ensureTables(tx, { name: 'session-keys', table: 'tidegate_keys.session_keys', ddl })
}

export interface DataKeyRow {
  session_id: string
  // Epoch milliseconds.
  made_at: number
  // null = the session was erased.
  sealed_key: Buffer | null
}

const columns: Column<DataKeyRow>[] = [
  { name: 'session_id', type: 'text', of: (row) => row.session_id },
  { name: 'made_at', type: 'bigint', of: (row) => row.made_at },
  { name: 'sealed_key', type: 'bytea', of: (row) => row.sealed_key },
]
const { names, source } = unnest(columns, [])

// Writes the rows whose session has none. Returns the sessions that it wrote.
export async function insertDataKeys(db: Db, rows: DataKeyRow[]): Promise<Set<string>> {
  const written = await db.query<{ session_id: string }>({
    name: 'insert-data-keys',
    // In the order of the key: two that write the same ones cannot deadlock.
    text: `insert into tidegate_keys.session_keys (${names}) select * from ${source} as given (${names})
      order by session_id on conflict do nothing returning session_id`,
    values: unnest(columns, rows).values,
  })
  return new Set(written.rows.map(({ session_id }) => session_id))
}

// Those of sessions that nobody else knows: none has one yet.
export function putDataKeys(rows: DataKeyRow[]): Part[] {
  if (rows.length === 0) return []
  const at = (first: number) => {
    const given = unnest(columns, rows, first)
    const text = `insert into tidegate_keys.session_keys (${names}) select * from ${given.source}`
    return { text, values: given.values }
  }
  return [{ as: 'put_data_keys', at }]
}

export type FoundKey = Pick<DataKeyRow, 'session_id' | 'sealed_key'>

export async function findDataKeys(db: Db, sessionIds: readonly string[]): Promise<FoundKey[]> {
  const { rows } = await db.query<FoundKey>({
    name: 'find-data-keys',
    text: 'select session_id, sealed_key from tidegate_keys.session_keys where session_id = any($1)',
    values: [sessionIds],
  })
  return rows
}

const purpose = 'session-data-key'
const dayBytes = 2
const dayMs = 24 * 60 * 60 * 1000
// Of versions that sealed all keys under one subkey of the master key.
const bytesWithoutDay = keyIdBytes + headerBytes + dataKeyBytes

interface KeySealing {
  sessionId: string
  keyring: Keyring
  random: Random
  // Epoch milliseconds. Default: without a day, as programs of before open it.
  now?: number | undefined
}

/**
 * Bound to its session: in the row of another it does not open. Each day has a subkey of the master key, since IVs are
 * random: under one AES-GCM key they are safe for 2^32 values (NIST SP 800-38D, 8.3). Behind the master key's id, the
 * number of the day.
 */
export function sealDataKey(
  key: Uint8Array,
  { sessionId: context, keyring, random, now }: KeySealing,
): Buffer {
  if (now === undefined) return seal(key, { keyring, purpose, context, random })
  const day = Math.floor(now / dayMs)
  const sealed = seal(key, { keyring, purpose: purposeOf(day), context, random })
  const stored = Buffer.alloc(dayBytes)
  stored.writeUInt16BE(day)
  return Buffer.concat([sealed.subarray(0, keyIdBytes), stored, sealed.subarray(keyIdBytes)])
}

// undefined where no master key of the keyring encrypted it.
export function openDataKey(
  { session_id: context, sealed_key }: FoundKey,
  keyring: Keyring,
): Buffer | undefined {
  if (!sealed_key) return undefined
  if (sealed_key.length <= bytesWithoutDay) return open(sealed_key, { keyring, purpose, context })
  const day = sealed_key.readUInt16BE(keyIdBytes)
  const sealed = Buffer.concat([
    sealed_key.subarray(0, keyIdBytes),
    sealed_key.subarray(keyIdBytes + dayBytes),
  ])
  return open(sealed, { keyring, purpose: purposeOf(day), context })
}

const purposeOf = (day: number) => `${purpose} ${day}`

/**
 * On the embedded log a commit need not wait for the disk: the append that follows does, later in the same write-ahead
 * log. With Kafka an event could outlive the key that it needs.
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

// Deletes the keys for good. Sessions that never had one are marked, too.
export function eraseDataKeys(db: Db, erased: VisitorErased[]): Promise<unknown> {
  const rows = erased.flatMap(({ session_ids, erased_at: made_at }): DataKeyRow[] =>
    session_ids.map((session_id) => ({ session_id, made_at, sealed_key: null })),
  )
  // One statement cannot change a row twice.
  const distinct = [...new Map(rows.map((row) => [row.session_id, row])).values()]
  return db.query({
    name: 'erase-data-keys',
    text: `insert into tidegate_keys.session_keys (${names}) select * from ${source} as given (${names})
      order by session_id on conflict (session_id) do update set sealed_key = null`,
    values: unnest(columns, distinct).values,
  })
}

// Of sessions that no read model shows any more, but for what was told of them.
export async function endDataKeys(db: Db, sessionIds: string[]): Promise<void> {
  if (sessionIds.length === 0) return
  await db.query({
    name: 'end-data-keys',
    text: `update tidegate_keys.session_keys set is_ended = true
      where session_id = any($1) and sealed_key is not null`,
    values: [sessionIds],
  })
}

// A session lasts for a day, and webhook events about it are kept for 30.
const toldForMs = 32 * 24 * 60 * 60 * 1000

export async function deleteEndedDataKeys(db: Db, limit: number): Promise<boolean> {
  const { rowCount } = await db.query({
    name: 'delete-ended-data-keys',
    text: `delete from tidegate_keys.session_keys where session_id in (
        select session_id from tidegate_keys.session_keys
        where is_ended and sealed_key is not null and made_at < extract(epoch from now()) * 1000 - ${toldForMs} order by made_at limit $1
      )`,
    values: [limit],
  })
  return (rowCount ?? 0) >= limit
}

// Keys by name, of what is no session. Returns how many there were.
export async function deleteDataKeys(db: Db, { from, before }: { from: string; before: string }) {
  const { rowCount } = await db.query({
    name: 'delete-data-keys',
    text: 'delete from tidegate_keys.session_keys where session_id >= $1 and session_id < $2',
    values: [from, before],
  })
  return rowCount ?? 0
}
