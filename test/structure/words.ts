import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { sourceFiles } from './imports.ts'

const root = path.resolve(import.meta.dirname, '../..')

/** Words that named things in this code and that no reader brings along, with what to say instead. */
export const privateWords = new Map([
  ['lane', 'queue'],
  ['look', 'match key'],
  ['lineage', 'ancestors'],
  ['earned', 'required evidence'],
  ['told', 'notified, subscribed'],
  ['asked', 'requested'],
  ['given', 'input, rows'],
  ['kept', 'stored, retained'],
  ['shown', 'visible, applied'],
  ['quiet', 'silent, without subscribers'],
  ['heard', 'subscribed'],
  ['wanted', 'requested, required'],
  ['alone', 'single'],
  ['beside', 'extra'],
  ['stock', 'pool, spare'],
  ['halted', 'stopped'],
])

/** Names that answers, events or other programs have, so that they cannot change. */
const published = new Set<string>([])

/** Identifiers, and names of SQL in strings, that have one of the words in them; `leasedUntil` has two words. */
export function privateNames(text: string): string[] {
  const code = withoutComments(text)
  const names = code.match(/[A-Za-z_][A-Za-z0-9_]*/g) ?? []
  return [...new Set(names)].filter((name) => !published.has(name) && wordsOf(name).some(isPrivate))
}

const isPrivate = (word: string) => privateWords.has(word)

function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split('_')
}

/** What is prose in a string stays: only a word of its own can be a name. */
function withoutComments(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^\s*\/\/.*$/gm, '')
    .replace(/ \/\/ .*$/gm, '')
    .replace(/'(?:[^'\\\n]|\\.)*'/g, (string) => (/^'[\w.]+'$/.test(string) ? string : "''"))
}

export function privateNamesOf(folders: readonly string[]): Map<string, string[]> {
  const files = sourceFiles().filter((file) => folders.some((folder) => file.startsWith(folder)))
  const found = files.map(
    (file) => [file, privateNames(readFileSync(path.join(root, file), 'utf8'))] as const,
  )
  return new Map(found.filter(([, names]) => names.length > 0))
}

if (import.meta.main) {
  const { positionals } = parseArgs({ allowPositionals: true })
  const found = privateNamesOf(positionals.length > 0 ? positionals : [''])
  for (const [file, names] of found) console.log(`${file}: ${names.join(' ')}`)
  console.log(`\n${[...found.values()].flat().length} names in ${found.size} files`)
}
