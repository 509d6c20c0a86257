import { execFile } from 'node:child_process'
import {
  access,
  constants,
  type FileHandle,
  lstat,
  open,
  readFile,
  realpath,
  rm,
  stat,
} from 'node:fs/promises'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { systemCode } from '../thrown.ts'

export type Values = ReadonlyMap<string, string>

/** What the text of a `.env` file gives a value, by name. */
export const valuesIn = (text: string): Values =>
  new Map(Object.entries(parseEnv(text)).map(([name, value]) => [name, value ?? '']))

export interface Addition {
  /** To be appended. Whatever else is in the file reads the same afterwards. */
  lines: string
  /** The names of the values that the file then has, also of those that it had before. */
  present: string[]
  /** The names that it cannot get, as it has another value or a quote that nobody closes. */
  conflicts: string[]
}

interface AdditionOptions {
  /** One line each: where the values are from, and what else there is to say. */
  comments: string[]
  overwrites(name: string): boolean
}

/**
 * How values that can be `quoted` go to the end of a `.env` file. Where a variable is there twice, readers take the
 * last one.
 */
export function additionTo(
  text: string,
  values: Values,
  { comments, overwrites }: AdditionOptions,
): Addition {
  const existing = valuesIn(text)
  const fates = Map.groupBy(values, ([name, value]) => {
    const before = existing.get(name)
    if (before === value) return 'there'
    return before && !overwrites(name) ? 'conflict' : 'added'
  })
  const names = (fate: 'there' | 'conflict') => (fates.get(fate) ?? []).map(([name]) => name)
  const added = new Map(fates.get('added'))
  const lines = linesOf(text, added, comments)
  if (isSame(valuesIn(text + lines), new Map([...existing, ...added])))
    return { lines, present: [...names('there'), ...added.keys()], conflicts: names('conflict') }
  return { lines: '', present: names('there'), conflicts: [...names('conflict'), ...added.keys()] }
}

/** Whether something can be added: false in a file with a quote that nobody closes, which a value's own could close. */
export function takesMore(text: string): boolean {
  const probe = new Map([['TIDEGATE_PROBE', '"`']])
  return additionTo(text, probe, { comments: [], overwrites: () => true }).conflicts.length === 0
}

function linesOf(text: string, added: Values, comments: string[]): string {
  if (added.size === 0 && comments.length < 2) return ''
  const newline = text.includes('\r\n') ? '\r\n' : '\n'
  const begin = text === '' || text.endsWith('\n') ? '' : newline
  const notes = comments.map((comment) => `# ${comment.replace(/\p{Cc}/gu, '?')}`)
  const lines = [...notes, ...[...added].map(([name, value]) => `${name}=${quoted(value)}`), '']
  return begin + lines.join(newline)
}

function isSame(one: Values, other: Values): boolean {
  return one.size === other.size && [...other].every(([name, value]) => one.get(name) === value)
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

export async function readText(file: string): Promise<string> {
  return (await readFile(file, 'utf8').catch(missing)) ?? ''
}

/** An env file. Links to it were followed once, so that one that is made later leads nowhere else. */
export interface EnvPlace {
  /** As it was named. */
  file: string
  target: string
  /** The file as it was named, in the folder where that is. */
  named: string
}

const thisUser = () => process.getuid?.() ?? 0

/**
 * Rejects where `changeText` or `writeExtraFile` would: also where somebody else owns the file, because only the owner can
 * close it to others. Leaves everything as it was.
 */
export async function writablePlace(file: string, user = thisUser()): Promise<EnvPlace> {
  const folder = await realpath(path.dirname(file))
  const named = path.join(folder, path.basename(file))
  const target = (await realpath(file).catch(missing)) ?? named
  await access(folder, constants.W_OK | constants.X_OK)
  const isThere = (await lstat(target).catch(missing)) !== undefined
  const handle = await openTarget(target, user)
  await handle.close()
  if (!isThere) await rm(target)
  return { file, target, named }
}

const ownerOnly = 0o600
// Windows has no such flag, and links there need a right of their own.
const unlinked =
  constants.O_RDWR |
  constants.O_APPEND |
  constants.O_CREAT |
  constants.O_NONBLOCK |
  (constants.O_NOFOLLOW ?? 0)

// What was opened is checked, and not what the name meant a moment before.
async function openTarget(target: string, user: number): Promise<FileHandle> {
  const handle = await open(target, unlinked, ownerOnly)
  try {
    const opened = await handle.stat()
    if (!opened.isFile()) throw new Error(`${target} is not a file`)
    if (user !== 0 && user !== opened.uid) throw new Error(`${target} is another user's`)
    const [real, there] = await Promise.all([realpath(target), stat(target)])
    if (real !== target || there.ino !== opened.ino || there.dev !== opened.dev)
      throw new Error(`a link has come into the way to ${target}`)
    return handle
  } catch (error) {
    await handle.close()
    throw error
  }
}

/**
 * Appends what `additionOf` makes of the text. On disk when it resolves, and then only the file's owner may read it. A
 * new file in its place would have to keep links, owner and what others write meanwhile; an append needs none of that.
 */
export async function changeText<T extends { lines: string }>(
  { target }: EnvPlace,
  additionOf: (text: string) => Promise<T>,
): Promise<T> {
  const handle = await openTarget(target, thisUser())
  try {
    const addition = await additionOf(await handle.readFile('utf8'))
    if (addition.lines === '') return addition
    await handle.chmod(ownerOnly)
    await handle.writeFile(addition.lines)
    await handle.sync()
    return addition
  } finally {
    await handle.close()
  }
}

/**
 * Writes a file of its own next to the env file, and returns its name, which has a number where another text has the
 * name. On disk when it resolves.
 */
export async function writeExtraFile(
  { file, named }: EnvPlace,
  { ending, text }: { ending: string; text: string },
): Promise<string> {
  for (let number = 1; ; number++) {
    const last = number === 1 ? ending : `${ending}.${number}`
    if (await isWritten(named + last, text)) return file + last
  }
}

// False where the name has another text.
async function isWritten(file: string, text: string): Promise<boolean> {
  const handle = await open(file, 'wx', ownerOnly).catch((error: unknown) => {
    if (systemCode(error) !== 'EEXIST') throw error
  })
  if (!handle) return (await lstat(file)).isFile() && (await readText(file)) === text
  try {
    await handle.writeFile(text)
    await handle.sync()
    return true
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
