import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { pages } from './pages.ts'

const root = path.resolve(import.meta.dirname, '../..')
const read = (page: string) => readFileSync(path.join(root, page), 'utf8')

test('every file and folder that the docs name is there', () => {
  const named = pages().flatMap((page) => pathsIn(read(page)).map((name) => ({ page, name })))
  expect(named.length).toBeGreaterThan(50)
  expect(named.filter(({ name }) => !existsSync(path.join(root, name)))).toEqual([])
})

test('every link between pages leads to a page, and its anchor to a heading', () => {
  const links = pages().flatMap((page) => linksIn(page))
  expect(links.length).toBeGreaterThan(50)
  expect(links.filter(({ file, anchor }) => !leads(file, anchor))).toEqual([])
})

test('the diagram of the architecture names every read model', () => {
  const [diagram = ''] = /```[\s\S]*?```/.exec(read('docs/internals/architecture.md')) ?? []
  expect(
    readdirSync(path.join(root, 'projections')).filter((name) => !diagram.includes(name)),
  ).toEqual([])
})

test('the README lists every page once, by reader', () => {
  const [, byReader = ''] = read('README.md').split('\n## Documentation\n')
  const listed = [...byReader.matchAll(/\]\((docs\/[\w-]+\/[\w-]+\.md)\)/g)].map(([, page]) => page)
  expect(listed.sort()).toEqual(globSync('docs/*/*.md', { cwd: root }).sort())
})

// Until they are published, anybody may take these names: whoever followed such a line would run a stranger's program.
test('no page and no example installs a package by a name that is not published', () => {
  const files = globSync(['**/*.md', 'docs/examples/**/package.json'], {
    cwd: root,
    exclude: ['**/node_modules'],
  })
  const byName = /npx tidegate|npm install(?: --?[\w=-]+)* @?tidegate|"@?tidegate[^"]*": "[\d^~]/g
  const found = files.flatMap((file) =>
    (read(file).match(byName) ?? []).map((line) => ({ file, line })),
  )
  expect(found.filter(({ file }) => file !== 'CHANGELOG.md')).toEqual([])
})

function pathsIn(text: string): string[] {
  const names = text.matchAll(
    /`((?:schemas|infra|projections|services|test|bench|docs)\/[^\s`]*)`/g,
  )
  return [...names].map(([, name]) => String(name)).filter((name) => !/[<*]/.test(name))
}

function linksIn(page: string) {
  return [...read(page).matchAll(/\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]*))?\)/g)].map(
    ([, target = '', anchor]) => ({
      page,
      file: target === '' ? page : path.posix.join(path.posix.dirname(page), target),
      anchor,
    }),
  )
}

function leads(file: string, anchor: string | undefined): boolean {
  if (!existsSync(path.join(root, file))) return false
  return anchor === undefined || headingsOf(file).includes(anchor)
}

/** Anchors as GitHub makes them. */
function headingsOf(file: string): string[] {
  return [...read(file).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
    String(heading)
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}
