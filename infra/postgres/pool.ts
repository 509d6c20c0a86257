import pg from 'pg'
import { type ConnectionOptions, connectionConfig } from './connection.ts'

/** A connection with an open transaction. */
export type Tx = pg.PoolClient
/** Anything that can run one query. */
export type Db = Pick<pg.Pool, 'query'>

export interface PoolOptions extends Omit<ConnectionOptions, 'applicationName'> {
  max?: number
  applicationName?: string
}

/** A connection pool. A lost connection only fails the query that uses it, now or next. */
export function createPool({ max = 10, applicationName = 'tidegate', ...options }: PoolOptions): pg.Pool {
  const pool = new pg.Pool({ ...connectionConfig({ ...options, applicationName }), max })
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
  let broken = false
  try {
    await tx.query(syncCommit ? 'begin' : 'begin; set local synchronous_commit = off')
    const result = await work(tx)
    await tx.query('commit')
    return result
  } catch (error) {
    broken = !(await rolledBack(tx, error))
    throw error
  } finally {
    // The pool replaces a connection that may be broken or still be in the transaction.
    tx.release(broken)
  }
}

/** Rolls back what failed with `error`; false when the connection cannot be used any more. */
export async function rolledBack(tx: Tx, error: unknown): Promise<boolean> {
  // A rollback behind a query that never ends would only wait as long once more.
  if (isConnectionError(error)) return false
  return tx.query('rollback').then(
    () => true,
    () => false,
  )
}

/** Whether the database could not be reached, did not answer or ended the connection, so that a retry may succeed. */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  return (
    /^(08|57P0|53300|25P03)/.test(codeOf(error)) ||
    /^E(CONNREFUSED|CONNRESET|PIPE|TIMEDOUT|HOSTUNREACH)$/.test(codeOf(error)) ||
    /Connection terminated|timeout exceeded when trying to connect|Query read timeout|not queryable/.test(
      error.message,
    )
  )
}

/** Whether the server ended a statement because it took too long. */
export function isStatementTimeout(error: unknown): boolean {
  return error instanceof Error && codeOf(error) === '57014'
}

const codeOf = (error: Error): string => ('code' in error && typeof error.code === 'string' ? error.code : '')
