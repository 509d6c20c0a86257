import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { databaseIdentity } from '../../../infra/event-store/catch-up.ts'
import { type EmbeddedPostgres, startEmbeddedPostgres } from '../../../infra/local/embedded-postgres.ts'
import { createPool } from '../../../infra/postgres/pool.ts'
import { eventually } from '../../support/eventually.ts'

const logger = pino({ level: 'silent' })

test('a database has another identity after a crash of one of its processes and after a restart, else the same', async () => {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'tidegate-identity-'))
  await chmod(dataDir, 0o755)
  const server = { dataDir: path.join(dataDir, 'postgres'), logger }
  let postgres: EmbeddedPostgres | undefined
  try {
    postgres = await startEmbeddedPostgres(server)
    const pool = createPool({ url: postgres.url, max: 1 })
    const first = await databaseIdentity(pool)
    expect(await databaseIdentity(pool)).toBe(first)
    const other = createPool({ url: postgres.url, max: 1 })
    expect(await databaseIdentity(other)).toBe(first)
    const { rows } = await other.query<{ pid: number }>('select pg_backend_pid() as pid')
    process.kill(rows[0]?.pid ?? 0, 'SIGKILL')
    await eventually(() => other.query('select'))
    const crashed = await eventually(() => databaseIdentity(pool))
    expect(crashed).not.toBe(first)
    await Promise.all([pool.end(), other.end()])

    await postgres.stop()
    postgres = await startEmbeddedPostgres(server)
    const again = createPool({ url: postgres.url, max: 1 })
    const restarted = await databaseIdentity(again)
    await again.end()
    expect([first, crashed]).not.toContain(restarted)
  } finally {
    await postgres?.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
})
