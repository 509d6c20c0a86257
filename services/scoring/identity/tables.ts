import { ddlOf, type Migrations } from '../../../infra/postgres/migrations.ts'
import type { Db, Tx } from '../../../infra/postgres/pool.ts'
import {
  column,
  insertInto,
  nullable,
  overwrite,
  primaryKey,
  table,
} from '../../../infra/postgres/table.ts'
import type { DirectoryKeys } from '../../../infra/wire/web-bot-auth/keys.ts'

/**
 * Keys of a directory by thumbprint, or an address's forward-confirmed host name (null if it has none), or the reason
 * of a failed lookup.
 */
export type LookupResult = { keys: DirectoryKeys } | { host: string | null } | { failure: string }

/** The https URL of a key directory, or an IP address. */
export type LookupSubject = string

export interface StoredLookup {
  subject: LookupSubject
  result: LookupResult
  /** Epoch milliseconds, as is `ends_at`. */
  fetched_at: number
  /** Expiry. */
  ends_at: number
  /** Failure of the newest attempt to refresh the result. */
  last_failure: { reason: string; failed_at: number } | null
}

/** Cache of lookup results. A result whose row is missing is fetched again. */
const agentLookups = table<StoredLookup>(
  'scoring.agent_lookups',
  {
    subject: primaryKey(column.id()),
    result: column.json<LookupResult>(),
    fetched_at: column.bigint(),
    ends_at: column.bigint(),
    last_failure: nullable(column.json<NonNullable<StoredLookup['last_failure']>>()),
  },
  { indexes: ['(ends_at)'] },
)

/** The first request that used a signature's nonce. The nonce in any other request is a replay. */
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

/** Returns the stored lookups that have not expired, by subject. */
export async function readLookups(
  db: Pick<Tx, 'query'>,
  subjects: string[],
  now: number,
): Promise<Map<LookupSubject, StoredLookup>> {
  const { rows } = await db.query<StoredLookup>({
    name: 'scoring-read-lookups',
    text: `select ${agentLookups.select('l')} from scoring.agent_lookups l
      where l.subject = any($1::text[]) and l.ends_at > $2`,
    values: [subjects, now],
  })
  return new Map(rows.map((row) => [row.subject, row]))
}

const maxDirectories = 1000

/** Returns directories that have not expired: the `preferred` ones first, then the newest. */
export async function readDirectories(
  db: Db,
  { preferred, now }: { preferred: readonly LookupSubject[]; now: number },
): Promise<StoredLookup[]> {
  const { rows } = await db.query<StoredLookup>({
    name: 'scoring-read-directories',
    text: `select ${agentLookups.select('l')} from scoring.agent_lookups l
      where l.subject >= 'https:' and l.subject < 'https;' and l.ends_at > $1 and l.result::json->'keys' is not null
      order by l.subject = any($2::text[]) desc, l.fetched_at desc limit ${maxDirectories}`,
    values: [now, preferred],
  })
  return rows
}

/** Stores a lookup result. A failure doesn't replace a valid result, but becomes its `last_failure`. */
export async function saveLookup(
  db: Db,
  lookup: Omit<StoredLookup, 'last_failure'>,
): Promise<void> {
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
  const conflict = `${overwrite(agentLookups)} where excluded.result::json->'failure' is null
    or l.result::json->'failure' is not null or l.ends_at <= excluded.fetched_at`
  const aliased = { ...agentLookups, name: `${agentLookups.name} as l` }
  await db.query(insertInto(aliased, { columns, rows: [row], conflict }))
}

/**
 * Records the nonces. Returns the hash of the request that used each nonce first, by nonce hash. Locks the nonces until
 * the transaction ends.
 */
export async function recordNonces(
  tx: Pick<Tx, 'query'>,
  nonces: UsedNonce[],
): Promise<Map<string, string>> {
  if (nonces.length === 0) return new Map()
  const first = new Map(nonces.toReversed().map((nonce) => [nonce.nonce_hash, nonce]))
  const { columns, select } = usedNonces
  // Rows are locked in a fixed order to avoid deadlocks.
  const conflict = `on conflict (nonce_hash) do update set request_hash = used.request_hash
    returning ${select('used', 'nonce_hash', 'request_hash')}`
  const aliased = { ...usedNonces, name: 'scoring.used_nonces as used' }
  const { rows } = await tx.query<UsedNonce>(
    insertInto(aliased, { columns, rows: [...first.values()], conflict, ordered: true }),
  )
  return new Map(rows.map((row) => [row.nonce_hash, row.request_hash]))
}

/** Deletes expired lookups and nonces. Returns the number of deleted rows. */
export async function purgeExpiredLookups(db: Db, now: number): Promise<number> {
  const deletions = ['agent_lookups', 'used_nonces'].map((name) =>
    db.query(`delete from scoring.${name} where ends_at <= $1`, [now]),
  )
  const counts = (await Promise.all(deletions)).map(({ rowCount }) => rowCount ?? 0)
  return counts.reduce((sum, count) => sum + count, 0)
}
