import type pg from 'pg'
import { createBatcher } from '../../infra/flow/batcher.ts'
import type { EventLog, NewRecord } from '../../infra/log/port.ts'
import { type Cte, statementOf, unnest } from '../../infra/postgres/arrays.ts'
import { ddlOf, type Migrations } from '../../infra/postgres/migrations.ts'
import type { Db, PoolOptions } from '../../infra/postgres/pool.ts'
import { column, table } from '../../infra/postgres/table.ts'

/*
 * Claims make the sequence numbers of a document unique across processes: a body is accepted only if it is the first to
 * claim its number. Only the claim of the highest number is stored; a repeat of that body finds its own claim.
 */

/** A body's claim to a sequence number of its document. The claim of a higher number replaces it. */
export interface Claim {
  documentIdHash: string
  /** When the document expires, epoch milliseconds; the same for all of its claims. */
  expiresAt: number
  seq: number
  bodyHash: string
  /** Epoch milliseconds. */
  receivedAt: number
}

export interface ClaimStore {
  /**
   * Writes each claim whose number is higher than the stored one. Returns the stored claims that won instead. `claims`
   * must have at most one per document.
   */
  write(claims: Claim[]): Promise<Claim[]>
}

export interface Claims {
  /** Returns the winning claim: this one, or an earlier one from any process. */
  claim(claim: Claim): Promise<Claim>
}

/** Returns each document's claim with the highest number; of several with that number, the first. */
function newestClaims(claims: readonly Claim[]): Claim[] {
  const newest = new Map<string, Claim>()
  for (const claim of claims) {
    const current = newest.get(claim.documentIdHash)
    if (!current || claim.seq > current.seq) newest.set(claim.documentIdHash, claim)
  }
  return [...newest.values()]
}

interface ClaimedRecord {
  claim: Claim
  /** Returns the body's record. `receivedAt`: when the body was first received, epoch milliseconds. */
  recordAt: (receivedAt: number) => NewRecord
}

/**
 * Claims the number of a body and appends its record, in one statement if the log is in the same database. Returns the
 * document's winning claim. If another body won, nothing is appended.
 */
export async function appendClaimed(
  { log, claims }: { log: Pick<EventLog<Claim>, 'append' | 'appendIf'>; claims: Claims },
  { claim, recordAt }: ClaimedRecord,
): Promise<Claim> {
  if (await log.appendIf?.(recordAt(claim.receivedAt), claim)) return claim
  const newest = await claims.claim(claim)
  if (isSameBody(newest, claim)) await log.append([recordAt(newest.receivedAt)])
  return newest
}

export function isSameBody(newest: Claim, { seq, bodyHash }: Claim): boolean {
  return newest.seq === seq && newest.bodyHash === bodyHash
}

const maxClaimsPerWrite = 1000

/**
 * Creates claims by group commit: claims that arrive during a write form the next one. If a write fails, the claims
 * waiting behind it fail too, so that no request waits for two timeouts.
 */
export function createClaims(store: ClaimStore): Claims {
  const groups = createBatcher({ runBatch: write, maxItems: maxClaimsPerWrite })

  async function write(claims: Claim[]): Promise<Claim[]> {
    const newest = newestClaims(claims)
    const stored = await store.write(newest)
    const winners = new Map([...newest, ...stored].map((claim) => [claim.documentIdHash, claim]))
    return claims.map((claim) => winners.get(claim.documentIdHash) ?? claim)
  }

  return {
    async claim(claim) {
      const [winner = claim] = await groups.run([claim])
      return winner
    },
  }
}

// The key begins with the expiry, so that one index serves both lookups and the deletion of expired rows. The fill
// factor leaves room for updates in place (HOT), which touch no index.
const claims = table<Claim>(
  'tidegate.collect_claims',
  {
    expiresAt: { ...column.bigint(), name: 'expires_at' },
    documentIdHash: { ...column.hex(), name: 'document' },
    seq: column.integer(),
    bodyHash: { ...column.hex(), name: 'body' },
    receivedAt: { ...column.bigint(), name: 'received_at' },
  },
  { key: ['expiresAt', 'documentIdHash'], storage: 'fillfactor = 70' },
)

export const claimMigrations: Migrations = { name: 'collect-claims', create: ddlOf(claims) }

/**
 * Pool for claims that are written separately from their records. With synchronous_commit = off, a crash of PostgreSQL
 * loses the claims of the last fraction of a second. With the embedded log no claim of an acknowledged body is lost,
 * because the append commits synchronously.
 */
export const claimPoolOptions = {
  max: 2,
  applicationName: 'tidegate claims',
  queryTimeoutMs: 2500,
  statementTimeoutMs: 2000,
  settings: { synchronous_commit: 'off' },
} satisfies Omit<PoolOptions, 'url'>

export function createClaimTable(pool: pg.Pool): ClaimStore {
  return {
    async write(incoming) {
      const text = 'select * from refused'
      const { rows } = await pool.query<Claim>(
        statementOf(writeClaims(incoming), { name: 'collect-claim', text, values: [] }),
      )
      return rows
    },
  }
}

/** Returns SQL that blocks the append if a claim is not its document's newest, or a document has several claims. */
export function claimsAsGuards(incoming: Claim[]): Cte[] {
  const isUnique = newestClaims(incoming).length === incoming.length
  return isUnique
    ? writeClaims(incoming)
    : [{ as: 'refused', sql: () => ({ text: 'select', values: [] }) }]
}

// Returns only the losing claims. Nearly all win, and reading those back would be most of the cost.
function writeClaims(rows: Claim[]): Cte[] {
  return [
    { as: 'incoming', sql: (first) => incomingAt(rows, first) },
    { as: 'written', sql: () => ({ text: insertIncoming, values: [] }) },
    { as: 'refused', sql: () => ({ text: findRefused, values: [] }) },
  ]
}

function incomingAt(rows: Claim[], firstParameter: number) {
  const { names, source, values } = unnest(claims.columns, rows.toSorted(byKey), firstParameter)
  return { text: `select * from ${source} as incoming (${names})`, values }
}

const { names } = unnest(claims.columns, [])
const insertIncoming = `
  insert into tidegate.collect_claims as existing (${names}) select * from incoming
  on conflict (expires_at, document) do update set
    seq = greatest(existing.seq, excluded.seq),
    body = case when excluded.seq > existing.seq then excluded.body else existing.body end,
    received_at = case when excluded.seq > existing.seq then excluded.received_at else existing.received_at end
  returning *`
const findRefused = `
  select ${claims.select('w')} from written w join incoming i using (expires_at, document)
  where (w.seq, w.body, w.received_at) <> (i.seq, i.body, i.received_at)`

// All processes lock rows in this order, which prevents deadlocks.
function byKey(a: Claim, b: Claim): number {
  return a.expiresAt - b.expiresAt || (a.documentIdHash < b.documentIdHash ? -1 : 1)
}

const purgeBatchSize = 1000
// Allows for clock skew between processes.
const graceMs = 10 * 60 * 1000

/** Deletes up to 1,000 claims of expired documents and returns how many. `now`: epoch milliseconds. */
export async function purgeClaims(db: Db, now: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from tidegate.collect_claims where (expires_at, document) in (
       select expires_at, document from tidegate.collect_claims where expires_at <= $1
       order by expires_at limit $2 for update skip locked)`,
    [now - graceMs, purgeBatchSize],
  )
  return rowCount ?? 0
}
