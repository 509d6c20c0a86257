import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { access, type FileHandle, lstat, open, readFile, readlink, rename, rm, stat } from 'node:fs/promises'
import path from 'node:path'

const ownerOnly = 0o600

/** The file that is meant: where symbolic links lead, whether there is a file or not. */
export async function targetOf(file: string): Promise<string> {
  let target = path.resolve(file)
  for (let links = 0; links < 32; links++) {
    const found = await lstat(target).catch(missing)
    if (!found?.isSymbolicLink()) return target
    target = path.resolve(path.dirname(target), await readlink(target))
  }
  throw new Error(`${file}: too many symbolic links`)
}

/** Its text; empty where there is no such file. */
export async function readText(file: string): Promise<string> {
  return (await readFile(file, 'utf8').catch(missing)) ?? ''
}

/** Rejects, and says why, when the file or its folder cannot be written. */
export async function requireWritable(file: string): Promise<void> {
  await access(path.dirname(file), constants.W_OK | constants.X_OK)
  const found = await stat(file).catch(missing)
  if (found && !found.isFile()) throw new Error(`${file} is not a file`)
  if (found) await access(file, constants.R_OK | constants.W_OK)
}

/** Puts the text in the place of the file in one step; on disk when it resolves, and only its owner may read it. */
export async function replaceFile(file: string, text: string): Promise<void> {
  const temporary = `${file}.${randomBytes(6).toString('hex')}.tmp`
  try {
    await writeNew(temporary, text)
    await keepOwner(file, temporary)
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  await syncFolder(path.dirname(file))
}

/** A file beside others, with a number where the name is taken; returns its name. On disk when it resolves. */
export async function writeBeside(file: string, text: string): Promise<string> {
  for (let number = 1; ; number++) {
    const name = number === 1 ? file : `${file}.${number}`
    const isNew = await writeNew(name, text).then(() => true, exists)
    if (!isNew) continue
    await syncFolder(path.dirname(name))
    return name
  }
}

/** Rejects with EEXIST for a file that is there. */
async function writeNew(file: string, text: string): Promise<void> {
  await withHandle(await open(file, 'wx', ownerOnly), async (handle) => {
    // Whatever the process's mask takes away.
    await handle.chmod(ownerOnly)
    await handle.writeFile(text)
    await handle.sync()
  })
}

/** Run by the administrator, it must not take a user's file away. */
async function keepOwner(file: string, temporary: string): Promise<void> {
  const [before, now] = [await stat(file).catch(missing), await stat(temporary)]
  if (!before || (before.uid === now.uid && before.gid === now.gid)) return
  await withHandle(await open(temporary, 'r+'), (handle) =>
    handle.chown(before.uid, before.gid).catch(() => {}),
  )
}

async function syncFolder(folder: string): Promise<void> {
  // Windows has no handles of folders.
  const handle = await open(folder, 'r').catch(() => undefined)
  if (handle) await withHandle(handle, () => handle.sync().catch(() => {}))
}

async function withHandle(handle: FileHandle, use: (handle: FileHandle) => Promise<void>): Promise<void> {
  try {
    await use(handle)
  } finally {
    await handle.close()
  }
}

const codeOf = (error: unknown) => (error instanceof Error && 'code' in error ? error.code : undefined)

function missing(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT') throw error
}

function exists(error: unknown): false {
  if (codeOf(error) !== 'EEXIST') throw error
  return false
}
