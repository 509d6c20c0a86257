import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { type FileType, fileRoute, pageHeaders } from '../../infra/http/pages.ts'
import { siteHeader } from '../../infra/http/site-header.ts'
import type { Random } from '../../infra/ids.ts'
import { type Demo, demoApiRoutes } from './demo-api.ts'
import { type Library, renderLibraryPage } from './docs/library.ts'
import { docsRoutes } from './docs/routes.ts'
import { type PackageDeps, packageRoutes } from './packages.ts'
import { bundleSdk, sdkRoute } from './sdk-route.ts'
import { siteStyle } from './site-style.ts'

export { createDemo, type Demo } from './demo-api.ts'

/** URL of a local server in the docs. */
const defaultUrl = 'http://127.0.0.1:8787'

interface WebOptions {
  random: Random
  demo?: Demo | undefined
  packages?: Omit<PackageDeps, 'library'> | undefined
}

/**
 * Serves the browser SDK at /t.js, the start page, the docs, the demo and the packages. `demo` is undefined without a
 * development organization, and `packages` if they are not served.
 */
export async function webRoutes(
  app: FastifyInstance,
  { random, demo, packages }: WebOptions,
): Promise<void> {
  sdkRoute(app, await bundleSdk())
  const fill = (text: string) =>
    demo
      ? text.replaceAll('pk_live_...', demo.publishableKey).replaceAll(defaultUrl, demo.baseUrl())
      : text
  const library = await docsRoutes(app, fill)
  await pageRoutes(app, {
    library,
    publishableKey: demo?.publishableKey,
    publicUrl: packages?.publicUrl,
  })
  if (packages) packageRoutes(app, { ...packages, library })
  if (demo) demoApiRoutes(app, demo, random(32))
}

const headers = pageHeaders({
  formTarget: "'self'",
  referrer: 'strict-origin-when-cross-origin',
  caching: 'no-cache',
})

// Files in `pages/`, by URL path.
const startPage = {
  '/': 'start.html',
  '/assets/site.css': 'site.css',
  '/assets/mark.svg': '../../../infra/http/mark.svg',
}
const demoPage = {
  '/demo': 'demo.html',
  ...Object.fromEntries(
    ['demo.css', 'demo.js', 'render.js', 'dom.js'].map((file) => [`/assets/${file}`, file]),
  ),
}

interface PageOptions {
  library: Library
  publishableKey: string | undefined
  publicUrl: string | undefined
}

async function pageRoutes(
  app: FastifyInstance,
  { library, publishableKey, publicUrl }: PageOptions,
): Promise<void> {
  const files = { ...startPage, ...(publishableKey ? demoPage : {}) }
  const header = (file: string) =>
    siteHeader({
      root: '',
      isDevelopment: publishableKey !== undefined,
      ...(file === 'demo.html' && { current: 'demo' }),
    })
  const result = await readFile(path.join(import.meta.dirname, 'pages/result.html'), 'utf8')
  const quickstart = quickstartHtml(library, publicUrl)
  for (const [url, file] of Object.entries(files)) {
    const type = path.extname(file).slice(1) as FileType
    const content = await readFile(path.join(import.meta.dirname, 'pages', file), 'utf8')
    const text =
      file === 'site.css'
        ? await siteStyle()
        : content
            .replace('{{header}}', () => header(file))
            .replace('{{result}}', () => result)
            .replace('{{quickstart}}', () => quickstart)
    const body = publishableKey
      ? text.replaceAll('{{publishableKey}}', publishableKey)
      : withoutDemoLinks(text)
    fileRoute(app, { url, type, body }, headers)
  }
}

// Returns the steps "Add it to a page" and "Verify it", with the server's own URL.
function quickstartHtml(library: Library, publicUrl = defaultUrl): string {
  const { html } = renderLibraryPage(library, 'docs/guide/quickstart.md', '')
  const [, , add = '', verify = ''] = html.split(/(?=<h2)/)
  return (add + verify).replaceAll(/(<h2[^>]*>)\d\. /g, '$1').replaceAll(defaultUrl, publicUrl)
}

// Without a development key, there is no demo, and the console may be on an internal port.
function withoutDemoLinks(text: string): string {
  return text.replace(/^.*href="\/(?:demo|console)".*\n/gm, '')
}
