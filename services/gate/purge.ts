import { type Tx, transaction, tryLock } from '../../infra/postgres/pool.ts'
import type { GateParts } from './context.ts'

export type PurgeParts = Pick<GateParts, 'pool' | 'clock'>

const maxRows = 1000
const hourMs = 60 * 60 * 1000
// Longer than a page can ask for the outcome of its approval.
const pageMs = hourMs
// Longer than a signup and its delivery live.
const keyMs = 36 * hourMs
// More than the clocks of two processes differ by.
const clockSkewMs = 60_000

/** Deletes what is of no use any more, at most 1,000 rows of a kind. Resolves to the number of rows. */
export async function purgeGate({ pool, clock }: PurgeParts): Promise<number> {
  const now = clock()
  return transaction(pool, async (tx) => {
    if (!(await tryLock(tx, 'gate-purge'))) return 0
    const purged = [
      await purgeKeys(tx, now),
      await purgePages(tx, now),
      await purgeInFlight(tx),
      await purgeLimits(tx),
    ]
    return purged.reduce((sum, rows) => sum + rows, 0)
  })
}

// Keys whose delivery ended in a crash, and keys that nothing was sealed under.
function purgeKeys(tx: Tx, now: number): Promise<number> {
  return removeRows(tx, {
    from: 'gate_vault',
    where: `exists (select from read.gate_sessions s where s.gate_session_id = t.gate_session_id
        and (s.status in ('rejected', 'expired') or s.delivery in ('acknowledged', 'expired')))
      or t.created_at < $1 and not exists (select from read.gate_sessions s
        where s.gate_session_id = t.gate_session_id
          and (s.delivery = 'waiting' or s.status = 'pending' and s.approval_started_at is not null))`,
    values: [now - keyMs],
  })
}

function purgePages(tx: Tx, now: number): Promise<number> {
  return removeRows(tx, {
    from: 'gate_pages',
    where: `t.issued_at < $1 and not exists (select from read.gate_sessions s
      where s.gate_session_id = t.gate_session_id and s.status = 'pending')`,
    values: [now - pageMs],
  })
}

// Rows of processes that died. By the database's clock.
function purgeInFlight(tx: Tx): Promise<number> {
  return removeRows(tx, {
    from: 'gate_leases',
    where: 't.leased_until < extract(epoch from clock_timestamp()) * 1000 - $1',
    values: [clockSkewMs],
  })
}

// The limiter counts by the clock of this process.
function purgeLimits(tx: Tx): Promise<number> {
  return removeRows(tx, { from: 'gate_limits', where: 't.expire < $1', values: [Date.now()] })
}

interface Removal {
  from: 'gate_vault' | 'gate_pages' | 'gate_leases' | 'gate_limits'
  where: string
  values: number[]
}

async function removeRows(tx: Tx, { from, where, values }: Removal): Promise<number> {
  // Rows that a request is about to write are left for the next time rather than waited for.
  const { rowCount } = await tx.query(
    `delete from tidegate.${from} where ctid = any(array(
       select t.ctid from tidegate.${from} t where ${where} limit ${maxRows} for update skip locked))`,
    values,
  )
  return rowCount ?? 0
}
