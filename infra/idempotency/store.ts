import { ddlOf, type Migrations } from '../postgres/migrations.ts'
import type { Db } from '../postgres/pool.ts'
import {
  column,
  insertInto,
  nullable,
  primaryKey,
  type RowOf,
  replacing,
  table,
} from '../postgres/table.ts'

const hour = 60 * 60 * 1000

/** An answer is repeated for so long after the first request with its key. */
const answerStoredMs = 24 * hour

/**
 * Nobody else starts the command for so long. It is longer than commands take, and so short that a killed process is
 * soon forgotten. A slow command that is taken over although it still runs does no harm: both are the same command.
 */
export const leaseMs = 9000

// Times are epoch milliseconds. `id` is a hash of scope and key; the rest tells nothing without the key and a master
// key.
const commands = table(
  'tidegate.idempotency_keys',
  {
    id: primaryKey(column.bytea()),
    masterKeyId: { ...column.text(), name: 'master_key_id' },
    requestMac: { ...column.bytea(), name: 'request_mac' },
    /** 16 random bytes, which name the command. */
    seed: column.bytea(),
    createdAt: { ...column.bigint(), name: 'created_at' },
    storedUntil: { ...column.bigint(), name: 'stored_until' },
    /** The attempt that has the lease. */
    owner: column.bytea(),
    /** When the lease of the attempt that runs now expires; 0 = none runs. */
    expiresAt: { ...column.bigint(), name: 'expires_at' },
    /** An earlier attempt may have had its effect. */
    inDoubt: { ...column.boolean(), name: 'in_doubt' },
    answer: nullable(column.bytea()),
  },
  { indexes: ['(stored_until)'] },
)

export const idempotencyMigrations: Migrations = { name: 'idempotency', create: ddlOf(commands) }

/** The row of the request that first came with a key. */
export type StoredCommand = Pick<
  RowOf<typeof commands>,
  'masterKeyId' | 'requestMac' | 'seed' | 'createdAt' | 'expiresAt' | 'answer'
>

/** An attempt at a command. */
export interface CommandLease {
  id: Buffer
  seed: Buffer
  /** 16 random bytes, which name the attempt. */
  owner: Buffer
}

/** Makes the row with its lease, or makes one anew whose time is over. false: there is one, and it stays as it is. */
export async function begin(
  db: Db,
  {
    now,
    ...named
  }: CommandLease & Pick<StoredCommand, 'masterKeyId' | 'requestMac'> & { now: number },
): Promise<boolean> {
  const times = { createdAt: now, storedUntil: now + answerStoredMs, expiresAt: now + leaseMs }
  const { text, values } = insertInto(commands, {
    columns: commands.columns,
    rows: [{ ...named, ...times, inDoubt: false, answer: null }],
    conflict: `${replacing(commands)}
      where idempotency_keys.stored_until <= excluded.created_at and idempotency_keys.expires_at <= excluded.created_at`,
  })
  const { rowCount } = await db.query(text, values)
  return rowCount === 1
}

/** undefined where there is none, or its time is over. */
export async function find(
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

/** Takes over a command that nobody runs: an earlier attempt may have had its effect. false: another one was first. */
export async function resume(
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
 * Returns the answer that is stored. It is the one of whoever ended first, if the command was taken over while it ran.
 * undefined when the row is gone.
 */
export async function complete(
  db: Db,
  { id, seed, answer }: CommandLease & { answer: Buffer },
): Promise<Buffer | undefined> {
  const { rows } = await db.query<{ answer: Buffer }>(
    `update tidegate.idempotency_keys set answer = coalesce(answer, $3), expires_at = 0
     where id = $1 and seed = $2 returning answer`,
    [id, seed, answer],
  )
  return rows[0]?.answer
}

/** The next request may go on with the command at once. It is the same command. */
export async function releaseLease(db: Db, { id, owner }: CommandLease): Promise<void> {
  await db.query(
    'update tidegate.idempotency_keys set expires_at = 0 where id = $1 and owner = $2',
    [id, owner],
  )
}

/**
 * The key of a refused command is free for a corrected request. One with an attempt of unknown outcome stays, because a
 * later attempt would be another command and could have the effect once more.
 */
export async function forgetCommand(db: Db, lease: CommandLease): Promise<void> {
  const { rowCount } = await db.query(
    'delete from tidegate.idempotency_keys where id = $1 and owner = $2 and not in_doubt',
    [lease.id, lease.owner],
  )
  if (rowCount === 0) await releaseLease(db, lease)
}

const purgeAtOnce = 1000

/** Deletes at most 1000 expired rows and returns how many. `now` is in epoch milliseconds. */
export async function purgeIdempotencyKeys(db: Db, now: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from tidegate.idempotency_keys where id in (
       select id from tidegate.idempotency_keys where stored_until <= $1 and expires_at <= $1
       order by stored_until limit $2 for update skip locked)`,
    [now, purgeAtOnce],
  )
  return rowCount ?? 0
}
