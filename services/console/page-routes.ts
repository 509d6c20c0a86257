import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../../infra/errors/errors.ts'
import {
  contentTypes,
  type FileType,
  isolation,
  madeOnce,
  type Packed,
  pack,
  pageHeaders,
  sendPacked,
} from '../../infra/http/pages.ts'
import { buildPages } from './bundle.ts'

const referrer = 'no-referrer'
const headers = { ...pageHeaders({ referrer, caching: 'no-store' }), ...isolation }
// Each of its views is an address of the page, but for these.
const noViews = /^\/console\/(?:api|assets)(?:\/|$)/

/** One page at `/console` and everything below it, so that the address of a view works wherever it is opened. */
export async function pageRoutes(
  app: FastifyInstance,
  questionsScript: () => Promise<string>,
): Promise<void> {
  const html = await readFile(path.join(import.meta.dirname, 'pages/index.html'), 'utf8')
  for (const url of ['/console', '/console/*'])
    app.get(url, { schema: { hide: true } }, async (request, reply) => {
      if (noViews.test(request.url.split('?', 1)[0] ?? '')) throw new ApiError('request.not_found')
      return reply
        .headers(headers)
        .header('content-type', contentTypes.html)
        .send(relative(html, request.url))
    })
  assetRoute(app, questionsScript)
}

// A proxy may serve the console under a path that the server does not know, so what the page loads is named from its own
// address: `../../console/assets/main.js` on `/console/live/sessions`.
function relative(html: string, url: string): string {
  const [pathname = ''] = url.split('?', 1)
  const up = '../'.repeat(pathname.split('/').length - 2)
  return html.replaceAll('"/console/assets/', `"${up}console/assets/`)
}

// Made at the first request, because most starts are of processes that show no console.
function assetRoute(app: FastifyInstance, questionsScript: () => Promise<string>): void {
  const assets = madeOnce(() => packedAssets(questionsScript))
  app.get<{ Params: { name: string } }>(
    '/console/assets/:name',
    { schema: { hide: true } },
    async (request, reply) => {
      const { name } = request.params
      const packed = (await assets()).get(name)
      if (!packed) throw new ApiError('request.not_found')
      const { etag } = packed
      reply.headers({ ...headers, 'cache-control': 'no-cache', vary: 'Accept-Encoding', etag })
      reply.header('content-type', contentTypes[typeOf(name)])
      return sendPacked(request, reply, packed)
    },
  )
}

function typeOf(name: string): FileType {
  if (name.endsWith('.css')) return 'css'
  return name.endsWith('.svg') ? 'svg' : 'js'
}

async function packedAssets(questionsScript: () => Promise<string>): Promise<Map<string, Packed>> {
  const [pages, text] = await Promise.all([buildPages(), questionsScript()])
  const assets = [...pages, { name: 'questions.js', text }]
  return new Map(
    await Promise.all(assets.map(async ({ name, text }) => [name, await pack(text)] as const)),
  )
}
