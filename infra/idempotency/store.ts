import { ensureTables } from '../postgres/ensure-tables.ts'
import type { Db, Tx } from '../postgres/pool.ts'

const hour = 60 * 60 * 1000

/** An answer is repeated for so long after the first request with its key. */
export const answerKeptMs = 24 * hour

/**
 * Nobody else starts the command for so long. It is longer than commands take, and so short that a killed process is
 * soon forgotten. A slow command that is taken over although it still runs does no harm: both are the same command.
 */
export const lockMs = 9000

/** The row of the request that first came with a key. Times are epoch milliseconds. */
export interface StoredCommand {
  masterKeyId: string
  requestMac: Buffer
  /** 16 random bytes, which name the command. */
  seed: Buffer
  createdAt: number
  /** The request that runs now has the row until then; 0 = none runs. */
  lockedUntil: number
  answer: Buffer | null
}

/** An attempt at a command. */
export interface CommandLock {
  id: Buffer
  seed: Buffer
  /** 16 random bytes, which name the attempt. */
  token: Buffer
}

export interface BeginCommand extends CommandLock, Pick<StoredCommand, 'masterKeyId' | 'requestMac'> {
  now: number
}

/** Makes the row with its lock, or makes one anew whose time is over. false: there is one, and it stays as it is. */
export async function begin(db: Db, command: BeginCommand): Promise<boolean> {
  const { id, seed, token, masterKeyId, requestMac, now } = command
  const { rowCount } = await db.query(
    `insert into tidegate.idempotency_keys as known
       (id, master_key_id, request_mac, seed, created_at, expires_at, lease, locked_until)
     values ($1, $2, $3, $4, $5, $6, $7, $8)
     on conflict (id) do update set (master_key_id, request_mac, seed, created_at, expires_at, lease,
       locked_until, in_doubt, answer) = (excluded.master_key_id, excluded.request_mac, excluded.seed,
       excluded.created_at, excluded.expires_at, excluded.lease, excluded.locked_until, false, null)
     where known.expires_at <= $5 and known.locked_until <= $5`,
    [id, masterKeyId, requestMac, seed, now, now + answerKeptMs, token, now + lockMs],
  )
  return rowCount === 1
}

/** undefined where there is none, or its time is over. */
export async function find(
  db: Db,
  { id, now }: { id: Buffer; now: number },
): Promise<StoredCommand | undefined> {
  const { rows } = await db.query<StoredCommand>(
    `select master_key_id as "masterKeyId", request_mac as "requestMac", seed, answer,
       created_at::float8 as "createdAt", locked_until::float8 as "lockedUntil"
     from tidegate.idempotency_keys where id = $1 and (expires_at > $2 or locked_until > $2)`,
    [id, now],
  )
  return rows[0]
}

/** Takes over a command that nobody runs: an earlier attempt may have had its effect. false: another one was first. */
export async function resume(
  db: Db,
  { id, seed, token, now }: CommandLock & { now: number },
): Promise<boolean> {
  const { rowCount } = await db.query(
    `update tidegate.idempotency_keys set lease = $3, locked_until = $4, in_doubt = true
     where id = $1 and seed = $2 and answer is null and locked_until <= $5`,
    [id, seed, token, now + lockMs, now],
  )
  return rowCount === 1
}

/**
 * Returns the answer that is kept. It is the one of whoever ended first, if the command was taken over while it ran.
 * undefined when the row is gone.
 */
export async function complete(
  db: Db,
  { id, seed, answer }: CommandLock & { answer: Buffer },
): Promise<Buffer | undefined> {
  const { rows } = await db.query<{ answer: Buffer }>(
    `update tidegate.idempotency_keys set answer = coalesce(answer, $3), locked_until = 0
     where id = $1 and seed = $2 returning answer`,
    [id, seed, answer],
  )
  return rows[0]?.answer
}

/** The next request may go on with the command at once. It is the same command. */
export async function unlock(db: Db, { id, token }: CommandLock): Promise<void> {
  await db.query('update tidegate.idempotency_keys set locked_until = 0 where id = $1 and lease = $2', [
    id,
    token,
  ])
}

/**
 * The key of a refused command is free for a corrected request. One with an attempt of unknown outcome is kept: a
 * later attempt would be another command and could have the effect once more.
 */
export async function forgetCommand(db: Db, lock: CommandLock): Promise<void> {
  const { rowCount } = await db.query(
    'delete from tidegate.idempotency_keys where id = $1 and lease = $2 and not in_doubt',
    [lock.id, lock.token],
  )
  if (rowCount === 0) await unlock(db, lock)
}

// `id` is a hash of scope and key; the rest tells nothing without the key and a master key.
const ddl = `
create table if not exists tidegate.idempotency_keys (
  id bytea primary key,
  master_key_id text not null,
  request_mac bytea not null,
  seed bytea not null,
  created_at bigint not null,
  expires_at bigint not null,
  lease bytea not null,
  locked_until bigint not null,
  in_doubt boolean not null default false,
  answer bytea
);
create index if not exists idempotency_keys_expiry on tidegate.idempotency_keys (expires_at);
`

export function createIdempotencyTables(tx: Tx): Promise<void> {
  return ensureTables(tx, { name: 'idempotency', table: 'tidegate.idempotency_keys', ddl })
}

const purgeAtOnce = 1000

/** Deletes at most 1000 expired rows and returns how many. `now` is in epoch milliseconds. */
export async function purgeIdempotencyKeys(db: Db, now: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from tidegate.idempotency_keys where id in (
       select id from tidegate.idempotency_keys where expires_at <= $1 and locked_until <= $1
       order by expires_at limit $2 for update skip locked)`,
    [now, purgeAtOnce],
  )
  return rowCount ?? 0
}
