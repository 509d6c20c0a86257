import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { cachedFileRoute, type FileType, fileRoute, pageHeaders } from '../../infra/http/pages.ts'
import { siteHeader, siteHeaderStyle } from '../../infra/http/site-header.ts'
import { tokenStyle } from '../../infra/http/theme.ts'
import type { Random } from '../../infra/ids.ts'
import { type Demo, demoApiRoutes } from './demo-api.ts'
import { type Library, readLibraryFile, renderLibraryPage } from './docs/library.ts'
import { docsRoutes } from './docs/routes.ts'
import { type PackageDeps, packageRoutes } from './packages.ts'
import { bundleSdk, sdkRoute } from './sdk-route.ts'

export { createDemo, type Demo } from './demo-api.ts'

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
      ? text
          .replaceAll('pk_live_...', demo.publishableKey)
          .replaceAll('http://127.0.0.1:8787', demo.baseUrl())
      : text
  const library = await docsRoutes(app, fill)
  await pageRoutes(app, library, demo?.publishableKey)
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

async function pageRoutes(
  app: FastifyInstance,
  library: Library,
  publishableKey: string | undefined,
): Promise<void> {
  const files = { ...startPage, ...(publishableKey ? demoPage : {}) }
  const header = (file: string) =>
    siteHeader({
      root: '',
      isDevelopment: publishableKey !== undefined,
      ...(file === 'demo.html' && { current: 'demo' }),
    })
  for (const [url, file] of Object.entries(files)) {
    const type = path.extname(file).slice(1) as FileType
    const content = await readFile(path.join(import.meta.dirname, 'pages', file), 'utf8')
    const text =
      file === 'site.css'
        ? tokenStyle + siteHeaderStyle + content
        : content
            .replace('{{header}}', () => header(file))
            .replace('{{quickstart}}', () => quickstartHtml(library))
    const body = publishableKey
      ? text.replaceAll('{{publishableKey}}', publishableKey)
      : withoutDemoLinks(text)
    fileRoute(app, { url, type, body }, headers)
  }
  const picture = () => readLibraryFile('docs/result.png')
  cachedFileRoute(app, { url: '/assets/result.png', type: 'png', make: picture }, headers)
}

// Leaves out the page's title, because the start page has its own.
function quickstartHtml(library: Library): string {
  return renderLibraryPage(library, 'docs/guide/quickstart.md', '').html.replace(
    /^<h1.*?<\/h1>/s,
    '',
  )
}

// Without a development key, there is no demo, and the console may be on an internal port.
function withoutDemoLinks(text: string): string {
  return text.replace(/^.*href="\/(?:demo|console)".*\n/gm, '')
}
