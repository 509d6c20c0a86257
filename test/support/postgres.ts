import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { createPool } from '../../infra/postgres/pool.ts'
import { sweepDatabase } from './key-sweep.ts'

export interface TestDatabase {
  url: string
  pool: pg.Pool
  /** Closes the pool and drops the database, whoever is still connected. Rejects when a table held a secret key. */
  drop(): Promise<void>
}

/** A fresh, empty database on the test run's Postgres. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`
  const serverUrl = inject('postgresUrl')
  await onServer(serverUrl, `create database ${name}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  const pool = createPool({ url: url.href, applicationName: name })
  return {
    url: url.href,
    pool,
    async drop() {
      await pool.end()
      await sweepDatabase(url.href).finally(() =>
        onServer(serverUrl, `drop database if exists ${name} with (force)`),
      )
    },
  }
}

async function onServer(url: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
