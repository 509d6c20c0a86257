import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { apiTags } from '../../../infra/http/api-overview.ts'
import {
  cachedFileRoute,
  fileRoute,
  isolationHeaders,
  memoizePromise,
  pageHeaders,
} from '../../../infra/http/pages.ts'
import { parseDocument, slugOfTag } from './api-document.ts'
import { apiSearchEntries, type Examples, overviewHtml, sectionHtml } from './api-page.ts'
import { docsPage, indexHtml } from './layout.ts'
import {
  docsSectionsOf,
  type Fill,
  fullText,
  type Library,
  readLibrary,
  readLibraryFile,
  renderLibraryPage,
  searchEntries,
} from './library.ts'
import { addressOf } from './markdown.ts'

export const plainHeaders = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-cache' }
export const docsHeaders = {
  ...pageHeaders({ referrer: 'strict-origin-when-cross-origin', caching: 'no-cache' }),
  ...isolationHeaders,
}

/**
 * Serves `/llms.txt`, `/llms-full.txt`, and every page of `docs/`, as Markdown at its path and as HTML without `.md`.
 * Each file has its own route, so that no other file is reachable. Returns the library.
 */
export async function docsRoutes(
  app: FastifyInstance,
  fill: Fill = (text) => text,
): Promise<Library> {
  const library = await readLibrary(fill)
  fileRoute(app, { url: '/llms.txt', type: 'text', body: library.index }, plainHeaders)
  for (const [file, body] of library.pages) {
    fileRoute(app, { url: `/${file}`, type: 'markdown', body }, plainHeaders)
    pageRoute(app, library, file)
  }
  for (const file of library.pictures)
    cachedFileRoute(
      app,
      { url: `/${file}`, type: pictureType(file), make: () => readLibraryFile(file) },
      docsHeaders,
    )
  for (const file of library.examples)
    cachedFileRoute(
      app,
      { url: `/${file}`, type: 'text', make: () => readLibraryFile(file) },
      plainHeaders,
    )
  const full = () => fullText(library)
  cachedFileRoute(app, { url: '/llms-full.txt', type: 'text', make: full }, plainHeaders)
  for (const [url, up] of [
    ['/docs', ''],
    ['/docs/', '../'],
  ] as const)
    cachedFileRoute(app, { url, type: 'html', make: () => indexPage(library, up) }, docsHeaders)
  const reference = apiRoutes(app)
  const make = async () => {
    const entries = [...searchEntries(library), ...apiSearchEntries((await reference()).document)]
    return Buffer.from(JSON.stringify(entries))
  }
  cachedFileRoute(app, { url: '/docs/search.json', type: 'json', make }, docsHeaders)
  for (const [name, type] of [
    ['docs.css', 'css'],
    ['prose.css', 'css'],
    ['api.css', 'css'],
    ['docs.js', 'js'],
    ['code.js', 'js'],
  ] as const)
    cachedFileRoute(
      app,
      {
        url: `/docs/assets/${name}`,
        type,
        make: () => readFile(path.join(import.meta.dirname, name)),
      },
      docsHeaders,
    )
  return library
}

const pictureType = (file: string) => (file.endsWith('.svg') ? 'svg' : 'png')

/** Serves `/docs/api` and a page for each tag, from the OpenAPI document and recorded examples. */
function apiRoutes(app: FastifyInstance) {
  const load = memoizePromise(async () => {
    const file = path.join(import.meta.dirname, 'api-examples.json')
    const examples: Examples = JSON.parse(await readFile(file, 'utf8'))
    return { document: parseDocument(app.swagger()), examples }
  })
  for (const [url, up] of [
    ['/docs/api', '../'],
    ['/docs/api/', '../../'],
  ] as const) {
    const make = async () => Buffer.from(overviewHtml({ ...(await load()), up }))
    cachedFileRoute(app, { url, type: 'html', make }, docsHeaders)
  }
  for (const { name } of apiTags) {
    const make = async () => Buffer.from(sectionHtml(name, { ...(await load()), up: '../../' }))
    cachedFileRoute(app, { url: `/docs/api/${slugOfTag(name)}`, type: 'html', make }, docsHeaders)
  }
  return load
}

function pageRoute(app: FastifyInstance, library: Library, file: string): void {
  const url = `/${addressOf(file)}`
  const up = '../'.repeat(url.split('/').length - 2)
  const make = () =>
    docsPage({
      ...renderLibraryPage(library, file, up),
      sections: docsSectionsOf(library),
      file,
      up,
    })
  cachedFileRoute(app, { url, type: 'html', make }, docsHeaders)
}

function indexPage(library: Library, up: string): string {
  const sections = docsSectionsOf(library)
  return docsPage({ title: 'Docs', html: indexHtml(sections, up), headings: [], sections, up })
}
