import { createHash } from 'node:crypto'
import pg from 'pg'
import { systemCode } from '../thrown.ts'
import { type Cte, runAndEnd, sendInOneWrite } from './arrays.ts'

export type Tx = pg.PoolClient
export type Db = Pick<pg.Pool, 'query'>
export type Rows = Record<string, unknown>[]

export interface PoolOptions extends Omit<ConnectionOptions, 'applicationName'> {
  max?: number
  applicationName?: string
}

/** Creates a connection pool. A lost connection fails only the query that is using it, or the next one that does. */
export function createPool({
  max = 10,
  applicationName = 'tidegate',
  ...options
}: PoolOptions): pg.Pool {
  const config = connectionConfig({ ...options, applicationName })
  // Pipelining: the commit is sent right after the last write, without waiting for its result.
  const pool = new pg.Pool({ ...config, pipeline: true, max })
  pool.on('error', () => {})
  // The pool only handles errors of idle connections; one during a transaction would crash the process.
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

/** Runs `work` in a transaction, which is committed if it resolves and rolled back if it rejects. */
export function transaction<T>(pool: pg.Pool, work: (tx: Tx) => Promise<T>): Promise<T> {
  return pipelinedTransaction(pool, {
    openingStatements: [],
    work: async (tx) => ({ result: await work(tx), writes: [] }),
  })
}

export interface PipelinedTransaction<T> {
  /** Statements that are sent together with `begin`. */
  openingStatements: Statement[]
  /** Gets the rows of each opening statement. Returns the writes to send together with the commit. */
  work: (tx: Tx, rows: Rows[]) => Promise<{ result: T; writes: Cte[] }>
}

/** Runs a transaction in as few round trips as possible, by pipelining its first and last statements. */
export async function pipelinedTransaction<T>(
  pool: pg.Pool,
  { openingStatements, work }: PipelinedTransaction<T>,
): Promise<T> {
  const tx = await pool.connect()
  let broken = false
  try {
    const [, ...rows] = await queryAll(tx, 'begin', ...openingStatements)
    const { result, writes } = await work(tx, rows)
    await runAndEnd(tx, writes, ['commit'])
    return result
  } catch (error) {
    broken = !(await tryRollback(tx, error))
    throw error
  } finally {
    // The pool replaces a connection that may be broken or still in the transaction.
    tx.release(broken)
  }
}

export type Statement = string | pg.QueryConfig

/**
 * Runs statements in order, in one round trip, and returns the rows of each. Each sees the effects of the previous
 * ones, including those of locks they waited for. A named statement is parsed once per connection.
 */
export async function queryAll<R extends pg.QueryResultRow = Rows[number]>(
  tx: Tx,
  ...statements: Statement[]
): Promise<R[][]> {
  const results = sendInOneWrite(tx, () => statements.map((statement) => tx.query<R>(statement)))
  return (await Promise.all(results)).map(({ rows }) => rows)
}

/** Rolls back after `error`. Returns false if the connection must be dropped instead. */
export async function tryRollback(tx: Tx, error: unknown): Promise<boolean> {
  // After a query that timed out, a rollback on the same connection would time out too.
  if (isConnectionError(error)) return false
  return tx.query('rollback').then(
    () => true,
    () => false,
  )
}

export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  // Includes ENOENT: a server that is down has no Unix socket.
  if ('syscall' in error && error.syscall === 'connect') return true
  return (
    /^(08|57P0|53300|25P03)/.test(systemCode(error) ?? '') ||
    /^E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|HOSTUNREACH)$/.test(systemCode(error) ?? '') ||
    /Connection terminated|timeout exceeded when trying to connect|Query read timeout|not queryable/.test(
      error.message,
    )
  )
}

/** Returns true for a TLS error about the certificate: an unknown authority, or another host name. */
export function isCertificateError(error: unknown): boolean {
  return /^(SELF_SIGNED|DEPTH_ZERO|UNABLE_TO_|CERT_|ERR_TLS_CERT)/.test(systemCode(error) ?? '')
}

export function isStatementTimeout(error: unknown): boolean {
  return systemCode(error) === '57014'
}

export interface ConnectionOptions {
  url: string
  applicationName: string
  /** Client-side timeout in milliseconds, which also drops the connection. Default: none. */
  queryTimeoutMs?: number
  /** Server-side timeout of a statement in milliseconds, which keeps the connection. Default: none. */
  statementTimeoutMs?: number
  /** Milliseconds until the server closes a connection that is idle in a transaction. Default: none. */
  idleInTransactionMs?: number
  settings?: Record<string, string | number>
}

/** Settings of read-only connections. */
export const readOnlySettings = { default_transaction_read_only: 'on' }

const connectTimeoutMs = 5000

// Postgres frees the locks of a client whose machine or network is gone within about ten seconds.
const keepalives = {
  tcp_keepalives_idle: 3,
  tcp_keepalives_interval: 2,
  tcp_keepalives_count: 3,
  tcp_user_timeout: 10_000,
}

/** A setting of every connection, which a connection pooler drops. `refusePooler` checks it. */
export const markerSetting = 'tidegate.connection'

export function connectionConfig(options: ConnectionOptions): pg.ClientConfig {
  const { url, applicationName, queryTimeoutMs, statementTimeoutMs, idleInTransactionMs } = options
  const settings = Object.entries({ ...keepalives, [markerSetting]: 'own', ...options.settings })
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

/** Throws for a URL that the driver can't parse, or that names a file it can't read. */
export function checkDatabaseUrl(url: string): void {
  const { port } = new pg.Client(connectionConfig({ url, applicationName: 'tidegate' }))
  // Connecting to such a port would hang.
  if (!(port >= 1 && port <= 65535)) throw new Error('its port must be 1–65535')
}

// Merges the URL's `options` parameter with our settings, because the driver would use it instead of them.
function withSettings(url: string, settings: [string, string | number][]): pg.ClientConfig {
  const flags = settings.map(([name, value]) => `-c ${name}=${value}`)
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  const options = parsed?.searchParams.get('options')
  if (!parsed || !options) return { connectionString: url, options: flags.join(' ') }
  parsed.searchParams.delete('options')
  return { connectionString: parsed.href, options: [...flags, options].join(' ') }
}

/**
 * Returns the 64-bit key of an advisory lock as a decimal string, from the SHA-256 of its name. It must not change
 * between versions. If two names have the same key (probability 2^-64), they only wait for each other.
 */
export function lockKey(name: string): string {
  return createHash('sha256').update(name).digest().readBigInt64BE(0).toString()
}

/** Tries to take the advisory lock until the end of the transaction. Returns false if another one holds it. */
export async function tryLock(tx: Tx, name: string): Promise<boolean> {
  const { rows } = await tx.query<{ locked: boolean }>(
    'select pg_try_advisory_xact_lock($1) as locked',
    [lockKey(name)],
  )
  return rows[0]?.locked === true
}
