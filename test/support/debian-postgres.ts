import { globSync } from 'node:fs'
import { chmod, chown, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { freePort } from '../../infra/local/free-port.ts'
import { findPostgresPrograms } from '../../infra/local/postgres-programs.ts'
import { queryAt } from './server-databases.ts'
import { createAuthority } from './tls-certificates.ts'

export interface DebianPostgres {
  /** URL for the superuser. */
  url: string
  /** File of the CA that issued the server's certificate. */
  ca: string
  stop(): Promise<void>
  /** Returns the pid of the postmaster. */
  pid(): Promise<number>
  /** Restarts the server after its processes were killed. */
  restart(): Promise<void>
}

/** Starts the oldest PostgreSQL of this machine's Debian packages, with default settings. */
export async function startDebianPostgres({ within = tmpdir() } = {}): Promise<DebianPostgres> {
  const run = await findPostgresPrograms(binaries())
  const folder = await mkdtemp(path.join(within, 'tidegate-debian-'))
  // PostgreSQL may run as another user, who creates the data in it.
  await chmod(folder, 0o777)
  const [data, passwordFile] = [path.join(folder, 'data'), path.join(folder, 'password')]
  const port = await freePort()
  await writeFile(passwordFile, 'secret', { mode: 0o644 })
  const access = ['--auth=scram-sha-256', '--username=postgres', `--pwfile=${passwordFile}`]
  await run('initdb', [...access, '--no-sync', `--pgdata=${data}`])
  const ca = await giveCertificate(data, folder)
  const options = `-p ${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=. -c fsync=off -c ssl=on`
  const start = () =>
    run('pg_ctl', ['start', '-w', '-s', '-l', path.join(folder, 'log'), '-o', options, '-D', data])
  await start()
  return {
    url: `postgres://postgres:secret@127.0.0.1:${port}/postgres`,
    ca,
    pid: async () =>
      Number((await readFile(path.join(data, 'postmaster.pid'), 'utf8')).split('\n')[0]),
    async restart() {
      await start()
    },
    async stop() {
      await run('pg_ctl', ['stop', '-m', 'immediate', '-w', '-D', data])
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/**
 * Makes a database `tidegate` of a user of that name, and returns its URL; `through` leads to the server by a proxy.
 */
export async function createOwnDatabase(
  { url, ca }: DebianPostgres,
  through = url,
): Promise<string> {
  await queryAt(url, [
    "create role tidegate login password 'secret'",
    'create database tidegate owner tidegate',
  ])
  const own = new URL(through)
  own.username = 'tidegate'
  own.pathname = '/tidegate'
  return `${own.href}?sslmode=verify-full&sslrootcert=${ca}`
}

/** Writes a certificate and key where the server reads them, as files that it owns. */
async function giveCertificate(data: string, folder: string): Promise<string> {
  const authority = createAuthority()
  const { key, cert } = authority.issue({ host: '127.0.0.1' })
  const { uid, gid } = await stat(data)
  for (const [name, text] of [
    ['server.key', key],
    ['server.crt', cert],
  ] as const) {
    const file = path.join(data, name)
    await writeFile(file, text, { mode: 0o600 })
    await chown(file, uid, gid)
  }
  const ca = path.join(folder, 'ca.pem')
  await writeFile(ca, authority.ca)
  return ca
}

function binaries(): string {
  const [oldest] = globSync('/usr/lib/postgresql/*/bin/initdb').sort()
  if (!oldest) throw new Error('This needs the Debian package postgresql')
  return path.dirname(oldest)
}
