import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, mkdir, mkdtemp, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import type { Logger } from 'pino'
import { freePort } from './free-port.ts'
import {
  findPostgresBinaries,
  type PostgresBinaries,
  type ProcessOwner,
  postgresOwner,
  runAs,
} from './postgres-binaries.ts'

const run = promisify(execFile)

export interface EmbeddedPostgresOptions {
  dataDir: string
  port?: number
  logger: Logger
}

export interface EmbeddedPostgres {
  url: string
  /** Stops the server, unless another process uses the same data directory and started it. */
  stop(): Promise<void>
}

/** Sized for a laptop. Every commit is still flushed to disk: an acknowledged write survives a power cut. */
const settings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  shared_buffers: '128MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  jit: 'off',
  log_min_messages: 'warning',
}

interface Server {
  binaries: PostgresBinaries
  owner: ProcessOwner | undefined
  dataDir: string
  password: string
}

/**
 * Starts PostgreSQL on a data directory of its own, which is created when missing. A server that a killed
 * process left there is taken over; one of a living process is shared.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const dataDir = path.resolve(options.dataDir)
  const [binaries, owner] = await Promise.all([findPostgresBinaries(), postgresOwner()])
  const password = await readyDataDir({ initdb: binaries.initdb, owner, dataDir })
  const server = { binaries, owner, dataDir, password }
  await removeForeignPidFile(dataDir)
  if (!(await isRunning(server))) await (options.port ? start(server, options.port) : startOnFreePort(server))
  const url = `postgres://postgres:${server.password}@127.0.0.1:${await readPort(dataDir)}/postgres`
  const lock = await lockServer(url)
  options.logger.info({ dataDir, shared: lock === undefined }, 'embedded postgres is up')
  return {
    url,
    async stop() {
      if (!lock) return
      await lock.end()
      await control(server, ['stop', '-m', 'fast', '-w', '-t', '30'])
    },
  }
}

const control = (server: Server, args: string[]) =>
  runAs(server.owner, server.binaries.pg_ctl, [...args, '-D', server.dataDir])

const isRunning = (server: Server) =>
  control(server, ['status']).then(
    () => true,
    () => false,
  )

const startAttempts = 5

/** A free port may be in use a moment later, even by an outgoing connection. Then another is tried. */
async function startOnFreePort(server: Server): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(server, await freePort())
    } catch (error) {
      if (attempt === startAttempts || !/Address already in use/.test(String(error))) throw error
    }
  }
}

/**
 * pg_ctl puts the server in a session of its own: Ctrl-C reaches only this process, which stops the server
 * after the drain.
 */
async function start(server: Server, port: number): Promise<void> {
  const flags = Object.entries(settings).map(([name, value]) => `-c ${name}='${value}'`)
  const log = path.join(server.dataDir, 'server.log')
  const args = ['start', '-w', '-t', '60', '-s', '-l', log, '-o', `-p ${port} ${flags.join(' ')}`]
  await control(server, args).catch(async (cause) => {
    // Another process started it at the same moment.
    if (await isRunning(server)) return
    const lines = (await readFile(log, 'utf8').catch(() => '')).trimEnd().split('\n')
    throw new Error(`PostgreSQL did not start:\n${lines.slice(-5).join('\n')}`, { cause })
  })
}

/**
 * After a crash the number in postmaster.pid may belong to another program. Postgres would then take itself
 * for running and not start.
 */
async function removeForeignPidFile(dataDir: string): Promise<void> {
  const file = path.join(dataDir, 'postmaster.pid')
  const pid = Number.parseInt(await readFile(file, 'utf8').catch(() => ''), 10)
  if (!pid) return
  const ps = await run('ps', ['-o', 'args=', '-p', String(pid)]).catch(() => undefined)
  if (ps && !ps.stdout.includes('postgres')) await rm(file, { force: true })
}

/** Line 4 of postmaster.pid is the port (postgresql.org/docs/current/storage-file-layout.html). */
async function readPort(dataDir: string): Promise<number> {
  const lines = (await readFile(path.join(dataDir, 'postmaster.pid'), 'utf8')).split('\n')
  return Number(lines[3])
}

/** Whoever holds this lock may stop the server; the lock of a killed process goes with its connection. */
async function lockServer(url: string): Promise<pg.Client | undefined> {
  const client = new pg.Client({ connectionString: url, application_name: 'tidegate owner' })
  client.on('error', () => {})
  await client.connect()
  // Postgres may need a moment to see that a killed owner is gone.
  for (let attempt = 0; attempt < 5; attempt++) {
    const { rows } = await client.query("select pg_try_advisory_lock(hashtext('tidegate owner')) as locked")
    if (rows[0]?.locked) return client
    await delay(100)
  }
  await client.end()
  return undefined
}

export interface DataDirOptions {
  initdb: string
  owner: ProcessOwner | undefined
  dataDir: string
}

/**
 * The password of a PostgreSQL data directory, which is made when missing. initdb runs beside it and the
 * result is renamed, so that neither a crash nor a second process leaves a half-made directory.
 */
export async function readyDataDir(options: DataDirOptions): Promise<string> {
  const { dataDir } = options
  const known = await readPassword(dataDir)
  if (known) return known
  await mkdir(path.dirname(dataDir), { recursive: true })
  const fresh = await mkdtemp(`${dataDir}-`)
  try {
    await initialise(options, fresh)
    await rename(path.join(fresh, 'data'), dataDir)
    await flush(path.dirname(dataDir))
  } catch (error) {
    const others = await readPassword(dataDir)
    if (!others) throw error
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
  return readFile(passwordFile(dataDir), 'utf8')
}

const passwordFile = (dataDir: string) => path.join(dataDir, 'tidegate-password')

const readPassword = (dataDir: string): Promise<string | undefined> =>
  readFile(passwordFile(dataDir), 'utf8').catch(() => undefined)

async function initialise({ initdb, owner }: DataDirOptions, folder: string): Promise<void> {
  const data = path.join(folder, 'data')
  const password = path.join(folder, 'password')
  await mkdir(data, { mode: 0o700 })
  await writeFile(password, randomBytes(18).toString('hex'), { mode: 0o600 })
  for (const place of [folder, data, password]) if (owner) await chown(place, owner.uid, owner.gid)
  await runAs(owner, initdb, [
    ...['--auth=scram-sha-256', '--username=postgres', '--encoding=UTF8', '--locale=C'],
    ...['--locale-provider=builtin', '--builtin-locale=C.UTF-8'],
    ...[`--pgdata=${data}`, `--pwfile=${password}`],
  ])
  await rename(password, passwordFile(data))
  // initdb has flushed what it wrote. Without the rest a power cut could leave a database without its password.
  for (const place of [passwordFile(data), data]) await flush(place)
}

async function flush(place: string): Promise<void> {
  // Windows opens no folders.
  const handle = await open(place, 'r').catch(() => undefined)
  try {
    await handle?.sync()
  } finally {
    await handle?.close()
  }
}
