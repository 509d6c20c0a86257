import type pg from 'pg'
import { lockKey, type Tx, transaction } from '../postgres/pool.ts'
import { judge, keptMs, leaseMs, type StoredCommand, type Verdict } from './rules.ts'

/** A request as its row would hold it, under one master key. */
export interface Candidate {
  id: Buffer
  masterKeyId: string
  requestMac: Buffer
}

export interface BeginRequest {
  /** Names scope and key for the lock; stored nowhere. */
  lock: string
  /** Under each master key, the current one first. */
  candidates: [Candidate, ...Candidate[]]
  /** 16 random bytes each; the seed is used when no command is there yet. */
  seed: Buffer
  lease: Buffer
  now: number
}

export interface Begun {
  verdict: Verdict
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
 * Judges the request and, with `start` or `resume`, takes the row for it: of two that ask at once one gets it. The
 * lock is for the moment in which two processes have different current master keys and would make a row each.
 */
export function begin(pool: pg.Pool, request: BeginRequest): Promise<Begun> {
  const { lock, candidates, now, lease } = request
  return transaction(pool, async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [lockKey(`idempotency:${lock}`)])
    const found = await find(tx, candidates)
    const mine = candidates.find(({ id }) => found && id.equals(found.id)) ?? candidates[0]
    const verdict = judge(found, { requestMac: mine.requestMac, now })
    if (!found || verdict === 'start') return { verdict: 'start', row: await insert(tx, request) }
    if (verdict === 'resume') await takeOver(tx, { id: found.id, lease, now })
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

/** A new command; what had the key before has expired. */
async function insert(tx: Tx, { candidates, seed, lease, now }: BeginRequest): Promise<StoredCommand> {
  await tx.query('delete from tidegate.idempotency_keys where id = any($1::bytea[])', [
    candidates.map(({ id }) => id),
  ])
  const [{ id, masterKeyId, requestMac }] = candidates
  const row = { id, masterKeyId, requestMac, seed, createdAt: now, expiresAt: now + keptMs }
  await tx.query(
    `insert into tidegate.idempotency_keys
       (id, master_key_id, request_mac, seed, created_at, expires_at, lease, locked_until)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [...Object.values(row), lease, now + leaseMs],
  )
  return { ...row, lockedUntil: now + leaseMs, answer: null }
}

interface Held {
  id: Buffer
  lease: Buffer
}

/** In doubt from now on: an earlier attempt may have had its effect. */
async function takeOver(tx: Tx, { id, lease, now }: Held & { now: number }): Promise<void> {
  await tx.query(
    `update tidegate.idempotency_keys set lease = $2, locked_until = $3, in_doubt = true
     where id = $1 and answer is null and locked_until <= $4`,
    [id, lease, now + leaseMs, now],
  )
}

/**
 * Keeps the sealed answer and returns the one that is kept: whoever ended first, if the command was taken over while
 * it ran. undefined when the row is gone.
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

/** Lets the next request go on with the command at once; it is the same command. */
export async function letGo(pool: pg.Pool, { id, lease }: Held): Promise<void> {
  await pool.query('update tidegate.idempotency_keys set locked_until = 0 where id = $1 and lease = $2', [
    id,
    lease,
  ])
}

/**
 * Forgets a command that was refused, so that the key is free for a corrected request. One with an attempt of unknown
 * outcome is kept: forgotten, a third attempt would be another command and could have the effect once more.
 */
export async function forget(pool: pg.Pool, held: Held): Promise<void> {
  const { rowCount } = await pool.query(
    'delete from tidegate.idempotency_keys where id = $1 and lease = $2 and not in_doubt',
    [held.id, held.lease],
  )
  if (rowCount === 0) await letGo(pool, held)
}
