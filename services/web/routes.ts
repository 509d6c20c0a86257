import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { type FileType, fileRoute, pageHeaders } from '../../infra/http/pages.ts'
import { tokenStyle } from '../../infra/http/theme.ts'
import type { Random } from '../../infra/ids.ts'
import { type Demo, demoApiRoutes } from './demo-api.ts'
import { docsRoutes } from './docs/routes.ts'
import { type PackageParts, packageRoutes } from './packages.ts'
import { bundleSdk, sdkRoute } from './sdk-route.ts'

export { createDemo, type Demo } from './demo-api.ts'

interface WebParts {
  random: Random
  demo?: Demo | undefined
  packages?: Omit<PackageParts, 'library'> | undefined
}

/**
 * The browser SDK at /t.js, the start page, the docs, and the demo with its own small back end. `demo` is absent on a
 * server without a development organization, and `packages` where they are not served.
 */
export async function webRoutes(
  app: FastifyInstance,
  { random, demo, packages }: WebParts,
): Promise<void> {
  sdkRoute(app, await bundleSdk())
  await pageRoutes(app, demo?.publishableKey)
  const library = await docsRoutes(app)
  if (packages) packageRoutes(app, { ...packages, library })
  if (demo) demoApiRoutes(app, demo, random(32))
}

const headers = pageHeaders({
  forms: "'self'",
  referrer: 'strict-origin-when-cross-origin',
  caching: 'no-cache',
})

// Files of `pages/`, by the path that they are served at.
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

async function pageRoutes(app: FastifyInstance, publishableKey: string | undefined): Promise<void> {
  const files = { ...startPage, ...(publishableKey ? demoPage : {}) }
  for (const [url, file] of Object.entries(files)) {
    const type = path.extname(file).slice(1) as FileType
    const own = await readFile(path.join(import.meta.dirname, 'pages', file), 'utf8')
    const text = file === 'site.css' ? tokenStyle + own : own
    const body = publishableKey
      ? text.replaceAll('{{publishableKey}}', publishableKey)
      : withoutDemo(text)
    fileRoute(app, { url, type, body }, headers)
  }
}

// Elsewhere the console may be on a port of its own, inside.
function withoutDemo(text: string): string {
  return text.replace(/^.*href="\/(?:demo|console)".*\n/gm, '')
}
