import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { access, type FileHandle, lstat, open, readFile, readlink, rename, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { parseEnv } from 'node:util'

export type Values = ReadonlyMap<string, string>

/** Those of the names that the file gives a value; one without a value is a place that waits for it. */
export function takenNames(text: string, names: Iterable<string>): string[] {
  const existing = read(text)
  return [...names].filter((name) => existing.get(name))
}

export function valueIn(text: string, name: string): string | undefined {
  return read(text).get(name)
}

export interface Merge {
  text: string
  /** What the file has then, under which name; values that were there already, too. */
  kept: string[]
  /** What has another value in the file, and keeps it. */
  conflicts: string[]
  /** What such a file cannot hold; see `quoted`. */
  unquotable: string[]
}

interface MergeOptions {
  /** One line, which says where the values are from. */
  comment: string
  overwrites(name: string): boolean
}

/** Adds the values at the end of a `.env` file. Whatever else is in it reads the same afterwards. */
export function mergeEnv(text: string, values: Values, { comment, overwrites }: MergeOptions): Merge {
  const existing = read(text)
  const groups = Map.groupBy(values, ([name, value]) =>
    fate(existing.get(name), { value, overwrite: overwrites(name) }),
  )
  const names = (group: ReturnType<typeof fate>) => (groups.get(group) ?? []).map(([name]) => name)
  const added = new Map(groups.get('added'))
  const merged = addLines(text, added, { comment, existing })
  const rest = { unquotable: names('unquotable') }
  // A file with quotes that nobody closes, for one.
  if (merged === undefined)
    return { ...rest, text, kept: names('there'), conflicts: [...names('conflict'), ...added.keys()] }
  return { ...rest, text: merged, kept: [...names('there'), ...added.keys()], conflicts: names('conflict') }
}

function fate(before: string | undefined, { value, overwrite }: { value: string; overwrite: boolean }) {
  if (before === value) return 'there'
  if (before && !overwrite) return 'conflict'
  return quoted(value) === undefined ? 'unquotable' : 'added'
}

interface AddOptions {
  comment: string
  existing: Values
}

/** undefined when the text would not read as it should. */
function addLines(text: string, added: Values, { comment, existing }: AddOptions): string | undefined {
  if (added.size === 0) return text
  const newline = text.includes('\r\n') ? '\r\n' : '\n'
  const lines = [`# ${comment}`, ...[...added].map(([name, value]) => `${name}=${quoted(value)}`), '']
  const wanted = new Map([...existing, ...added])
  // Where an old assignment cannot be taken out cleanly, the last one counts.
  const old = [...added.keys()].filter((name) => existing.has(name))
  return [old.reduce(withoutAssignments, text), text]
    .map((before) => closed(before, newline) + lines.join(newline))
    .find((candidate) => isSame(read(candidate), wanted))
}

const closed = (text: string, newline: string) => (text === '' || text.endsWith('\n') ? text : text + newline)

const read = (text: string) =>
  new Map(Object.entries(parseEnv(text)).map(([name, value]) => [name, value ?? '']))

function isSame(one: Values, other: Values): boolean {
  return one.size === other.size && [...other].every(([name, value]) => one.get(name) === value)
}

const ownerOnly = 0o600

export async function targetOf(file: string): Promise<string> {
  let target = path.resolve(file)
  for (let links = 0; links < 32; links++) {
    const found = await lstat(target).catch(missing)
    if (!found?.isSymbolicLink()) return target
    target = path.resolve(path.dirname(target), await readlink(target))
  }
  throw new Error(`${file}: too many symbolic links`)
}

export async function readText(file: string): Promise<string> {
  return (await readFile(file, 'utf8').catch(missing)) ?? ''
}

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

/** Nothing in it means anything to any reader of such files. */
const bare = /^[\w./:@%+=,-]+$/

/**
 * The value as a `.env` file holds it, so that Node's parseEnv, the dotenv packages and a shell all read the same.
 * undefined where they cannot: a carriage return or NUL, or an apostrophe together with what double quotes leave special.
 * Backticks, which some readers take for quotes, would make a shell run the value.
 */
export function quoted(value: string): string | undefined {
  // JSON and files would not give back half of a surrogate pair.
  if (/[\r\0]/.test(value) || !value.isWellFormed()) return undefined
  if (bare.test(value)) return value
  // An escaped quote, to some.
  if (value.endsWith('\\')) return undefined
  if (!value.includes("'")) return `'${value}'`
  return /["$`\\]/.test(value) ? undefined : `"${value}"`
}

/**
 * The text without the assignments of the name (letters, digits, underscores), and without the lines that their values
 * take. What is in quotes may look like one, too.
 */
export function withoutAssignments(text: string, name: string): string {
  const value = String.raw`(?:'[^']*'|"[^"]*"|\`[^\`]*\`)?[^\n]*(?:\n|$)`
  return text.replace(new RegExp(String.raw`^[ \t]*(?:export[ \t]+)?${name}[ \t]*=[ \t]*${value}`, 'gm'), '')
}

export async function committable(files: string[]): Promise<string[]> {
  const found = await Promise.all(files.map(async (file) => ({ file, is: await isCommittable(file) })))
  return found.flatMap(({ file, is }) => (is ? [file] : []))
}

/** git says 0 of a file that it ignores, 1 of another, 128 where there is no repository. */
function isCommittable(file: string): Promise<boolean> {
  const target = path.resolve(file)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const args = ['check-ignore', '--quiet', '--', target]
  execFile('git', args, { cwd: path.dirname(target) }, (error) => resolve(error?.code === 1))
  return promise
}
