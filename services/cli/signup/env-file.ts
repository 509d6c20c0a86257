import { parseEnv } from 'node:util'
import { quoted, withoutAssignments } from './quoting.ts'

export type Values = ReadonlyMap<string, string>

/** Those of the names that the file gives a value; one without a value is a place that waits for it. */
export function takenNames(text: string, names: Iterable<string>): string[] {
  const existing = read(text)
  return [...names].filter((name) => existing.get(name))
}

/** What a program that reads the file sees of the variable. */
export function valueIn(text: string, name: string): string | undefined {
  return read(text).get(name)
}

export interface Merge {
  /** The whole file as it is to be. */
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
  /** Replace what has another value. */
  overwrite: boolean
}

/** Adds the values at the end of a `.env` file. Whatever else is in it reads the same afterwards. */
export function mergeEnv(text: string, values: Values, { comment, overwrite }: MergeOptions): Merge {
  const existing = read(text)
  const groups = Map.groupBy(values, ([name, value]) => fate(existing.get(name), { value, overwrite }))
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
