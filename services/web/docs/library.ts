import { glob, readFile } from 'node:fs/promises'
import path from 'node:path'
import { addressOf, htmlText, type RenderedPage, renderPage } from './markdown.ts'

const root = path.join(import.meta.dirname, '../../..')
// Not all of `docs/`, because the examples may contain installed packages.
const patterns = [
  'docs/{guide,operate,reference,reports,internals}/*.md',
  'docs/internals/adr/*.md',
]

const picturePattern = 'docs/{guide,operate,internals,reference}/pictures/*.{png,svg}'

// Files that pages link to: examples and test vectors.
const examplePatterns = [
  'docs/examples/**/*.{js,mjs,ts,tsx,json,py,go}',
  'test/fixtures/*/vector*.json',
]

/** Texts of the pages by file, their index, and the files of pictures and examples. */
export interface Library {
  index: string
  pages: Map<string, string>
  pictures: string[]
  examples: Set<string>
}

/** Fills in placeholders, such as the publishable key of a development server. */
export type Fill = (text: string) => string

export async function readLibrary(fill: Fill): Promise<Library> {
  const index = fill(await readFile(path.join(import.meta.dirname, '../pages/llms.txt'), 'utf8'))
  const pages = new Map<string, string>()
  for await (const file of glob(patterns, { cwd: root }))
    pages.set(file, fill(await readFile(path.join(root, file), 'utf8')))
  const pictures: string[] = []
  for await (const file of glob(picturePattern, { cwd: root })) pictures.push(file)
  const examples = new Set<string>()
  for await (const file of glob(examplePatterns, {
    cwd: root,
    exclude: ['**/node_modules/**', '**/.next/**'],
  }))
    examples.add(file)
  return { index, pages, pictures, examples }
}

export const readLibraryFile = (file: string) => readFile(path.join(root, file))

export function renderLibraryPage(
  { pages, examples }: Library,
  file: string,
  up: string,
): RenderedPage {
  const isPage = (path: string) => pages.has(path)
  const isExample = (path: string) => examples.has(path)
  return renderPage(pages.get(file) ?? '', { file, isPage, isExample, up })
}

export interface DocsSection {
  title: string
  entries: { file: string; title: string; about: string }[]
}

/** Returns the sections of the index with their Markdown pages. */
export function docsSectionsOf({ index }: Pick<Library, 'index'>): DocsSection[] {
  return index
    .split(/^## /m)
    .slice(1)
    .map((part) => {
      const [title = '', ...lines] = part.split('\n')
      const entries = lines.flatMap((line) => {
        const [, name = '', file = '', about = ''] =
          /^- \[(.+?)\]\((\S+?\.md)\): (.*)$/.exec(line) ?? []
        return file ? [{ file, title: name, about }] : []
      })
      return { title, entries }
    })
}

/** Returns the index and all its pages as one text, for language models. */
export function fullText({ index, pages }: Library): string {
  const entries = docsSectionsOf({ index }).flatMap(({ entries }) => entries)
  return [index, ...entries.map(({ file }) => `<!-- ${file} -->\n${pages.get(file) ?? ''}`)].join(
    '\n',
  )
}

/** A search entry: one part of a page, by heading. */
export interface SearchEntry {
  address: string
  page: string
  title: string
  text: string
}

export function searchEntries(library: Library): SearchEntry[] {
  return [...library.pages.keys()].flatMap((file) => {
    const { title: page, html, headings } = renderLibraryPage(library, file, '')
    const parts = html.split(/(?=<h[1-6] id=")/).filter((part) => part.startsWith('<h'))
    return headings.map(({ id, text: title }, index) => ({
      address: `${addressOf(file)}#${id}`,
      page,
      title,
      text: htmlText(parts[index]?.replace(/^<h\d.*?<\/h\d>/s, '') ?? '', ' '),
    }))
  })
}
