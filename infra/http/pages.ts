import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from 'fastify'

export const contentTypes = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  json: 'application/json; charset=utf-8',
  text: 'text/plain; charset=utf-8',
  markdown: 'text/markdown; charset=utf-8',
} as const
export type FileType = keyof typeof contentTypes

export interface PageHeaderOptions {
  imageSources?: string[]
  formTarget?: string
  referrer: 'no-referrer' | 'strict-origin-when-cross-origin'
  caching: 'no-store' | 'no-cache'
}

/** Returns the headers of a page and its files. Their CSP allows only this server, and the SDK's worker from a blob. */
export function pageHeaders({
  imageSources = ["'self'"],
  formTarget = "'none'",
  referrer,
  caching,
}: PageHeaderOptions) {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src ${imageSources.join(' ')}`,
    "connect-src 'self'",
    'worker-src blob:',
    `form-action ${formTarget}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ]
  return {
    'content-security-policy': policy.join('; '),
    'x-content-type-options': 'nosniff',
    'referrer-policy': referrer,
    'cache-control': caching,
  }
}

/** Additional headers of a page that other sites must neither embed nor control from an opener window. */
export const isolationHeaders = {
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': [
    'accelerometer',
    'camera',
    'clipboard-read',
    'display-capture',
    'geolocation',
    'gyroscope',
    'hid',
    'microphone',
    'midi',
    'payment',
    'publickey-credentials-get',
    'serial',
    'usb',
  ]
    .map((feature) => `${feature}=()`)
    .join(', '),
}

export interface PageFile {
  url: string
  type: FileType
  body: string
}

/** Adds a route for a static file, hidden from the OpenAPI document. */
export function fileRoute(
  app: FastifyInstance,
  { url, type, body }: PageFile,
  headers: Record<string, string>,
): void {
  app.get(url, { schema: { hide: true } }, async (_request, reply) =>
    reply.headers(headers).header('content-type', contentTypes[type]).send(body),
  )
}

interface CachedFile {
  url: string
  type: FileType
  /** Default: hidden from the OpenAPI document. */
  schema?: FastifySchema
  make: () => string | Buffer | Promise<Buffer>
}

/** Adds a route whose response is created and compressed on the first request, and cached with its ETag. */
export function cachedFileRoute(
  app: FastifyInstance,
  { url, type, schema = { hide: true }, make }: CachedFile,
  headers: Record<string, string> = {},
): void {
  const load = memoizePromise(async () => compress(await make()))
  app.get(url, { schema }, async (request, reply) => {
    const file = await load()
    reply.headers({
      'cache-control': 'no-cache',
      vary: 'Accept-Encoding',
      ...headers,
      etag: file.etag,
    })
    reply.header('content-type', contentTypes[type])
    return sendCompressed(request, reply, file)
  })
}

/** Returns a function that calls `make` once and caches its promise, unless it rejects. */
export function memoizePromise<T>(make: () => Promise<T>): () => Promise<T> {
  let cached: Promise<T> | undefined
  return () => {
    cached ??= make().catch((error) => {
      cached = undefined
      throw error
    })
    return cached
  }
}

export interface CompressedFile {
  plain: Buffer
  gzipped: Buffer
  etag: string
}

async function compress(content: string | Buffer): Promise<CompressedFile> {
  const plain = Buffer.from(content)
  return { plain, gzipped: await promisify(gzip)(plain), etag: etagOf(plain) }
}

/** Sends 304, or the file, gzipped if the client accepts that. Sets no headers but Content-Encoding. */
export function sendCompressed(
  { headers }: Pick<FastifyRequest, 'headers'>,
  reply: FastifyReply,
  { plain, gzipped, etag }: CompressedFile,
): FastifyReply {
  if (matchesEtag(headers['if-none-match'], etag)) return reply.code(304).send()
  if (!acceptsGzip(headers['accept-encoding'])) return reply.send(plain)
  return reply.header('content-encoding', 'gzip').send(gzipped)
}

/** Returns a weak ETag, because the plain and the gzipped file share it. */
export function etagOf(bytes: Buffer): string {
  return `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
}

function acceptsGzip(header: string | string[] | undefined): boolean {
  return /(^|,)\s*gzip\s*(?!;\s*q=0(\.0*)?\s*(,|$))/i.test(String(header ?? ''))
}

export function matchesEtag(header: string | undefined, etag: string): boolean {
  return header?.split(',').some((tag) => tag.trim() === etag || tag.trim() === '*') ?? false
}
