import { spawn } from 'node:child_process'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { freePort } from '../../infra/local/free-port.ts'
import { endChild } from './end-child.ts'
import { findProgram } from './needs/programs.ts'

export interface PgBouncer {
  url: string
  stop(): Promise<void>
}

const program = findProgram('pgbouncer') ?? 'pgbouncer'

/** Starts PgBouncer in front of the database, with additional settings. */
export async function startPgBouncer(databaseUrl: string, settings: string[]): Promise<PgBouncer> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-pgbouncer-'))
  await chmod(folder, 0o755)
  const port = await freePort()
  const file = path.join(folder, 'pgbouncer.ini')
  await writeFile(file, settingsText(databaseUrl, [`listen_port = ${port}`, ...settings]), {
    mode: 0o644,
  })
  // PgBouncer refuses to run as root.
  const before = process.getuid?.() === 0 ? ['setpriv', '--reuid=nobody', '--clear-groups'] : []
  const [command = program, ...args] = [...before, program, file]
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  const lines: string[] = []
  const { promise: started, resolve, reject } = Promise.withResolvers<void>()
  child
    .once('error', reject)
    .once('exit', () => reject(new Error(`PgBouncer ended:\n${lines.join('\n')}`)))
  createInterface(child.stderr).on('line', (line) => {
    lines.push(line)
    if (line.includes('process up')) resolve()
  })
  await started
  const url = new URL(databaseUrl)
  url.search = ''
  url.host = `127.0.0.1:${port}`
  return {
    url: url.href,
    async stop() {
      await endChild(child, 'SIGKILL')
      await rm(folder, { recursive: true, force: true })
    },
  }
}

function settingsText(databaseUrl: string, settings: string[]): string {
  const { port, username, password } = new URL(databaseUrl)
  const server = { host: '127.0.0.1', port, user: username, ...(password && { password }) }
  const words = Object.entries(server).map(([name, value]) => `${name}=${value}`)
  const fixed = ['listen_addr = 127.0.0.1', 'unix_socket_dir =', 'auth_type = any']
  return [`[databases]`, `* = ${words.join(' ')}`, `[pgbouncer]`, ...fixed, ...settings, ''].join(
    '\n',
  )
}
