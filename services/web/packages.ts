import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { cachedFileRoute, etagOf, matchesEtag, memoizePromise } from '../../infra/http/pages.ts'
import { escapeHtml } from '../../infra/text.ts'
import { docsPage } from './docs/layout.ts'
import { docsSectionsOf, type Library } from './docs/library.ts'
import { docsHeaders, plainHeaders } from './docs/routes.ts'

export type PackageName = 'server' | 'browser' | 'tidegate'
/** Returns the tarball of a package, with the same bytes each time. */
export type PackageSource = (name: PackageName) => Promise<Buffer>

const packages: { name: PackageName; title: string; about: string }[] = [
  {
    name: 'server',
    title: '@tidegate/server',
    about: 'For back ends: verifies tokens and webhooks, and reads the REST API. Node 20 or later.',
  },
  {
    name: 'browser',
    title: '@tidegate/browser',
    about: 'For pages with a bundler, with types and a React hook. Other pages load /t.js.',
  },
  {
    name: 'tidegate',
    title: 'tidegate',
    about: 'The server and its command line. Node 24.15 or later.',
  },
]

const pythonFile = 'tidegate_server.py'

export interface PackageDeps {
  source: PackageSource
  library: Library
  /** Base URL at which clients reach the server. */
  publicUrl: string
}

/**
 * Serves the npm packages (`/sdk/server.tgz`, `browser.tgz`, `tidegate.tgz`), the Python module, and `/sdk`, which
 * lists them.
 */
export function packageRoutes(app: FastifyInstance, { source, library, publicUrl }: PackageDeps) {
  const rows = packages.map((entry) => ({
    ...entry,
    bytes: memoizePromise(() => source(entry.name)),
  }))
  for (const { name, bytes } of rows)
    app.get(`/sdk/${name}.tgz`, { schema: { hide: true } }, async ({ headers }, reply) => {
      const body = await bytes()
      const etag = etagOf(body)
      reply.headers({ 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff', etag })
      if (matchesEtag(headers['if-none-match'], etag)) return reply.code(304).send()
      return reply.type('application/gzip').send(body)
    })
  const python = () => readFile(path.join(import.meta.dirname, 'server-sdk/python', pythonFile))
  cachedFileRoute(app, { url: `/sdk/${pythonFile}`, type: 'text', make: python }, plainHeaders)
  const make = async () => {
    const parts = await Promise.all(
      rows.map(async ({ name, title, about, bytes }) => {
        const body = await bytes()
        const integrity = `sha512-${createHash('sha512').update(body).digest('base64')}`
        return `<h2>${title}</h2><p>${escapeHtml(about)} ${Math.ceil(body.length / 1024)} kB.</p>
<pre><code>npm install ${escapeHtml(publicUrl)}/sdk/${name}.tgz</code></pre><p>Integrity: <code>${integrity}</code></p>`
      }),
    )
    const html = `<h1>Packages</h1>
<p>The packages are not on npm or PyPI yet. This server provides those of its own version.</p>${parts.join('')}
<h2>${pythonFile}</h2><p>The same for Python 3.9 and later, in one file.</p>
<pre><code>curl -O ${escapeHtml(publicUrl)}/sdk/${pythonFile} && pip install cryptography</code></pre>`
    const sections = docsSectionsOf(library)
    return Buffer.from(docsPage({ title: 'Packages', html, headings: [], sections, up: '' }))
  }
  cachedFileRoute(app, { url: '/sdk', type: 'html', make }, docsHeaders)
}
