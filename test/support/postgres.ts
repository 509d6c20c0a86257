import { randomBytes } from 'node:crypto'
import type pg from 'pg'
import { expect, inject } from 'vitest'
import { createPool } from '../../infra/postgres/pool.ts'
import { databaseUrl, onServer, template } from './server-databases.ts'

export interface TestDatabase {
  url: string
  pool: pg.Pool
  /** Closes the pool and every other connection. When the run is over it is searched for secrets and removed. */
  drop(): Promise<void>
}

export interface TestDatabaseOptions {
  /** Without the tables that a server makes at its start. */
  empty?: boolean
  /** A superuser's URL of another server than the test run's, which has to be `empty`. */
  server?: string
}

/** A fresh database on the test run's Postgres, with all tables and no rows. */
export async function createTestDatabase({
  empty = false,
  server = inject('postgresUrl'),
}: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`
  await onServer(server, async (client) => {
    // Copying files is quicker than logging their pages, as nothing here is flushed to disk.
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
