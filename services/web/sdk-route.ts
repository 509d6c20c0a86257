import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { acceptsGzip, etagOf, matchesEtag } from '../../infra/http/pages.ts'
import { buildSdk } from './build-sdk.ts'

const schema = {
  operationId: 'getBrowserSdk',
  tags: ['Browser SDK'],
  summary: 'The browser SDK, a module script',
  response: { 200: { content: { 'text/javascript': { schema: z.string() } } }, 304: z.null() },
}

/** GET /t.js: a module script that any site may load; five minutes fresh, then requested again by ETag. */
export function sdkRoute(
  app: FastifyInstance,
  { source, gzipped, etag }: Awaited<ReturnType<typeof bundleSdk>>,
): void {
  const headers = {
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=300, stale-while-revalidate=86400',
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
    'x-content-type-options': 'nosniff',
    vary: 'Accept-Encoding',
    etag,
  }
  app.get('/t.js', { schema }, async (request, reply) => {
    reply.headers(headers)
    if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send()
    if (!acceptsGzip(request.headers['accept-encoding'])) return reply.send(source)
    return reply.header('content-encoding', 'gzip').send(gzipped)
  })
}

export const maxGzipBytes = 45 * 1024

/** The browser SDK in both forms. Throws when it has grown over `maxGzipBytes`. */
export async function bundleSdk() {
  const source = Buffer.from(await buildSdk())
  const gzipped = gzipSync(source, { level: 9 })
  if (gzipped.length > maxGzipBytes)
    throw new Error(`The SDK has ${gzipped.length} bytes gzipped, more than ${maxGzipBytes}`)
  return { source, gzipped, etag: etagOf(source) }
}

if (import.meta.main) {
  const { source, gzipped } = await bundleSdk()
  console.log(`t.js: ${source.length} bytes, ${gzipped.length} gzipped (limit ${maxGzipBytes})`)
}
