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
  /** By TCP, as every client takes it. */
  url: string
  /** By the Unix socket, which costs both sides less; `url` where there is none that this process can use. */
  socketUrl: string
  /** Stops the server, unless another process uses the same data directory and started it. */
  stop(): Promise<void>
}

// Sized for a laptop. Every commit is still flushed to disk, so that an acknowledged write survives a power cut.
const settings = {
  listen_addresses: '127.0.0.1',
  // The data directory, which other users cannot enter.
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
const longestSocket = 103

/**
 * Starts PostgreSQL on a data directory of its own, which is created when missing. A server that a killed
 * process left there is taken over; one of a living process is shared.
 *
 * The package's own API is not used: it runs Postgres in the session of the terminal, so that Ctrl-C would stop it while
 * requests are still answered. The socket is in the data directory and not in `/tmp`, where any user could take its
 * name first. By the socket a statement takes a quarter less time on the clock than by TCP.
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
  const hasSocket = Buffer.byteLength(socket) <= longestSocket && existsSync(socket)
  const lock = await lockServer(url)
  options.logger.info({ dataDir, shared: lock === undefined }, 'embedded postgres is up')
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

interface Place {
  dataDir: string
  port: number | undefined
}

const startTimeoutMs = 60_000

// Another process may be starting the server, or stopping it, and clients are refused meanwhile.
async function startOrJoin(run: RunProgram, place: Place): Promise<void> {
  const end = performance.now() + startTimeoutMs
  while (performance.now() < end) {
    if (!(await isRunning(place.dataDir))) await start(run, place)
    if ((await readPidFile(place.dataDir)).isReady) return
    await delay(50)
  }
  throw new Error(`PostgreSQL runs in ${place.dataDir} and takes no connections`)
}

const startAttempts = 5

// pg_ctl puts the server in a session of its own: Ctrl-C reaches only this process, which stops the server
// after the drain. A free port may be in use a moment later, even by an outgoing connection: another is tried.
async function start(
  run: RunProgram,
  { dataDir, port }: Place,
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
    const printed = (await readFile(log, 'utf8').catch(() => ''))
      .trimEnd()
      .split('\n')
      .slice(-5)
      .join('\n')
    const again = attempts > 1 && port === undefined && printed.includes('Address already in use')
    if (!again) throw new Error(`PostgreSQL did not start:\n${printed}`, { cause })
    await start(run, { dataDir, port }, attempts - 1)
  }
}

// Lines 1, 4 and 8 of postmaster.pid (postgresql.org/docs/current/storage-file-layout.html); NaN where it is missing.
async function readPidFile(
  dataDir: string,
): Promise<{ pid: number; port: number; isReady: boolean }> {
  const text = await readFile(path.join(dataDir, 'postmaster.pid'), 'utf8').catch(() => '')
  const lines = text.split('\n')
  const [pid, , , port] = lines.map((line) => Number.parseInt(line, 10))
  return { pid: pid ?? Number.NaN, port: port ?? Number.NaN, isReady: lines[7]?.trim() === 'ready' }
}

// After a crash the number in postmaster.pid may belong to another program. Postgres would then take itself
// for running and not start, so the file goes.
async function isRunning(dataDir: string): Promise<boolean> {
  const { pid } = await readPidFile(dataDir)
  if (!pid) return false
  const args = await argumentsOf(pid)
  if (args.includes(dataDir)) return true
  if (args !== '') await rm(path.join(dataDir, 'postmaster.pid'), { force: true })
  return false
}

// Empty where there is no such process. It is read from /proc on Linux, because small images have no ps.
async function argumentsOf(pid: number): Promise<string> {
  if (process.platform === 'linux') return readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  const ps = promisify(execFile)('ps', ['-o', 'args=', '-p', String(pid)])
  return ps.then(
    ({ stdout }) => stdout,
    () => '',
  )
}

// Whoever holds this lock may stop the server; the lock of a killed process goes with its connection.
async function lockServer(url: string): Promise<pg.Client | undefined> {
  const client = new pg.Client({ connectionString: url, application_name: 'tidegate owner' })
  client.on('error', () => {})
  await client.connect()
  // Postgres may need a moment to see that a killed owner is gone.
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

// Makes a data directory and returns its password. initdb works in a folder next to it, which is renamed at the end, so that
// neither a crash nor a second process leaves a half-made directory.
async function createDataDir(run: RunProgram, dataDir: string): Promise<string> {
  await mkdir(path.dirname(dataDir), { recursive: true })
  const fresh = await mkdtemp(`${dataDir}-`)
  const [data, file] = [path.join(fresh, 'data'), path.join(fresh, 'password')]
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
    // With the password, so that a power cut leaves no database that nobody can open.
    await run('initdb', ['--sync-only', `--pgdata=${data}`])
    await rename(data, dataDir)
    return password
  } catch (error) {
    // Another process made it at the same moment.
    const others = await readPassword(dataDir)
    if (!others) throw error
    return others
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
}
