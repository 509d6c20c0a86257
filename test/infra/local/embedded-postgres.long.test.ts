import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import pg from 'pg'
import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from '../../../infra/local/embedded-postgres.ts'
import { createPool, isConnectionError } from '../../../infra/postgres/pool.ts'

const logger = pino({ level: 'silent' })

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}

/** Creates a folder that only its owner may enter, as mktemp does. */
const newFolder = (prefix = 'tidegate-embedded-') => mkdtemp(path.join(tmpdir(), prefix))

describe('an embedded server', () => {
  let dataDir: string
  let postgres: EmbeddedPostgres
  beforeAll(async () => {
    dataDir = path.join(await newFolder(), 'postgres')
    postgres = await startEmbeddedPostgres({ dataDir, logger })
  })
  afterAll(async () => {
    await postgres.stop()
    await rm(path.dirname(dataDir), { recursive: true })
  })

  test('uses UTF-8, has the required extensions and flushes each commit', async () => {
    await query(postgres.url, 'create extension pg_trgm')
    const rows = await query(
      postgres.url,
      "select lower('ÄÖ') as lower, current_setting('fsync') as fsync, current_setting('server_encoding') as encoding",
    )
    expect(rows[0]).toEqual({ lower: 'äö', fsync: 'on', encoding: 'UTF8' })
  })

  test('keeps its data and password across a restart', async () => {
    await query(postgres.url, 'create table kept as select 1 as one')
    await postgres.stop()
    await expect(query(postgres.url, 'select 1')).rejects.toThrow('ECONNREFUSED')
    postgres = await startEmbeddedPostgres({ dataDir, logger })
    expect(await query(postgres.url, 'select * from kept')).toEqual([{ one: 1 }])
  })

  test('requires a password that only the owner can read', async () => {
    const url = new URL(postgres.url)
    url.password = 'wrong'
    await expect(query(url.href, 'select 1')).rejects.toThrow('password authentication failed')
    const file = path.join(dataDir, 'tidegate-password')
    expect(await readFile(file, 'utf8')).toBe(new URL(postgres.url).password)
    expect((await stat(file)).mode & 0o077).toBe(0)
  })

  test('has a Unix socket with the same password while it runs', async () => {
    const viaSocket = await query(postgres.socketUrl, 'select inet_client_addr() as address')
    const viaTcp = await query(postgres.url, 'select host(inet_client_addr()) as address')
    expect([...viaSocket, ...viaTcp]).toEqual([{ address: null }, { address: '127.0.0.1' }])
    const url = new URL(postgres.socketUrl)
    url.password = 'wrong'
    await expect(query(url.href, 'select 1')).rejects.toThrow('password authentication failed')
    const pool = createPool({ url: postgres.socketUrl })
    await postgres.stop()
    const failure = await pool.query('select 1').catch((error: unknown) => error)
    expect(isConnectionError(failure)).toBe(true)
    await pool.end()
    postgres = await startEmbeddedPostgres({ dataDir, logger })
  })

  test('may have a path with special characters, or one too long for a socket', async () => {
    const folder = await newFolder()
    for (const name of ["it's 100% & häßlich?#", 'long'.repeat(25)]) {
      const other = await startEmbeddedPostgres({ dataDir: path.join(folder, name), logger })
      const rows = await query(other.socketUrl, 'select inet_client_addr() is null as by_socket')
      expect(rows).toEqual([{ by_socket: !name.startsWith('long') }])
      await other.stop()
    }
    await rm(folder, { recursive: true })
  })

  test('is shared by a second process, which does not stop it', async () => {
    const second = await startEmbeddedPostgres({ dataDir, logger })
    expect(second.url).toBe(postgres.url)
    await second.stop()
    expect(await query(postgres.url, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('is waited for while another process starts it', async () => {
    const file = path.join(dataDir, 'postmaster.pid')
    const ready = await readFile(file, 'utf8')
    await writeFile(file, ready.replace(/^ready *$/m, 'starting'))
    let hasJoined = false
    const joining = startEmbeddedPostgres({ dataDir, logger }).finally(() => {
      hasJoined = true
    })
    await query(postgres.url, 'select pg_sleep(1.5)')
    expect(hasJoined).toBe(false)
    await writeFile(file, ready)
    await (await joining).stop()
  })

  test('starts if the pid in its pid file belongs to another program', async () => {
    await postgres.stop()
    const lines = [process.pid, dataDir, 0, 5432, '', '127.0.0.1', '', 'ready   ']
    await writeFile(path.join(dataDir, 'postmaster.pid'), `${lines.join('\n')}\n`)
    postgres = await startEmbeddedPostgres({ dataDir, logger })
    expect(await query(postgres.url, 'select 1 as one')).toEqual([{ one: 1 }])
  })

  test('is created once if several processes start it at the same time', async () => {
    const other = path.join(path.dirname(dataDir), 'other')
    const starts = [1, 2, 3].map(() => startEmbeddedPostgres({ dataDir: other, logger }))
    const servers = await Promise.all(starts)
    expect(new Set(servers.map((server) => server.url)).size).toBe(1)
    for (const server of servers) await server.stop()
    await expect(query(servers[0]?.url ?? '', 'select 1')).rejects.toThrow('ECONNREFUSED')
  })

  test('is taken over from a killed process', async () => {
    await postgres.stop()
    const script = path.join(import.meta.dirname, 'postgres-owner.ts')
    const owner = spawn(process.execPath, [script, dataDir], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [printed] = await once(owner.stdout, 'data')
    owner.kill('SIGKILL')
    await once(owner, 'exit')
    postgres = await startEmbeddedPostgres({ dataDir, logger })
    expect(postgres.url).toBe(String(printed).trim())
    await postgres.stop()
    await expect(query(postgres.url, 'select 1')).rejects.toThrow('ECONNREFUSED')
    postgres = await startEmbeddedPostgres({ dataDir, logger })
  })
})
