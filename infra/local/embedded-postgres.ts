import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import pg from 'pg'
import type { Logger } from 'pino'
import { freePort } from './free-port.ts'
import { findPostgresPrograms, type RunProgram } from './postgres-programs.ts'

export interface EmbeddedPostgres {
  /** Connects by TCP, which every client supports. */
  url: string
  /** Connects by the Unix socket, which is cheaper; equals `url` if no socket is usable. */
  socketUrl: string
  /** Stops the server, unless another process with the same data directory owns it. */
  stop(): Promise<void>
}

// Sized for a laptop. Every commit is still flushed to disk, so that an acknowledged write survives a power cut.
const settings = {
  listen_addresses: '127.0.0.1',
  // Relative to the data directory, which other users cannot enter.
  unix_socket_directories: '.',
  max_connections: '200',
  shared_buffers: '128MB',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  jit: 'off',
  log_min_messages: 'warning',
}

// sockaddr_un has room for 108 bytes on Linux and 104 on macOS, with a NUL at the end.
const maxSocketBytes = 103

/**
 * Starts PostgreSQL on the data directory, which is created if missing. Takes over a server that a killed process left
 * there, and shares one that a living process owns.
 *
 * Runs pg_ctl instead of the package's API, which would keep Postgres in the terminal's session: Ctrl-C would stop it
 * while requests are still being served. The socket is in the data directory rather than in `/tmp`, where any user
 * could claim its name first. A statement over the socket takes a quarter less time than over TCP.
 */
export async function startEmbeddedPostgres(options: {
  dataDir: string
  port?: number
  logger: Logger
}): Promise<EmbeddedPostgres> {
  const dataDir = path.resolve(options.dataDir)
  const run = await findPostgresPrograms()
  const password = (await readPassword(dataDir)) ?? (await createDataDir(run, dataDir))
  await startOrJoin(run, { dataDir, port: options.port })
  const { port } = await readPidFile(dataDir)
  const url = `postgres://postgres:${password}@127.0.0.1:${port}/postgres`
  const socket = path.join(dataDir, `.s.PGSQL.${port}`)
  const hasSocket = Buffer.byteLength(socket) <= maxSocketBytes && existsSync(socket)
  const lock = await tryLockServer(url)
  const isShared = lock === undefined
  options.logger.info(
    { data_dir: dataDir, shared: isShared },
    isShared ? 'joined a running embedded PostgreSQL' : 'started embedded PostgreSQL',
  )
  return {
    url,
    socketUrl: hasSocket ? `${url}?host=${encodeURIComponent(dataDir)}` : url,
    async stop() {
      if (!lock) return
      await lock.end()
      await run('pg_ctl', ['stop', '-m', 'fast', '-w', '-t', '30', '-D', dataDir])
    },
  }
}

interface ServerOptions {
  dataDir: string
  port: number | undefined
}

const startTimeoutMs = 60_000

// Retries, because the server refuses clients while another process is starting or stopping it.
async function startOrJoin(run: RunProgram, options: ServerOptions): Promise<void> {
  const end = performance.now() + startTimeoutMs
  while (performance.now() < end) {
    if (!(await isRunning(options.dataDir))) await startServer(run, options)
    if ((await readPidFile(options.dataDir)).isReady) return
    await delay(50)
  }
  throw new Error(`PostgreSQL is running in ${options.dataDir} but accepts no connections`)
}

const startAttempts = 5

// pg_ctl starts the server in a new session, so Ctrl-C reaches only this process, which stops the server after the
// drain. A free port may be taken a moment later, even by an outgoing connection, so another port is then tried.
async function startServer(
  run: RunProgram,
  { dataDir, port }: ServerOptions,
  attempts = startAttempts,
): Promise<void> {
  const log = path.join(dataDir, 'server.log')
  const flags = Object.entries(settings).map(([name, value]) => `-c ${name}='${value}'`)
  const options = `-p ${port ?? (await freePort())} ${flags.join(' ')}`
  try {
    await run('pg_ctl', ['start', '-w', '-t', '60', '-s', '-l', log, '-o', options, '-D', dataDir])
  } catch (cause) {
    // Another process started it at the same moment.
    if (await isRunning(dataDir)) return
    const logEnd = (await readFile(log, 'utf8').catch(() => ''))
      .trimEnd()
      .split('\n')
      .slice(-5)
      .join('\n')
    const retries = attempts > 1 && port === undefined && logEnd.includes('Address already in use')
    if (!retries) throw new Error(`PostgreSQL did not start:\n${logEnd}`, { cause })
    await startServer(run, { dataDir, port }, attempts - 1)
  }
}

