import { execFile } from 'node:child_process'
import { access, constants, lstat, open, readFile, rm } from 'node:fs/promises'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { systemCode } from '../../../infra/thrown.ts'

export type EnvValues = ReadonlyMap<string, string>

/** Returns the values of a `.env` file. Returns an empty map if the file does not exist. */
export async function readValues(file: string): Promise<EnvValues> {
  const text = (await readFile(file, 'utf8').catch(ignoreMissing)) ?? ''
  return new Map(Object.entries(parseEnv(text)).map(([name, value]) => [name, value ?? '']))
}

/** Returns the text of a `.env` file. Pass only values that `quoteEnvValue` can quote. */
export function envText(values: EnvValues, comments: string[]): string {
  const notes = comments.map((comment) => `# ${comment.replace(/\p{Cc}/gu, '?')}\n`)
  return [
    ...notes,
    ...[...values].map(([name, value]) => `${name}=${quoteEnvValue(value)}\n`),
  ].join('')
}

// Characters that no reader of `.env` files treats specially.
const plainValue = /^[\w./:@%+=,-]+$/

/**
 * Quotes a value so that Node's parseEnv, the dotenv packages and shells read it the same. Returns undefined if that is
 * impossible, because of a line break, an apostrophe, a NUL or a trailing backslash.
 */
export function quoteEnvValue(value: string): string | undefined {
  // Lone surrogates would be lost in JSON and in files.
  if (/['\r\n\0]|\\$/.test(value) || !value.isWellFormed()) return undefined
  return plainValue.test(value) ? value : `'${value}'`
}

/** Throws if the path exists or its folder is not writable. */
export async function requireNewFile(file: string): Promise<void> {
  if (await lstat(file).catch(ignoreMissing)) throw new Error('it already exists')
  await access(path.dirname(file), constants.W_OK | constants.X_OK)
}

/**
 * Writes a new file that only its owner can read, and syncs it to disk. Returns its path, with a number appended if the
 * path was taken.
 */
export async function writeNewFile(file: string, text: string): Promise<string> {
  for (let number = 1; ; number++) {
    const name = number === 1 ? file : `${file}.${number}`
    if (await tryWrite(name, text)) return name
  }
}

// Returns false if the path exists.
async function tryWrite(file: string, text: string): Promise<boolean> {
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

function ignoreMissing(error: unknown): undefined {
  if (systemCode(error) !== 'ENOENT') throw error
}

/** Returns the files in a git repository that git doesn't ignore. */
export async function findCommittable(files: string[]): Promise<string[]> {
  const results = await Promise.all(files.map(isCommittable))
  return files.filter((_, i) => results[i])
}

// git check-ignore exits with 0 for an ignored file, 1 for others, 128 outside a repository.
function isCommittable(file: string): Promise<boolean> {
  const target = path.resolve(file)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const args = ['check-ignore', '--quiet', '--', target]
  execFile('git', args, { cwd: path.dirname(target) }, (error) => resolve(error?.code === 1))
  return promise
}
