import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { sourceFiles } from './imports.ts'

const root = path.resolve(import.meta.dirname, '../..')

/** Words that named things in this code and that no reader brings along, with what to say instead. */
export const privateWords = new Map([
  ['lane', 'queue'],
  ['look', 'match key'],
  ['lineage', 'storage key'],
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

/** Names that answers, events or a command's output have, so that they cannot change. */
const published = new Set([
  ...['kept_id', 'kept_id_decides', 'look_of_several', 'not_shown', 'kept_days'],
  ...['given_answers', 'GivenAnswers', 'kept_id_of_another_device'],
])

/** Published names that anybody could use for something else, and where they stand. */
const publishedIn = new Map([
  ['services/cli/operator/visitors.ts', ['look']],
  ['services/readback/schemas/identification.ts', ['look']],
  ['services/scoring/visitors/explain.ts', ['look']],
  ['services/cli/operator/data-policy.ts', ['kept']],
  ['services/gate/page/assets/sections.js', ['Asked']],
])

/** Identifiers, and names of SQL in strings, that have one of the words in them; `leasedUntil` has two words. */
export function privateNames(text: string, allowed: readonly string[] = []): string[] {
  const code = withoutComments(text)
  const names = code.match(/[A-Za-z_][A-Za-z0-9_]*/g) ?? []
  const isFree = (name: string) => published.has(name) || allowed.includes(name)
  return [...new Set(names)].filter((name) => !isFree(name) && wordsOf(name).some(isPrivate))
}

const isPrivate = (word: string) => privateWords.has(word)

function wordsOf(name: string): string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split('_')
}

/** Prose in a string is no name; a word of its own can be one, and so can those of SQL. */
function withoutComments(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/^\s*\/\/.*$/gm, '')
    .replace(/ \/\/ .*$/gm, '')
    .replace(/"(?:[^"\\\n]|\\.)*"/g, "''")
    .replace(/'(?:[^'\\\n]|\\.)*'/g, (string) => (/^'[\w.]+'$/.test(string) ? string : "''"))
    .replace(/`(?:[^`\\]|\\.)*`/g, (string) => (isSql(string) ? string : partsIn(string)))
}

const isSql = (text: string) =>
  /\b(select|insert into|update|delete from|create (table|view|index))\b/.test(text)
const partsIn = (template: string) => (template.match(/\$\{[^}]*\}/g) ?? []).join(' ')

export function privateNamesOf(folders: readonly string[]): Map<string, string[]> {
  const files = sourceFiles().filter((file) => folders.some((folder) => file.startsWith(folder)))
  const found = files.map(
    (file) =>
      [file, privateNames(readFileSync(path.join(root, file), 'utf8'), publishedIn.get(file))] as const,
  )
  return new Map(found.filter(([, names]) => names.length > 0))
}

if (import.meta.main) {
  const { positionals } = parseArgs({ allowPositionals: true })
  const found = privateNamesOf(positionals.length > 0 ? positionals : [''])
  for (const [file, names] of found) console.log(`${file}: ${names.join(' ')}`)
  console.log(`\n${[...found.values()].flat().length} names in ${found.size} files`)
}
