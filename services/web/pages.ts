import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'

const types = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
} as const

/** Everything comes from this server; the SDK needs a worker from a blob and its own empty frame. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  'worker-src blob:',
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ')

const pageHeaders = {
  'content-security-policy': policy,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'strict-origin-when-cross-origin',
  'cache-control': 'no-cache',
}

interface StaticFile {
  url: string
  file: string
  type: keyof typeof types
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

/** The start page, and the demo page where there is a key to run it with. */
export async function pageRoutes(
  app: FastifyInstance,
  { publishableKey }: { publishableKey: string | undefined },
): Promise<void> {
  for (const { url, file, type } of publishableKey ? [...startPage, ...demoPage] : startPage) {
    const text = await readFile(path.join(import.meta.dirname, 'pages', file), 'utf8')
    const body = publishableKey ? text.replaceAll('{{publishableKey}}', publishableKey) : withoutDemo(text)
    app.get(url, { schema: { hide: true } }, async (_request, reply) =>
      reply.headers(pageHeaders).header('content-type', types[type]).send(body),
    )
  }
}

/** Each link to the demo stands on a line of its own. */
function withoutDemo(text: string): string {
  return text.replace(/^.*href="\/demo".*\n/gm, '')
}
