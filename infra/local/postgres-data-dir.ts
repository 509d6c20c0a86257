import { randomBytes } from 'node:crypto'
import { chown, mkdir, mkdtemp, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type ProcessOwner, runAs } from './postgres-binaries.ts'

export interface DataDirOptions {
  initdb: string
  owner: ProcessOwner | undefined
  dataDir: string
}

/**
 * The password of a PostgreSQL data directory, made first where there is none. initdb runs beside it and the result
 * is renamed, so that neither a crash nor a second process at the same time leaves a half-made directory.
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

/** Makes a file's content, or a folder's list of names, outlast a power cut. */
async function flush(place: string): Promise<void> {
  // Windows opens no folders.
  const handle = await open(place, 'r').catch(() => undefined)
  try {
    await handle?.sync()
  } finally {
    await handle?.close()
  }
}
