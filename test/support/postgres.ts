import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { expect, inject } from 'vitest'
import { createPool } from '../../infra/postgres/pool.ts'
import { databaseUrl, onServer, template } from './server-databases.ts'

export interface TestDatabase {
  url: string
  pool: pg.Pool
  /** Closes all connections. At the end of the run, the database is scanned for secrets and deleted. */
  drop(): Promise<void>
}

export interface TestDatabaseOptions {
  /** Creates no tables. */
  empty?: boolean
  /** Superuser URL of another server than the test run's. Requires `empty`. */
  server?: string
}

/** Creates a database on the test run's Postgres, with all tables and no rows. */
export async function createTestDatabase({
  empty = false,
  server = inject('postgresUrl'),
}: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`
  await onServer(server, async (client) => {
    // Copying files is faster than logging pages, because nothing is flushed to disk.
    await client.query(
      `create database ${name} template ${empty ? 'template0' : template} strategy file_copy`,
    )
    await client.query(`comment on database ${name} is ${client.escapeLiteral(testFile())}`)
  })
  const url = databaseUrl(server, name)
  const pool = createPool({ url, applicationName: name })
  return {
    url,
    pool,
    async drop() {
      if (pool.ended) return
      await pool.end()
      await onServer(server, (client) =>
        client.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
          name,
        ]),
      )
    },
  }
}

const testFile = () => expect.getState().testPath ?? 'an unknown test file'
