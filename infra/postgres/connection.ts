import type pg from 'pg'

export interface ConnectionOptions {
  url: string
  applicationName: string
  /** A query without its answer after this long fails, and its connection is given up. Default: none. */
  queryTimeoutMs?: number
  /** The server itself ends a statement that takes longer; the connection goes on. Default: none. */
  statementTimeoutMs?: number
  /** The server ends a connection whose open transaction does nothing for longer. Default: none. */
  idleInTransactionMs?: number
  /** Further settings of the session. */
  settings?: Record<string, string | number>
}

export const connectTimeoutMs = 5000

/** The locks of a client whose machine or network vanished are freed within about ten seconds. */
const vanishedClients = {
  tcp_keepalives_idle: 3,
  tcp_keepalives_interval: 2,
  tcp_keepalives_count: 3,
  tcp_user_timeout: 10_000,
}

/** What every connection of ours to Postgres is opened with. */
export function connectionConfig(options: ConnectionOptions): pg.ClientConfig {
  const { url, applicationName, queryTimeoutMs, statementTimeoutMs, idleInTransactionMs } = options
  const settings = Object.entries({ ...vanishedClients, ...options.settings })
  return {
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 5000,
    options: settings.map(([name, value]) => `-c ${name}=${value}`).join(' '),
    ...(queryTimeoutMs ? { query_timeout: queryTimeoutMs } : {}),
    ...(statementTimeoutMs ? { statement_timeout: statementTimeoutMs } : {}),
    ...(idleInTransactionMs ? { idle_in_transaction_session_timeout: idleInTransactionMs } : {}),
  }
}
