import { readFile } from 'node:fs/promises'
import path from 'node:path'
import pg from 'pg'
import { parseApiKey } from '../../infra/crypto/api-keys.ts'
import { isToken, type TokenKind } from '../../infra/crypto/tokens.ts'
import { isConnectionError } from '../../infra/postgres/pool.ts'
import { dumpTopics } from './dump.ts'
import { databaseUrl, onServer } from './server-databases.ts'

const keyPattern =
  /sk_(?:live|test)_[0-9a-hjkmnp-tv-z]{38}|gtpoll_[0-9a-hjkmnp-tv-z]{26}|(?:agt|gtapr|gtack|gtcode|conlog|contok)_[0-9a-hjkmnp-tv-z]{40}/g
const tokenKinds: TokenKind[] = ['gtpoll', 'agt', 'gtapr', 'gtack', 'gtcode', 'conlog', 'contok']
const stems = ['sk_live_', 'sk_test_', ...tokenKinds.map((kind) => `${kind}_`)]
const hexOf = (text: string) => Buffer.from(text).toString('hex')
// Prefixes of secret keys and tokens, as text and as bytea in hex.
const beginnings = [...stems, ...stems.map(hexOf)]
/** In larger tables only a sample of rows is read, because every test's database is swept. */
const largeTableBytes = 2 * 1024 * 1024
const sampledRows = 1000

/**
 * Counts well-formed secret keys and tokens in the text, plain or in hex. Invented ones fail their checksum; poll
 * tokens have none.
 */
export function secretKeysIn(text: string): number {
  const inHex = new RegExp(`(?:${stems.map(hexOf).join('|')})(?:[0-9a-f]{2}){26,40}`, 'g')
  const fromHex = [...text.matchAll(inHex)].map(([hex]) => Buffer.from(hex, 'hex').toString())
  const candidates = [text, ...fromHex].flatMap((one) =>
    [...one.matchAll(keyPattern)].map(([key]) => key),
  )
  return candidates.filter(isSecret).length
}

const isSecret = (text: string): boolean =>
  parseApiKey(text)?.type === 'secret' || tokenKinds.some((kind) => isToken(kind, text))

/** Throws if the text contains a secret key, without repeating it. */
export function refuseSecretKeys(place: string, text: string): void {
  const found = secretKeysIn(text)
  if (found > 0) throw new Error(`${found} secret keys are in ${place}`)
}

/** Throws if the database of an installation contains a secret key. Ignores an unreachable database. */
export async function sweepInstallation(dataDir: string): Promise<void> {
  const url = await readFile(path.join(dataDir, 'database-url'), 'utf8').catch(() => '')
  if (url === '') return
  await sweepDatabase(url.trim()).catch((error: unknown) => {
    if (!isConnectionError(error)) throw error
  })
}

/** Throws if a record of a topic with the prefix contains a secret key, even deflated. */
export async function sweepTopics(topics: { brokers: string; prefix: string }): Promise<void> {
  for (const { name, bytes } of await dumpTopics(topics))
    refuseSecretKeys(name, bytes.toString('latin1'))
}

interface TestDatabaseRow {
  name: string
  file: string
}

/**
 * Throws when a database that a test made on this server holds a secret key, and says where and which test file's it
 * is.
 */
export async function sweepTestDatabases(
  serverUrl: string,
  { like = 'test\\_%' } = {},
): Promise<void> {
  const { rows } = await onServer(serverUrl, (client) =>
    client.query<TestDatabaseRow>(
      `select datname as name, shobj_description(oid, 'pg_database') as file from pg_database
       where datname like $1`,
      [like],
    ),
  )
  const failures: string[] = []
  const queue = rows.values()
  const sweepSome = async () => {
    for (const { name, file } of queue)
      await sweepDatabase(databaseUrl(serverUrl, name), { patient: true }).catch((error: Error) =>
        failures.push(`${error.message} of database ${name}, made by ${file}`),
      )
  }
  await Promise.all(Array.from({ length: 4 }, sweepSome))
  if (failures.length > 0) throw new Error(failures.join('\n'))
}

/** Throws if a row of any table contains a secret key. Skips locked or slow tables unless `patient`. */
export async function sweepDatabase(url: string, { patient = false } = {}): Promise<void> {
  const client = new pg.Client({
    connectionString: url,
    ...(!patient && { options: '-c lock_timeout=200 -c statement_timeout=2000' }),
  })
  await client.connect()
  try {
    const { rows: tables } = await client.query<{ name: string; large: boolean }>(
      `select format('%I.%I', nspname, relname) as name, pg_relation_size(c.oid) > $1 as large
       from pg_class c join pg_namespace n on n.oid = relnamespace
       where relkind = 'r' and nspname not in ('pg_catalog', 'information_schema') and pg_relation_size(c.oid) > 0`,
      [largeTableBytes],
    )
    if (tables.length === 0) return
    const { rows } = await client.query<{ name: string; row: string }>(
      tables.map(matchingRows).join(' union all '),
    )
    for (const { name, row } of rows) refuseSecretKeys(`table ${name}`, row)
  } catch (error) {
    if (patient || !isImpatience(error)) throw error
  } finally {
    await client.end()
  }
}

function matchingRows({ name, large }: { name: string; large: boolean }): string {
  const limit = large ? `limit ${sampledRows}` : ''
  // strpos, because a regular expression takes several times as long; offset 0 keeps the row from being printed for
  // each.
  const matches = beginnings.map((text) => `strpos(row, '${text}') > 0`).join(' or ')
  return `(select '${name}' as name, row from (select t::text as row from ${name} t ${limit} offset 0) rows
           where ${matches})`
}

const isImpatience = (error: unknown) =>
  error instanceof Error && 'code' in error && (error.code === '55P03' || error.code === '57014')
