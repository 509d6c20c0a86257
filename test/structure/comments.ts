import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { sourceFiles } from './imports.ts'

const root = path.resolve(import.meta.dirname, '../..')
const read = (file: string) => readFileSync(path.join(root, file), 'utf8')

/** The pages that people write. */
export function pages(): string[] {
  const top = readdirSync(root).filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md')
  const docs = readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => path.posix.join('docs', name))
  return [...top, ...docs.filter((file) => file !== 'docs/reports/performance.md').sort()]
}

const exported = /^export (declare |abstract |async )*(function|const|class|interface|type|enum)\b/
const container = /^export (interface|class) |^export type \w+(<.*>)? =.*\{$/
const member = /^ {2}(readonly |async |static )*(['"]?[\w$-]+['"]?|\[.*\])\??[:(<]/

export interface HiddenComment {
  file: string
  line: number
  what: string
}

/**
 * Comments by `//` that stand right above what a file exports, or above a member of an exported interface. Editors show
 * who uses it only doc comments.
 */
export function hiddenComments(text: string): Omit<HiddenComment, 'file'>[] {
  const found: Omit<HiddenComment, 'file'>[] = []
  let isInside = false
  let isComment = false
  for (const [i, line] of text.split('\n').entries()) {
    const isExplained = exported.test(line) || (isInside && member.test(line))
    if (isComment && isExplained) found.push({ line: i + 1, what: line.trim() })
    if (container.test(line)) isInside = true
    else if (/^\}/.test(line)) isInside = false
    isComment = /^\s*\/\//.test(line)
  }
  return found
}

export function allHiddenComments(): HiddenComment[] {
  return sourceFiles()
    .filter((file) => file.endsWith('.ts') && file !== 'schemas/events.ts')
    .flatMap((file) => hiddenComments(read(file)).map((one) => ({ file, ...one })))
}

if (import.meta.main)
  for (const { file, line, what } of allHiddenComments()) console.log(`${file}:${line} ${what}`)
