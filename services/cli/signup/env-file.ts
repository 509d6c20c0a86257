import { execFile } from 'node:child_process'
import { access, constants, open, readFile, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { parseEnv } from 'node:util'

export type Values = ReadonlyMap<string, string>

/** What the text of a `.env` file gives a value, by name. */
export const valuesIn = (text: string): Values =>
  new Map(Object.entries(parseEnv(text)).map(([name, value]) => [name, value ?? '']))

export interface Addition {
  /** To be appended. Whatever else is in the file reads the same afterwards. */
  lines: string
  /** What the file has then, under which name; values that were there already, too. */
  kept: string[]
  /** What has another value in the file, and keeps it. */
  conflicts: string[]
  /** What such a file cannot hold; see `quoted`. */
  unquotable: string[]
}

interface AdditionOptions {
  // One line, which says where the values are from.
  comment: string
  overwrites(name: string): boolean
}

/** How the values go to the end of a `.env` file. Of a variable that is there twice readers take the last one. */
export function additionTo(text: string, values: Values, options: AdditionOptions): Addition {
  const existing = valuesIn(text)
  const groups = Map.groupBy(values, ([name, value]) =>
    fate(existing.get(name), { value, overwrite: options.overwrites(name) }),
  )
  const added = new Map(groups.get('added'))
  const lines = linesOf(added, { text, comment: options.comment })
  // Not in a file with quotes that nobody closes, for one.
  const isClean = isSame(valuesIn(text + lines), new Map([...existing, ...added]))
  const names = (group: ReturnType<typeof fate>) => (groups.get(group) ?? []).map(([name]) => name)
  return {
    lines: isClean ? lines : '',
    kept: [...names('there'), ...(isClean ? added.keys() : [])],
    conflicts: [...names('conflict'), ...(isClean ? [] : added.keys())],
    unquotable: names('unquotable'),
  }
}

function fate(before: string | undefined, { value, overwrite }: { value: string; overwrite: boolean }) {
  if (before === value) return 'there'
  if (before && !overwrite) return 'conflict'
  return quoted(value) === undefined ? 'unquotable' : 'added'
}

function linesOf(added: Values, { text, comment }: { text: string; comment: string }): string {
  if (added.size === 0) return ''
  const newline = text.includes('\r\n') ? '\r\n' : '\n'
  const begin = text === '' || text.endsWith('\n') ? '' : newline
  const lines = [`# ${comment}`, ...[...added].map(([name, value]) => `${name}=${quoted(value)}`), '']
  return begin + lines.join(newline)
}

function isSame(one: Values, other: Values): boolean {
  return one.size === other.size && [...other].every(([name, value]) => one.get(name) === value)
}

// Nothing in it means anything to any reader of such files.
const bare = /^[\w./:@%+=,-]+$/

/**
 * The value as a `.env` file holds it, so that Node's parseEnv, the dotenv packages and a shell all read the same.
 * undefined where they may not: with an apostrophe, a carriage return, a NUL or a backslash at the end.
 */
export function quoted(value: string): string | undefined {
  // JSON and files would not give back half of a surrogate pair.
  if (/['\r\0]|\\$/.test(value) || !value.isWellFormed()) return undefined
  return bare.test(value) ? value : `'${value}'`
}

export async function readText(file: string): Promise<string> {
  return (await readFile(file, 'utf8').catch(missing)) ?? ''
}

/** Rejects where `append` would: also where somebody else owns the file, who alone can close it to others. */
export async function requireWritable(file: string, user = process.getuid?.() ?? 0): Promise<void> {
  const found = await stat(file).catch(missing)
  if (!found) return access(path.dirname(file), constants.W_OK | constants.X_OK)
  if (!found.isFile()) throw new Error(`${file} is not a file`)
  if (user !== 0 && user !== found.uid) throw new Error(`${file} is another user's`)
  await access(file, constants.R_OK | constants.W_OK)
}

const ownerOnly = 0o600

/** On disk when it resolves, and then only the file's owner may read it. */
export async function append(file: string, lines: string): Promise<void> {
  const handle = await open(file, 'a', ownerOnly)
  try {
    await handle.chmod(ownerOnly)
    await handle.writeFile(lines)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** A file of its own, with a number where the name is taken; returns its name. On disk when it resolves. */
export async function writeBeside(file: string, text: string, number = 1): Promise<string> {
  const name = number === 1 ? file : `${file}.${number}`
  try {
    await writeFile(name, text, { flag: 'wx', mode: ownerOnly, flush: true })
    return name
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error
    return writeBeside(file, text, number + 1)
  }
}

const codeOf = (error: unknown) => (error instanceof Error && 'code' in error ? error.code : undefined)

function missing(error: unknown): undefined {
  if (codeOf(error) !== 'ENOENT') throw error
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
