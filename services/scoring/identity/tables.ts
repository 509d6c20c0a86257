import { ddlOf, type Migrations } from '../../../infra/postgres/migrations.ts'
import type { Db, Tx } from '../../../infra/postgres/pool.ts'
import {
  column,
  insertInto,
  nullable,
  primaryKey,
  replacing,
  table,
} from '../../../infra/postgres/table.ts'
import type { DirectoryKeys } from '../../../infra/wire/web-bot-auth/keys.ts'

/**
 * What was fetched: the keys of a directory, by their thumbprints; or the host name of an address that leads back to it,
 * null where none does; or that there was no answer.
 */
export type LookupResult = { keys: DirectoryKeys } | { host: string | null } | { failure: string }

/** What is looked up: the https address of a directory, or an IP address. */
export type LookupSubject = string

export interface LookedUp {
  subject: LookupSubject
  result: LookupResult
  /** Epoch milliseconds. */
  fetched_at: number
  ends_at: number
  /** Why the newest attempt to fetch it again failed, and when. */
  last_failure: { reason: string; failed_at: number } | null
}

/** A cache: whatever is missing is fetched again. */
const agentLookups = table<LookedUp>(
  'scoring.agent_lookups',
  {
    subject: primaryKey(column.id()),
    result: column.json<LookupResult>(),
    fetched_at: column.bigint(),
    ends_at: column.bigint(),
    last_failure: nullable(column.json<NonNullable<LookedUp['last_failure']>>()),
  },
  { indexes: ['(ends_at)'] },
)

/** That a signature's nonce has been used, by the hash of the request that it came with. */
export interface UsedNonce {
  nonce_hash: string
  request_hash: string
  ends_at: number
}

const usedNonces = table<UsedNonce>(
  'scoring.used_nonces',
  { nonce_hash: primaryKey(column.hex()), request_hash: column.hex(), ends_at: column.bigint() },
  { indexes: ['(ends_at)'] },
)

export const identityMigrations: Migrations = {
  name: 'identity',
  schema: 'scoring',
  create: ddlOf(agentLookups, usedNonces),
}

/** What is known of the subjects and has not ended. */
export async function readLookups(
  db: Pick<Tx, 'query'>,
  subjects: string[],
  now: number,
): Promise<Map<LookupSubject, LookedUp>> {
  const { rows } = await db.query<LookedUp>({
    name: 'scoring-read-lookups',
    text: `select ${agentLookups.select('l')} from scoring.agent_lookups l
      where l.subject = any($1::text[]) and l.ends_at > $2`,
    values: [subjects, now],
  })
  return new Map(rows.map((row) => [row.subject, row]))
}

const mostDirectories = 1000

/** Keys of directories that have not ended: first the `preferred` ones, then those that were fetched last. */
export async function readDirectories(
  db: Db,
  { preferred, now }: { preferred: readonly LookupSubject[]; now: number },
): Promise<LookedUp[]> {
  const { rows } = await db.query<LookedUp>({
    name: 'scoring-read-directories',
    text: `select ${agentLookups.select('l')} from scoring.agent_lookups l
      where l.subject >= 'https:' and l.subject < 'https;' and l.ends_at > $1 and l.result::json->'keys' is not null
      order by l.subject = any($2::text[]) desc, l.fetched_at desc limit ${mostDirectories}`,
    values: [now, preferred],
  })
  return rows
}

/** Stores what was fetched. A failure is recorded beside an answer that has not ended, and changes nothing else of it. */
export async function saveLookup(db: Db, lookup: Omit<LookedUp, 'last_failure'>): Promise<void> {
  const { subject, result, fetched_at: failed_at } = lookup
  if ('failure' in result) {
    const { rowCount } = await db.query(
      `update scoring.agent_lookups set last_failure = $2
       where subject = $1 and ends_at > $3 and result::json->'failure' is null`,
      [subject, JSON.stringify({ reason: result.failure, failed_at }), failed_at],
    )
    if (rowCount === 1) return
  }
  const row = { ...lookup, last_failure: null }
  const { columns } = agentLookups
  const conflict = `${replacing(agentLookups)} where excluded.result::json->'failure' is null
    or l.result::json->'failure' is not null or l.ends_at <= excluded.fetched_at`
  const named = { ...agentLookups, name: `${agentLookups.name} as l` }
  await db.query(insertInto(named, { columns, rows: [row], conflict }))
}

/**
 * Takes the nonces, and returns by each the hash of the request that has it, which may have taken it before. Another
 * transaction that takes one of them waits until this one has ended.
 */
export async function takeNonces(
  tx: Pick<Tx, 'query'>,
  nonces: UsedNonce[],
): Promise<Map<string, string>> {
  if (nonces.length === 0) return new Map()
  const first = new Map(nonces.toReversed().map((one) => [one.nonce_hash, one]))
  const { columns, select } = usedNonces
  // What is locked in one order cannot deadlock.
  const conflict = `on conflict (nonce_hash) do update set request_hash = used.request_hash
    returning ${select('used', 'nonce_hash', 'request_hash')}`
  const named = { ...usedNonces, name: 'scoring.used_nonces as used' }
  const { rows } = await tx.query<UsedNonce>(
    insertInto(named, { columns, rows: [...first.values()], conflict, ordered: true }),
  )
  return new Map(rows.map((row) => [row.nonce_hash, row.request_hash]))
}

/** Deletes what has ended, and returns how many rows that were. */
export async function purgeIdentity(db: Db, now: number): Promise<number> {
  const ended = ['agent_lookups', 'used_nonces'].map((name) =>
    db.query(`delete from scoring.${name} where ends_at <= $1`, [now]),
  )
  const counts = (await Promise.all(ended)).map(({ rowCount }) => rowCount ?? 0)
  return counts.reduce((sum, count) => sum + count, 0)
}
