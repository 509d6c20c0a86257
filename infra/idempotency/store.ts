import type pg from 'pg'
import { ensureTables } from '../postgres/ensure-tables.ts'
import { type Db, lockKey, type Tx, transaction } from '../postgres/pool.ts'

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
  id: Buffer
  masterKeyId: string
  requestMac: Buffer
  seed: Buffer
  createdAt: number
  expiresAt: number
  /** The request that runs now has the row until then; 0 = none runs. */
  lockedUntil: number
  answer: Buffer | null
}

export type RequestVerdict = 'start' | 'resume' | 'replay' | 'in_flight' | 'other_request'

export function judge(
  row: StoredCommand | undefined,
  { requestMac, now }: { requestMac: Buffer; now: number },
): RequestVerdict {
  if (!row) return 'start'
  const isLocked = row.lockedUntil > now
  if (row.expiresAt <= now && !isLocked) return 'start'
  if (!row.requestMac.equals(requestMac)) return 'other_request'
  if (row.answer) return 'replay'
  return isLocked ? 'in_flight' : 'resume'
}

export interface Candidate {
  id: Buffer
  masterKeyId: string
  requestMac: Buffer
}

export interface BeginRequest {
  lock: string
  candidates: [Candidate, ...Candidate[]]
  /**
   * `seed` and `token` are 16 random bytes each. The seed is used when no command is there yet, the token names this
   * attempt's lock.
   */
  seed: Buffer
  token: Buffer
  now: number
}

export interface Begun {
  verdict: RequestVerdict
  row: StoredCommand
}

const columns = `id, master_key_id as "masterKeyId", request_mac as "requestMac", seed, created_at as "createdAt",
  expires_at as "expiresAt", locked_until as "lockedUntil", answer`

type Row = Omit<StoredCommand, 'createdAt' | 'expiresAt' | 'lockedUntil'> & {
  createdAt: string
  expiresAt: string
  lockedUntil: string
}

/**
 * Judges the request and locks the row with `start` or `resume`: of two requests at once one gets it. The advisory
 * lock is for the moment in which two processes have different current master keys and would make a row each.
 */
export function begin(pool: pg.Pool, request: BeginRequest): Promise<Begun> {
  const { lock, candidates, now, token } = request
  return transaction(pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [lockKey(`idempotency:${lock}`)])
    const found = await find(tx, candidates)
    const mine = candidates.find(({ id }) => found && id.equals(found.id)) ?? candidates[0]
    const verdict = judge(found, { requestMac: mine.requestMac, now })
    if (!found || verdict === 'start') return { verdict: 'start', row: await insert(tx, request) }
    if (verdict === 'resume') await takeOver(tx, { id: found.id, token, now })
    return { verdict, row: found }
  })
}

async function find(tx: Tx, candidates: Candidate[]): Promise<StoredCommand | undefined> {
  const ids = candidates.map(({ id }) => id)
  const { rows } = await tx.query<Row>(
    `select ${columns} from tidegate.idempotency_keys where id = any($1::bytea[])`,
    [ids],
  )
  return rows.map(toStored).sort((a, b) => b.createdAt - a.createdAt)[0]
}

function toStored({ createdAt, expiresAt, lockedUntil, ...row }: Row): StoredCommand {
  const times = {
    createdAt: Number(createdAt),
    expiresAt: Number(expiresAt),
    lockedUntil: Number(lockedUntil),
  }
  return { ...row, ...times }
}

async function insert(tx: Tx, { candidates, seed, token, now }: BeginRequest): Promise<StoredCommand> {
  await tx.query('delete from tidegate.idempotency_keys where id = any($1::bytea[])', [
    candidates.map(({ id }) => id),
  ])
  const [{ id, masterKeyId, requestMac }] = candidates
  const row = { id, masterKeyId, requestMac, seed, createdAt: now, expiresAt: now + answerKeptMs }
  await tx.query(
    `insert into tidegate.idempotency_keys
       (id, master_key_id, request_mac, seed, created_at, expires_at, lease, locked_until)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [...Object.values(row), token, now + lockMs],
  )
  return { ...row, lockedUntil: now + lockMs, answer: null }
}

export interface CommandLock {
  id: Buffer
  token: Buffer
}

/** `in_doubt`: an earlier attempt may have had its effect. */
async function takeOver(tx: Tx, { id, token, now }: CommandLock & { now: number }): Promise<void> {
  await tx.query(
    `update tidegate.idempotency_keys set lease = $2, locked_until = $3, in_doubt = true
     where id = $1 and answer is null and locked_until <= $4`,
    [id, token, now + lockMs, now],
  )
}

/**
 * Returns the answer that is kept. It is the one of whoever ended first, if the command was taken over while it ran.
 * undefined when the row is gone.
 */
export async function complete(
  pool: pg.Pool,
  { id, answer }: { id: Buffer; answer: Buffer },
): Promise<Buffer | undefined> {
  const { rows } = await pool.query<{ answer: Buffer }>(
    `update tidegate.idempotency_keys set answer = coalesce(answer, $2), locked_until = 0
     where id = $1 returning answer`,
    [id, answer],
  )
  return rows[0]?.answer
}

/** The next request may go on with the command at once. It is the same command. */
export async function unlock(pool: pg.Pool, { id, token }: CommandLock): Promise<void> {
  await pool.query('update tidegate.idempotency_keys set locked_until = 0 where id = $1 and lease = $2', [
    id,
    token,
  ])
}

/**
 * The key of a refused command is free for a corrected request. One with an attempt of unknown outcome is kept: a
 * later attempt would be another command and could have the effect once more.
 */
export async function forgetCommand(pool: pg.Pool, lock: CommandLock): Promise<void> {
  const { rowCount } = await pool.query(
    'delete from tidegate.idempotency_keys where id = $1 and lease = $2 and not in_doubt',
    [lock.id, lock.token],
  )
  if (rowCount === 0) await unlock(pool, lock)
}

/** Neither a caller's key nor an answer can be read from a row. No id or secret follows from its seed alone. */
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
