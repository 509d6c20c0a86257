import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../../infra/errors/errors.ts'
import {
  type CompressedFile,
  compress,
  contentTypes,
  type FileType,
  isolationHeaders,
  memoizePromise,
  pageHeaders,
  sendCompressed,
} from '../../infra/http/pages.ts'
import { buildAssets } from './bundle.ts'

const referrer = 'no-referrer'
const headers = { ...pageHeaders({ referrer, caching: 'no-store' }), ...isolationHeaders }
// Every path below `/console` returns the page, except these.
const nonPagePaths = /^\/console\/(?:api|assets)(?:\/|$)/

/** Serves the single-page console at `/console` and at every path below it, so that deep links work. */
export async function pageRoutes(
  app: FastifyInstance,
  questionsScript: () => Promise<string>,
): Promise<void> {
  const html = await readFile(path.join(import.meta.dirname, 'pages/index.html'), 'utf8')
  for (const url of ['/console', '/console/*'])
    app.get(url, { schema: { hide: true } }, async (request, reply) => {
      if (nonPagePaths.test(request.url.split('?', 1)[0] ?? ''))
        throw new ApiError('request.not_found')
      return reply
        .headers(headers)
        .header('content-type', contentTypes.html)
        .send(withRelativeAssets(html, request.url))
    })
  assetRoute(app, questionsScript)
}

// Makes asset URLs relative, because a proxy may serve the console under a path that the server does not know:
// `../../console/assets/main.js` on `/console/live/sessions`.
function withRelativeAssets(html: string, url: string): string {
  const [pathname = ''] = url.split('?', 1)
  const up = '../'.repeat(pathname.split('/').length - 2)
  return html.replaceAll('"/console/assets/', `"${up}console/assets/`)
}

// Builds the assets at the first request, because most processes never serve the console.
function assetRoute(app: FastifyInstance, questionsScript: () => Promise<string>): void {
  const assets = memoizePromise(() => compressAssets(questionsScript))
  app.get<{ Params: { name: string } }>(
    '/console/assets/:name',
    { schema: { hide: true } },
    async (request, reply) => {
      const { name } = request.params
      const asset = (await assets()).get(name)
      if (!asset) throw new ApiError('request.not_found')
      const { etag } = asset
      reply.headers({ ...headers, 'cache-control': 'no-cache', vary: 'Accept-Encoding', etag })
      reply.header('content-type', contentTypes[fileTypeOf(name)])
      return sendCompressed(request, reply, asset)
    },
  )
}

function fileTypeOf(name: string): FileType {
  if (name.endsWith('.css')) return 'css'
  return name.endsWith('.svg') ? 'svg' : 'js'
}

async function compressAssets(
  questionsScript: () => Promise<string>,
): Promise<Map<string, CompressedFile>> {
  const [pageAssets, text] = await Promise.all([buildAssets(), questionsScript()])
  const assets = [...pageAssets, { name: 'questions.js', text }]
  return new Map(
    await Promise.all(assets.map(async ({ name, text }) => [name, await compress(text)] as const)),
  )
}
