import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

const root = path.resolve(import.meta.dirname, '../..')
const production = ['schemas', 'infra', 'projections', 'services']
const maxWords = 30

export interface Passage {
  file: string
  text: string
}

/** Doc comments of the hand-written code in a top folder, without their stars. Types of JavaScript are none. */
export function docComments(top: string): Passage[] {
  return files(top, /\.(ts|js)$/)
    .filter((file) => file !== 'schemas/events.ts')
    .flatMap((file) => commentsIn(read(file)).map((text) => ({ file, text })))
    .filter(({ file, text }) => !(file.endsWith('.js') && /^@(type|param|returns|import)/.test(text)))
}

function productionComments(): Passage[] {
  return production.flatMap(docComments)
}

/** The pages that people write. */
export function pages(): string[] {
  const top = readdirSync(root).filter((name) => name.endsWith('.md') && name !== 'CHANGELOG.md')
  return [...top, ...files('docs', /\.md$/).filter((file) => file !== 'docs/reports/performance.md')]
}

/** Their paragraphs, list items and table cells. */
export function proseOfDocs(): Passage[] {
  return pages().flatMap((file) => proseIn(read(file)).map((text) => ({ file, text })))
}

/** Sentences of more than 30 words; a piece of code is one word, and JSDoc's types and parameters are none. */
export function longSentences(passages: Passage[]): Passage[] {
  return passages.flatMap(({ file, text }) =>
    sentences(text)
      .filter((sentence) => words(sentence) > maxWords)
      .map((sentence) => ({ file, text: sentence })),
  )
}

export function commentsIn(text: string): string[] {
  return [...text.matchAll(/^[ \t]*\/\*\*([\s\S]*?)\*\//gm)].map(([, body]) =>
    String(body)
      .replace(/^[ \t]*\* ?/gm, '')
      .trim(),
  )
}

export function proseIn(markdown: string): string[] {
  return markdown
    .replace(/^([ \t]*)(```|~~~)[\s\S]*?^[ \t]*\2/gm, '')
    .replace(/<!--[\s\S]*?-->/g, '')
    .split(/\n\s*\n|^\s*(?=[-*] |\d+\. |#)|^\|.*\|$/gm)
    .concat([...markdown.matchAll(/^\|(.*)\|$/gm)].flatMap(([, row]) => String(row).split(' | ')))
    .map((text) => text.trim())
    .filter((text) => text !== '')
}

function sentences(text: string): string[] {
  const plain = text
    .replace(/`[^`]*`/g, 'code')
    .replace(/^@[\s\S]*/m, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\b(e\.g|i\.e)\./g, '$1')
  return plain.split(/(?<=[.!?][)*_'"]*)\s+|\n\s*\n/)
}

function words(sentence: string): number {
  return sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
}

/** Packages of `bench/detection/`. */
const installed = /(^|\/)(node_modules|\.venv)\//

function files(top: string, name: RegExp): string[] {
  return readdirSync(path.join(root, top), { recursive: true, encoding: 'utf8' })
    .filter((file) => name.test(file) && !installed.test(file))
    .map((file) => path.posix.join(top, file))
    .sort()
}

const read = (file: string) => readFileSync(path.join(root, file), 'utf8')

function printLong(title: string, passages: Passage[]): void {
  console.log(`\n${title}: ${passages.length} sentences over ${maxWords} words`)
  for (const { file, text } of passages) console.log(`${file}: ${text.replaceAll(/\s+/g, ' ')}`)
}

/** Of all hand-written code, tests and bench too. */
export function allComments(): Passage[] {
  return [...production, 'test', 'bench'].flatMap(docComments)
}

if (import.meta.main) {
  for (const top of [...production, 'test', 'bench'])
    console.log(`${top.padEnd(12)} ${docComments(top).length}`)
  console.log(`${'production'.padEnd(12)} ${productionComments().length}`)
  printLong('doc comments', longSentences(allComments()))
  printLong('docs', longSentences(proseOfDocs()))
}
