import { createHash } from 'node:crypto'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { matchesEtag } from '../../infra/http/pages.ts'

const schema = {
  operationId: 'getBrowserSdk',
  tags: ['Browser SDK'],
  summary: 'The browser SDK, a module script',
  response: { 200: { content: { 'text/javascript': { schema: z.string() } } }, 304: z.null() },
}

/** GET /t.js: a module script that any site may load; five minutes fresh, then asked for again by ETag. */
export function sdkRoute(app: FastifyInstance, { source, gzipped, etag }: SdkBundle): void {
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

function acceptsGzip(header: string | string[] | undefined): boolean {
  return /(^|,)\s*gzip\s*(?!;\s*q=0(\.0*)?\s*(,|$))/i.test(String(header ?? ''))
}

// What the SDK is written down to; a test looks for newer built-ins.
const oldestBrowsers = ['chrome80', 'firefox78', 'safari14']

export const maxGzipBytes = 45 * 1024

interface SdkBundle {
  source: Buffer
  gzipped: Buffer
  etag: string
}

/** Bundles the browser SDK in memory. Throws when it has grown over `maxGzipBytes`. */
export async function bundleSdk(): Promise<SdkBundle> {
  const { outputFiles } = await build({
    entryPoints: [path.join(import.meta.dirname, 'sdk/index.ts')],
    bundle: true,
    format: 'esm',
    target: oldestBrowsers,
    // All three read it, but for a corner of Safari 14 that is not met here.
    supported: { destructuring: true },
    // A package asks for it, and Chromium before 93, Firefox before 92 and Safari before 15.4 have it not.
    define: { 'Object.hasOwn': 'hasOwn' },
    inject: [path.join(import.meta.dirname, 'sdk/has-own.ts')],
    minify: true,
    write: false,
    legalComments: 'none',
    logLevel: 'error',
  })
  const source = Buffer.from(outputFiles[0]?.contents ?? [])
  const gzipped = gzipSync(source, { level: 9 })
  if (gzipped.length > maxGzipBytes)
    throw new Error(`The SDK has ${gzipped.length} bytes gzipped, more than ${maxGzipBytes}`)
  // Weak, because the plain and the gzipped bytes share it.
  const etag = `W/"${createHash('sha256').update(source).digest('base64url').slice(0, 22)}"`
  return { source, gzipped, etag }
}

if (import.meta.main) {
  const { source, gzipped } = await bundleSdk()
  console.log(`t.js: ${source.length} bytes, ${gzipped.length} gzipped (limit ${maxGzipBytes})`)
}