// Reads lines 1, 4 and 8 of postmaster.pid (postgresql.org/docs/current/storage-file-layout.html); NaN if it is
// missing.
async function readPidFile(
  dataDir: string,
): Promise<{ pid: number; port: number; isReady: boolean }> {
  const text = await readFile(path.join(dataDir, 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  const [pid, , , port] = lines.map((line) => Number.parseInt(line, 10))
  return { pid: pid ?? Number.NaN, port: port ?? Number.NaN, isReady: lines[7]?.trim() === 'ready' }
}

// Deletes postmaster.pid if its pid belongs to another program, as it may after a crash: Postgres would refuse to
// start.
async function isRunning(dataDir: string): Promise<boolean> {
  const { pid } = await readPidFile(dataDir)
  if (!pid) return false
  const args = await argumentsOf(pid)
  if (args.includes(dataDir)) return true
  if (args !== '') await rm(path.join(dataDir, 'postmaster.pid'), { force: true })
  return false
}

// Returns the process's command line; empty if there is no such process. Uses /proc on Linux, because small images lack
// ps.
async function argumentsOf(pid: number): Promise<string> {
  if (process.platform === 'linux') return readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  const ps = promisify(execFile)('ps', ['-o', 'args=', '-p', String(pid)])
  return ps.then(
    ({ stdout }) => stdout,
    () => '',
  )
}

// Takes the lock of the server's owner, who stops it at the end. Returns undefined if another process has it. If the
// owner is killed, the lock is released with its connection.
async function tryLockServer(url: string): Promise<pg.Client | undefined> {
  const client = new pg.Client({ connectionString: url, application_name: 'tidegate owner' })
  client.on('error', () => {})
  await client.connect()
  // Postgres may need a moment to notice that a killed owner's connection is gone.
  for (let attempt = 0; attempt < 5; attempt++) {
    const { rows } = await client.query(
      "select pg_try_advisory_lock(hashtext('tidegate owner')) as locked",
    )
    if (rows[0]?.locked) return client
    await delay(100)
  }
  await client.end()
  return undefined
}

const readPassword = (dataDir: string): Promise<string | undefined> =>
  readFile(path.join(dataDir, 'tidegate-password'), 'utf8').catch(() => undefined)

// Creates a data directory and returns its password. initdb works in a temporary folder, which is renamed at the end,
// so that neither a crash nor a second process leaves an incomplete directory.
async function createDataDir(run: RunProgram, dataDir: string): Promise<string> {
  await mkdir(path.dirname(dataDir), { recursive: true })
  const temporary = await mkdtemp(`${dataDir}-`)
  const [data, file] = [path.join(temporary, 'data'), path.join(temporary, 'password')]
  const password = randomBytes(18).toString('hex')
  try {
    await writeFile(file, password, { mode: 0o600 })
    await run('initdb', [
      '--auth=scram-sha-256',
      '--username=postgres',
      '--encoding=UTF8',
      '--locale=C',
      '--no-sync',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      `--pgdata=${data}`,
      `--pwfile=${file}`,
    ])
    await rename(file, path.join(data, 'tidegate-password'))
    // Syncs the password too, so that a power cut cannot leave a database without it.
    await run('initdb', ['--sync-only', `--pgdata=${data}`])
    await rename(data, dataDir)
    return password
  } catch (error) {
    // Another process created the directory at the same moment.
    const existing = await readPassword(dataDir)
    if (!existing) throw error
    return existing
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}
