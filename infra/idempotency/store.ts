import { ddlOf, type Migrations } from '../postgres/migrations.ts'
import type { Db } from '../postgres/pool.ts'
import {
  column,
  insertInto,
  nullable,
  overwrite,
  primaryKey,
  type RowOf,
  table,
} from '../postgres/table.ts'

const hour = 60 * 60 * 1000

/** Time for which a response is replayed, from the first request with its key. */
const retentionMs = 24 * hour

/**
 * Lease of an attempt: longer than commands take, but short enough to retry soon after a process was killed. Taking
 * over a slow command while it still runs does no harm, because both attempts are the same command.
 */
export const leaseMs = 9000

// A row per idempotent command. Times are epoch milliseconds. `id` is a hash of scope and key; the rest reveals
// nothing without the caller's key and a master key.
const commands = table(
  'tidegate.idempotency_keys',
  {
    id: primaryKey(column.bytea()),
    masterKeyId: { ...column.text(), name: 'master_key_id' },
    requestMac: { ...column.bytea(), name: 'request_mac' },
    /** 16 random bytes from which the command's secrets are derived; a new row for the key gets a new seed. */
    seed: column.bytea(),
    createdAt: { ...column.bigint(), name: 'created_at' },
    storedUntil: { ...column.bigint(), name: 'stored_until' },
    /** Attempt that holds the lease. */
    owner: column.bytea(),
    /** Expiry of the running attempt's lease; 0 = none is running. */
    expiresAt: { ...column.bigint(), name: 'expires_at' },
    /** True if an earlier attempt may have had its effect. */
    inDoubt: { ...column.boolean(), name: 'in_doubt' },
    answer: nullable(column.bytea()),
  },
  { indexes: ['(stored_until)'] },
)

export const idempotencyMigrations: Migrations = { name: 'idempotency', create: ddlOf(commands) }

/** Row of the first request with a key. */
export type StoredCommand = Pick<
  RowOf<typeof commands>,
  'masterKeyId' | 'requestMac' | 'seed' | 'createdAt' | 'expiresAt' | 'answer'
>

/** An attempt at a command. */
export interface CommandLease {
  id: Buffer
  seed: Buffer
  /** 16 random bytes that identify the attempt. */
  owner: Buffer
}

/** Inserts the command with a lease, or replaces an expired one. Returns false if an unexpired row exists. */
export async function insertCommand(
  db: Db,
  {
    now,
    ...command
  }: CommandLease & Pick<StoredCommand, 'masterKeyId' | 'requestMac'> & { now: number },
): Promise<boolean> {
  const times = { createdAt: now, storedUntil: now + retentionMs, expiresAt: now + leaseMs }
  const { text, values } = insertInto(commands, {
    columns: commands.columns,
    rows: [{ ...command, ...times, inDoubt: false, answer: null }],
    conflict: `${overwrite(commands)}
      where idempotency_keys.stored_until <= excluded.created_at and idempotency_keys.expires_at <= excluded.created_at`,
  })
  const { rowCount } = await db.query(text, values)
  return rowCount === 1
}

/** Returns the command's row; undefined if there is none or it has expired. */
export async function findCommand(
  db: Db,
  { id, now }: { id: Buffer; now: number },
): Promise<StoredCommand | undefined> {
  const { rows } = await db.query<StoredCommand>(
    `select ${commands.selectWithout('c', 'id', 'storedUntil', 'owner', 'inDoubt')}
     from tidegate.idempotency_keys c where id = $1 and (stored_until > $2 or expires_at > $2)`,
    [id, now],
  )
  return rows[0]
}

/** Takes over a command that is not running, and marks it in doubt. Returns false if another attempt was faster. */
export async function takeLease(
  db: Db,
  { id, seed, owner, now }: CommandLease & { now: number },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `update tidegate.idempotency_keys set owner = $3, expires_at = $4, in_doubt = true
     where id = $1 and seed = $2 and answer is null and expires_at <= $5`,
    [id, seed, owner, now + leaseMs, now],
  )
  return rowCount === 1
}

/**
 * Stores the response unless one is already stored, and returns the stored one: if the command was taken over while it
 * ran, the attempt that finished first wins. Returns undefined if the row was deleted.
 */
export async function storeResponse(
  db: Db,
  { id, seed, response }: CommandLease & { response: Buffer },
): Promise<Buffer | undefined> {
  const { rows } = await db.query<{ answer: Buffer }>(
    `update tidegate.idempotency_keys set answer = coalesce(answer, $3), expires_at = 0
     where id = $1 and seed = $2 returning answer`,
    [id, seed, response],
  )
  return rows[0]?.answer
}

/** Ends the attempt's lease, so that the next request can resume the command at once. */
export async function releaseLease(db: Db, { id, owner }: CommandLease): Promise<void> {
  await db.query(
    'update tidegate.idempotency_keys set expires_at = 0 where id = $1 and owner = $2',
    [id, owner],
  )
}

/**
 * Deletes a failed command, which frees its key for a corrected request. If the command is in doubt, only releases its
 * lease, because a new command could repeat the effect.
 */
export async function forgetCommand(db: Db, lease: CommandLease): Promise<void> {
  const { rowCount } = await db.query(
    'delete from tidegate.idempotency_keys where id = $1 and owner = $2 and not in_doubt',
    [lease.id, lease.owner],
  )
  if (rowCount === 0) await releaseLease(db, lease)
}

const purgeBatchSize = 1000

/** Deletes up to 1000 expired rows and returns their number. `now`: epoch milliseconds. */
export async function purgeIdempotencyKeys(db: Db, now: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from tidegate.idempotency_keys where id in (
       select id from tidegate.idempotency_keys where stored_until <= $1 and expires_at <= $1
       order by stored_until limit $2 for update skip locked)`,
    [now, purgeBatchSize],
  )
  return rowCount ?? 0
}
