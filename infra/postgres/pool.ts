import pg from 'pg'

/** A connection with an open transaction. */
export type Tx = pg.PoolClient
/** Anything that can run one query. */
export type Db = Pick<pg.Pool, 'query'>

export interface PoolOptions {
  url: string
  max?: number
  applicationName?: string
  /** A query that takes longer fails, and its connection is given up; default: none. */
  queryTimeoutMs?: number
}

const connectTimeoutMs = 5000

/** A connection pool. A lost connection only fails the query that uses it, now or next. */
export function createPool(options: PoolOptions): pg.Pool {
  const { url, max = 10, applicationName = 'tidegate', queryTimeoutMs } = options
  const pool = new pg.Pool({
    connectionString: url,
    max,
    application_name: applicationName,
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    ...(queryTimeoutMs ? { query_timeout: queryTimeoutMs } : {}),
  })
  pool.on('error', () => {})
  // The pool hears only idle connections; one lost in a transaction would otherwise end the process.
  pool.on('connect', (client) => client.on('error', () => {}))
  return pool
}

export interface TransactionOptions {
  /**
   * false: a crash of Postgres itself may lose the last few commits, never part of one. Right where the rows and
   * the offset that produced them are in the same transaction, because they are then simply applied again.
   */
  syncCommit?: boolean
}

/** Runs `work` in one transaction: commits when it resolves, rolls back when it throws. */
export async function transaction<T>(
  pool: pg.Pool,
  work: (tx: Tx) => Promise<T>,
  { syncCommit = true }: TransactionOptions = {},
): Promise<T> {
  const tx = await pool.connect()
  let failure: Error | undefined
  try {
    await tx.query(syncCommit ? 'begin' : 'begin; set local synchronous_commit = off')
    const result = await work(tx)
    await tx.query('commit')
    return result
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error))
    await tx.query('rollback').catch(() => {})
    throw error
  } finally {
    // A connection that failed mid-transaction may be broken; the pool replaces it.
    tx.release(failure && isConnectionError(failure) ? failure : undefined)
  }
}

/** Whether the database could not be reached or ended the connection, so that a retry may succeed. */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return (
    /^(08|57P0|53300)/.test(code) ||
    /^E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|HOSTUNREACH)$/.test(code) ||
    /Connection terminated|timeout exceeded when trying to connect/.test(error.message)
  )
}
