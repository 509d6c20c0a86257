import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { type CompressedFile, etagOf, sendCompressed } from '../../infra/http/pages.ts'
import { buildSdk } from './build-sdk.ts'

const schema = {
  operationId: 'getBrowserSdk',
  tags: ['Browser SDK'],
  summary: 'Get the browser SDK',
  response: { 200: { content: { 'text/javascript': { schema: z.string() } } }, 304: z.null() },
}

/** Serves GET /t.js, a module script that any site may load. Browsers cache it for five minutes, then revalidate it. */
export function sdkRoute(app: FastifyInstance, sdk: CompressedFile): void {
  const headers = {
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=300, stale-while-revalidate=86400',
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
    'x-content-type-options': 'nosniff',
    vary: 'Accept-Encoding',
    etag: sdk.etag,
  }
  app.get('/t.js', { schema }, async (request, reply) => {
    reply.headers(headers)
    return sendCompressed(request, reply, sdk)
  })
}

export const maxGzipBytes = 45 * 1024

/** Bundles and compresses the browser SDK. Throws if it exceeds `maxGzipBytes`. */
export async function bundleSdk(): Promise<CompressedFile> {
  const plain = Buffer.from(await buildSdk())
  const gzipped = gzipSync(plain, { level: 9 })
  if (gzipped.length > maxGzipBytes)
    throw new Error(`The SDK has ${gzipped.length} bytes gzipped, more than ${maxGzipBytes}`)
  return { plain, gzipped, etag: etagOf(plain) }
}

if (import.meta.main) {
  const { plain, gzipped } = await bundleSdk()
  console.log(`t.js: ${plain.length} bytes, ${gzipped.length} gzipped (limit ${maxGzipBytes})`)
}
