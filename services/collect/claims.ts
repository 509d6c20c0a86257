import type pg from 'pg'
import { createGroupCommit } from '../../infra/flow/group-commit.ts'
import type { EventLog, NewRecord } from '../../infra/log/port.ts'
import { type Part, statementOf, unnest } from '../../infra/postgres/arrays.ts'
import { ddlOf, type Migrations } from '../../infra/postgres/migrations.ts'
import type { Db, PoolOptions } from '../../infra/postgres/pool.ts'
import { column, table } from '../../infra/postgres/table.ts'

/** That a body has a sequence number of its document. A later number takes the place of an earlier one. */
export interface Claim {
  documentIdHash: string
  /** When the document ends, epoch milliseconds: the same for all of its claims. */
  expiresAt: number
  seq: number
  bodyHash: string
  /** Epoch milliseconds. */
  receivedAt: number
}

export interface ClaimStore {
  /**
   * Writes each claim whose number is later than what its document has. Returns what the documents of the others have.
   * At most one claim of each document.
   */
  write(claims: Claim[]): Promise<Claim[]>
}

export interface Claims {
  /** The newest claim of the document, over all processes: this one, or one that was there before. */
  claim(claim: Claim): Promise<Claim>
}

/** For each document the claim with the latest number, and the first of two under one number. */
function newestClaims(claims: readonly Claim[]): Claim[] {
  const newest = new Map<string, Claim>()
  for (const claim of claims) {
    const known = newest.get(claim.documentIdHash)
    if (!known || claim.seq > known.seq) newest.set(claim.documentIdHash, claim)
  }
  return [...newest.values()]
}

interface ClaimedRecord {
  claim: Claim
  /** The record of the body, which was first received at this time (epoch milliseconds). */
  recordAt: (receivedAt: number) => NewRecord
}

/**
 * Claims the number of a body and appends its record, in one statement where the log is in the same database. Returns the
 * newest claim of the document; where that is another body's, nothing was appended.
 */
export async function appendClaimed(
  { log, claims }: { log: Pick<EventLog<Claim>, 'append' | 'appendIf'>; claims: Claims },
  { claim, recordAt }: ClaimedRecord,
): Promise<Claim> {
  if (await log.appendIf?.(recordAt(claim.receivedAt), claim)) return claim
  const newest = await claims.claim(claim)
  if (isHeldBy(newest, claim)) await log.append([recordAt(newest.receivedAt)])
  return newest
}

/** Whether the body has its number, and no later one is taken. */
export function isHeldBy(newest: Claim, { seq, bodyHash }: Claim): boolean {
  return newest.seq === seq && newest.bodyHash === bodyHash
}

const maxTogether = 1000

/**
 * Sequence numbers shared by all processes with the same store. Claims that come while one write is under way form the
 * next. Where a write fails, so do those that wait behind it: nobody waits for two time-outs.
 */
export function createClaims(store: ClaimStore): Claims {
  const groups = createGroupCommit({ write, maxRecords: maxTogether })

  async function write(claims: Claim[]): Promise<Claim[]> {
    const newest = newestClaims(claims)
    const others = await store.write(newest)
    const held = new Map([...newest, ...others].map((claim) => [claim.documentIdHash, claim]))
    return claims.map((claim) => held.get(claim.documentIdHash) ?? claim)
  }

  return {
    async claim(claim) {
      const [held = claim] = await groups.append([claim])
      return held
    },
  }
}

// One row for each document that took a body and has not ended. Documents of one time stand together, so one index is
// enough for finding a document and for deleting what has ended. The free part of a page is for updates, which then
// touch no index.
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
 * For claims by themselves. Their commits do not wait for the disk: a crash of Postgres forgets those of its last fraction
 * of a second. On the embedded log it forgets none of a body that was acknowledged, because the append waits.
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

/** Refuses where one of the claims is not the newest of its document, or two are of one document. */
export function claimsAsGuards(incoming: Claim[]): Part[] {
  const isOneEach = newestClaims(incoming).length === incoming.length
  return isOneEach
    ? writeClaims(incoming)
    : [{ as: 'refused', at: () => ({ text: 'select', values: [] }) }]
}

// Nearly every claim is written as it is: only the others come back, as reading rows would be most of the cost.
function writeClaims(rows: Claim[]): Part[] {
  return [
    { as: 'incoming', at: (first) => incomingAt(rows, first) },
    { as: 'written', at: () => ({ text: insertIncoming, values: [] }) },
    { as: 'refused', at: () => ({ text: findRefused, values: [] }) },
  ]
}

function incomingAt(rows: Claim[], firstParameter: number) {
  const { names, source, values } = unnest(
    claims.columns,
    rows.toSorted(inOneOrder),
    firstParameter,
  )
  return { text: `select * from ${source} as incoming (${names})`, values }
}

const { names } = unnest(claims.columns, [])
const insertIncoming = `
  insert into tidegate.collect_claims as known (${names}) select * from incoming
  on conflict (expires_at, document) do update set
    seq = greatest(known.seq, excluded.seq),
    body = case when excluded.seq > known.seq then excluded.body else known.body end,
    received_at = case when excluded.seq > known.seq then excluded.received_at else known.received_at end
  returning *`
const findRefused = `
  select ${claims.select('w')} from written w join incoming i using (expires_at, document)
  where (w.seq, w.body, w.received_at) <> (i.seq, i.body, i.received_at)`

// In every process: two that lock the same rows in different orders would wait for each other.
function inOneOrder(one: Claim, other: Claim): number {
  return one.expiresAt - other.expiresAt || (one.documentIdHash < other.documentIdHash ? -1 : 1)
}

const purgeAtOnce = 1000
// The clocks of two processes may differ.
const graceMs = 10 * 60 * 1000

/** Deletes at most 1000 claims of documents that ended, and returns how many. `now` is in epoch milliseconds. */
export async function purgeClaims(db: Db, now: number): Promise<number> {
  const { rowCount } = await db.query(
    `delete from tidegate.collect_claims where (expires_at, document) in (
       select expires_at, document from tidegate.collect_claims where expires_at <= $1
       order by expires_at limit $2 for update skip locked)`,
    [now - graceMs, purgeAtOnce],
  )
  return rowCount ?? 0
}
