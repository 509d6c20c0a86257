import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../../infra/errors/errors.ts'
import {
  acceptsGzip,
  contentTypes,
  etagOf,
  type FileType,
  isolation,
  matchesEtag,
  pageHeaders,
} from '../../infra/http/pages.ts'
import { buildPages } from './bundle.ts'

const referrer = 'no-referrer'
const headers = { ...pageHeaders({ referrer, caching: 'no-store' }), ...isolation }
// Each of its views is an address of the page, but for these.
const noViews = /^\/console\/(?:api|assets)(?:\/|$)/

/** One page at `/console` and everything below it, so that the address of a view works wherever it is opened. */
export async function pageRoutes(app: FastifyInstance): Promise<void> {
  const html = await readFile(path.join(import.meta.dirname, 'pages/index.html'), 'utf8')
  for (const url of ['/console', '/console/*'])
    app.get(url, { schema: { hide: true } }, async (request, reply) => {
      if (noViews.test(request.url.split('?', 1)[0] ?? '')) throw new ApiError('request.not_found')
      return reply.headers(headers).header('content-type', contentTypes.html).send(html)
    })
  assetRoute(app)
}

interface Asset {
  plain: Buffer
  gzipped: Buffer
  etag: string
}

// Made at the first request, because most starts are of processes that show no console.
function assetRoute(app: FastifyInstance): void {
  let made: Promise<Map<string, Asset>> | undefined
  app.get<{ Params: { name: string } }>(
    '/console/assets/:name',
    { schema: { hide: true } },
    async ({ params: { name }, headers: sent }, reply) => {
      made ??= makeAssets()
      const asset = (await made).get(name)
      if (!asset) throw new ApiError('request.not_found')
      const { plain, gzipped, etag } = asset
      reply.headers({ ...headers, 'cache-control': 'no-cache', vary: 'Accept-Encoding', etag })
      reply.header('content-type', contentTypes[typeOf(name)])
      if (matchesEtag(sent['if-none-match'], etag)) return reply.code(304).send()
      if (!acceptsGzip(sent['accept-encoding'])) return reply.send(plain)
      return reply.header('content-encoding', 'gzip').send(gzipped)
    },
  )
}

function typeOf(name: string): FileType {
  if (name.endsWith('.css')) return 'css'
  return name.endsWith('.svg') ? 'svg' : 'js'
}

async function makeAssets(): Promise<Map<string, Asset>> {
  const assets = (await buildPages()).map(({ name, text }): [string, Asset] => {
    const plain = Buffer.from(text)
    return [name, { plain, gzipped: gzipSync(plain), etag: etagOf(plain) }]
  })
  return new Map(assets)
}
