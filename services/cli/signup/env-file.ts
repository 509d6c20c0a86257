import { execFile } from 'node:child_process'
import { access, constants, lstat, open, readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { systemCode } from '../../../infra/thrown.ts'

export type Values = ReadonlyMap<string, string>

/** Reads the values of a `.env` file, by name. None where there is no file. */
export async function readValues(file: string): Promise<Values> {
  const text = (await readFile(file, 'utf8').catch(missing)) ?? ''
  return new Map(Object.entries(parseEnv(text)).map(([name, value]) => [name, value ?? '']))
}

/** Writes values that can be `quoted` as a `.env` file has them, after a line for each comment. */
export function envText(values: Values, comments: string[]): string {
  const notes = comments.map((comment) => `# ${comment.replace(/\p{Cc}/gu, '?')}\n`)
  return [...notes, ...[...values].map(([name, value]) => `${name}=${quoted(value)}\n`)].join('')
}

// Characters that mean nothing to any reader of such files.
const bare = /^[\w./:@%+=,-]+$/

/**
 * The value as a `.env` file holds it, so that Node's parseEnv, the dotenv packages and a shell all read the same.
 * undefined where they may not: with several lines, an apostrophe, a NUL or a backslash at the end.
 */
export function quoted(value: string): string | undefined {
  // JSON and files would not give back half of a surrogate pair.
  if (/['\r\n\0]|\\$/.test(value) || !value.isWellFormed()) return undefined
  return bare.test(value) ? value : `'${value}'`
}

/** Rejects where something has the name already, or its folder cannot be written to. */
export async function requireNewFile(file: string): Promise<void> {
  if (await lstat(file).catch(missing)) throw new Error('it exists already')
  await access(path.dirname(file), constants.W_OK | constants.X_OK)
}

/**
 * Writes a file that only its owner can read, and returns its name, which has a number where another file has the name.
 * On disk when it resolves.
 */
export async function writeNewFile(file: string, text: string): Promise<string> {
  for (let number = 1; ; number++) {
    const name = number === 1 ? file : `${file}.${number}`
    if (await isWritten(name, text)) return name
  }
}

// False where something has the name.
async function isWritten(file: string, text: string): Promise<boolean> {
  const handle = await open(file, 'wx', 0o600).catch((error: unknown) => {
    if (systemCode(error) !== 'EEXIST') throw error
  })
  if (!handle) return false
  try {
    await handle.writeFile(text)
    await handle.sync()
    return true
  } catch (error) {
    await rm(file, { force: true })
    throw error
  } finally {
    await handle.close()
  }
}

function missing(error: unknown): undefined {
  if (systemCode(error) !== 'ENOENT') throw error
}

export async function committable(files: string[]): Promise<string[]> {
  const found = await Promise.all(files.map(isCommittable))
  return files.filter((_, i) => found[i])
}

// git says 0 of a file that it ignores, 1 of another, 128 where there is no repository.
function isCommittable(file: string): Promise<boolean> {
  const target = path.resolve(file)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const args = ['check-ignore', '--quiet', '--', target]
  execFile('git', args, { cwd: path.dirname(target) }, (error) => resolve(error?.code === 1))
  return promise
}
