import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { type FileType, fileRoute, pageHeaders } from '../../infra/http/pages.ts'
import type { Random } from '../../infra/ids.ts'
import { type Demo, demoApiRoutes } from './demo-api.ts'
import { docsRoutes } from './docs-routes.ts'
import { bundleSdk, sdkRoute } from './sdk-route.ts'

export { createDemo, type Demo } from './demo-api.ts'

/**
 * The browser SDK at /t.js, the start page, the docs, and the demo with its own small back end. `demo` is absent on a
 * server without a development organization.
 */
export async function webRoutes(
  app: FastifyInstance,
  { random, demo }: { random: Random; demo?: Demo | undefined },
): Promise<void> {
  sdkRoute(app, await bundleSdk())
  await pageRoutes(app, demo?.publishableKey)
  await docsRoutes(app)
  if (demo) demoApiRoutes(app, demo, random(32))
}

const headers = pageHeaders({
  forms: "'self'",
  referrer: 'strict-origin-when-cross-origin',
  caching: 'no-cache',
})

interface StaticFile {
  url: string
  file: string
  type: FileType
}

const startPage: StaticFile[] = [
  { url: '/', file: 'start.html', type: 'html' },
  { url: '/assets/site.css', file: 'site.css', type: 'css' },
  { url: '/assets/mark.svg', file: 'mark.svg', type: 'svg' },
]

const demoPage: StaticFile[] = [
  { url: '/demo', file: 'demo.html', type: 'html' },
  { url: '/assets/demo.css', file: 'demo.css', type: 'css' },
  { url: '/assets/demo.js', file: 'demo.js', type: 'js' },
  { url: '/assets/render.js', file: 'render.js', type: 'js' },
  { url: '/assets/dom.js', file: 'dom.js', type: 'js' },
]

async function pageRoutes(app: FastifyInstance, publishableKey: string | undefined): Promise<void> {
  for (const { url, file, type } of publishableKey ? [...startPage, ...demoPage] : startPage) {
    const text = await readFile(path.join(import.meta.dirname, 'pages', file), 'utf8')
    const body = publishableKey ? text.replaceAll('{{publishableKey}}', publishableKey) : withoutDemo(text)
    fileRoute(app, { url, type, body }, headers)
  }
}

function withoutDemo(text: string): string {
  return text.replace(/^.*href="\/demo".*\n/gm, '')
}
