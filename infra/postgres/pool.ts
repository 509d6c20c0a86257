import { createHash } from 'node:crypto'
import pg from 'pg'
import { systemCode } from '../thrown.ts'
import { inOneWrite, type Part, runAndEnd } from './arrays.ts'

export type Tx = pg.PoolClient
export type Db = Pick<pg.Pool, 'query'>
export type Rows = Record<string, unknown>[]

export interface PoolOptions extends Omit<ConnectionOptions, 'applicationName'> {
  max?: number
  applicationName?: string
}

/** A connection pool. A lost connection only fails the query that uses it, now or next. */
export function createPool({
  max = 10,
  applicationName = 'tidegate',
  ...options
}: PoolOptions): pg.Pool {
  const config = connectionConfig({ ...options, applicationName })
  // What ends a transaction is sent behind its last write, without waiting for the answer.
  const pool = new pg.Pool({ ...config, pipeline: true, max })
  pool.on('error', () => {})
  // The pool gets errors of idle connections only; one lost in a transaction would end the process.
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

export function transaction<T>(pool: pg.Pool, work: (tx: Tx) => Promise<T>): Promise<T> {
  return shortTransaction(pool, {
    first: [],
    work: async (tx) => ({ result: await work(tx), writes: [] }),
  })
}

export interface ShortTransaction<T> {
  /** Statements that begin it, in one round trip. */
  first: Statement[]
  /** Gets the rows of each of them, and returns what is to be written in the round trip of the commit. */
  work: (tx: Tx, rows: Rows[]) => Promise<{ result: T; writes: Part[] }>
}

/** A transaction with as few round trips as there can be. */
export async function shortTransaction<T>(
  pool: pg.Pool,
  { first, work }: ShortTransaction<T>,
): Promise<T> {
  const tx = await pool.connect()
  let broken = false
  try {
    const [, ...rows] = await queryAll(tx, 'begin', ...first)
    const { result, writes } = await work(tx, rows)
    await runAndEnd(tx, writes, ['commit'])
    return result
  } catch (error) {
    broken = !(await rolledBack(tx, error))
    throw error
  } finally {
    // The pool replaces a connection that may be broken or still be in the transaction.
    tx.release(broken)
  }
}

export type Statement = string | pg.QueryConfig

/**
 * Runs statements in one round trip, one after the other: each sees what the one before waited for. Returns the rows of
 * each. One that has a name is parsed once for each connection, and planned a few times.
 */
export async function queryAll<R extends pg.QueryResultRow = Rows[number]>(
  tx: Tx,
  ...statements: Statement[]
): Promise<R[][]> {
  const results = inOneWrite(tx, () => statements.map((statement) => tx.query<R>(statement)))
  return (await Promise.all(results)).map(({ rows }) => rows)
}

export async function rolledBack(tx: Tx, error: unknown): Promise<boolean> {
  // A rollback behind a query that never ends would only wait as long once more.
  if (isConnectionError(error)) return false
  return tx.query('rollback').then(
    () => true,
    () => false,
  )
}

export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  // A server that is down has no Unix socket either: ENOENT.
  if ('syscall' in error && error.syscall === 'connect') return true
  return (
    /^(08|57P0|53300|25P03)/.test(systemCode(error) ?? '') ||
    /^E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|HOSTUNREACH)$/.test(systemCode(error) ?? '') ||
    /Connection terminated|timeout exceeded when trying to connect|Query read timeout|not queryable/.test(
      error.message,
    )
  )
}

/** By the code of Node's TLS: the certificate is of no authority that is known, or of another name. */
export function isRefusedCertificate(error: unknown): boolean {
  return /^(SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_|CERT_|ERR_TLS_CERT)/.test(systemCode(error) ?? '')
}

export function isStatementTimeout(error: unknown): boolean {
  return systemCode(error) === '57014'
}

export interface ConnectionOptions {
  url: string
  applicationName: string
  /** Milliseconds until a query without an answer fails, with its connection. Default: none. */
  queryTimeoutMs?: number
  /** Milliseconds until the server ends a statement; the connection goes on. Default: none. */
  statementTimeoutMs?: number
  /** Milliseconds until the server ends a connection whose open transaction does nothing. Default: none. */
  idleInTransactionMs?: number
  settings?: Record<string, string | number>
}

/** Settings of connections whose writes Postgres refuses. */
export const readOnly = { default_transaction_read_only: 'on' }

const connectTimeoutMs = 5000

// The locks of a client whose machine or network vanished are freed within about ten seconds.
const vanishedClients = {
  tcp_keepalives_idle: 3,
  tcp_keepalives_interval: 2,
  tcp_keepalives_count: 3,
  tcp_user_timeout: 10_000,
}

/** Every connection sets it. Where it does not hold, a pooler stands between. */
export const ownSetting = 'tidegate.connection'

export function connectionConfig(options: ConnectionOptions): pg.ClientConfig {
  const { url, applicationName, queryTimeoutMs, statementTimeoutMs, idleInTransactionMs } = options
  const settings = Object.entries({ ...vanishedClients, [ownSetting]: 'own', ...options.settings })
  return {
    ...withSettings(url, settings),
    application_name: applicationName,
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5000,
    ...(queryTimeoutMs ? { query_timeout: queryTimeoutMs } : {}),
    ...(statementTimeoutMs ? { statement_timeout: statementTimeoutMs } : {}),
    ...(idleInTransactionMs ? { idle_in_transaction_session_timeout: idleInTransactionMs } : {}),
  }
}

/** Throws for a URL that the driver cannot read, or that names a file which it cannot. */
export function checkDatabaseUrl(url: string): void {
  const { port } = new pg.Client(connectionConfig({ url, applicationName: 'tidegate' }))
  // The driver would wait for ever.
  if (!(port >= 1 && port <= 65535)) throw new Error('its port must be 1–65535')
}

// Options of the address would be in the place of ours.
function withSettings(url: string, settings: [string, string | number][]): pg.ClientConfig {
  const own = settings.map(([name, value]) => `-c ${name}=${value}`)
  const address = URL.canParse(url) ? new URL(url) : undefined
  const options = address?.searchParams.get('options')
  if (!address || !options) return { connectionString: url, options: own.join(' ') }
  address.searchParams.delete('options')
  return { connectionString: address.href, options: [...own, options].join(' ') }
}

/**
 * The 64-bit key of an advisory lock as a decimal string, from the SHA-256 of its name. It is the same in
 * every process and version. Two names with one key (probability 2^-64) would only wait for each other.
 */
export function lockKey(name: string): string {
  return createHash('sha256').update(name).digest().readBigInt64BE(0).toString()
}

export async function tryLock(tx: Tx, name: string): Promise<boolean> {
  const { rows } = await tx.query<{ locked: boolean }>(
    'select pg_try_advisory_xact_lock($1) as locked',
    [lockKey(name)],
  )
  return rows[0]?.locked === true
}
