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

export interface PageNeeds {
  images?: string[]
  forms?: string
  referrer: 'no-referrer' | 'strict-origin-when-cross-origin'
  caching: 'no-store' | 'no-cache'
}

/** Headers of a page and its files. Everything comes from this server; the SDK needs a worker from a blob. */
export function pageHeaders({
  images = ["'self'"],
  forms = "'none'",
  referrer,
  caching,
}: PageNeeds) {
  const policy = [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    `img-src ${images.join(' ')}`,
    "connect-src 'self'",
    'worker-src blob:',
    `form-action ${forms}`,
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

/** Headers of a page, beside those, whose window no other page may reach. */
export const isolation = {
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

/** The file is the same for everybody. The route is no part of the API's description. */
export function fileRoute(
  app: FastifyInstance,
  { url, type, body }: PageFile,
  headers: Record<string, string>,
): void {
  app.get(url, { schema: { hide: true } }, async (_request, reply) =>
    reply.headers(headers).header('content-type', contentTypes[type]).send(body),
  )
}

interface MadeOnce {
  url: string
  type: FileType
  /** Default: no part of the API's description. */
  schema?: FastifySchema
  make: () => string | Buffer | Promise<Buffer>
}

/** The answer is the same for everybody. It is made and packed at the first request, and kept with its ETag. */
export function madeOnceRoute(
  app: FastifyInstance,
  { url, type, schema = { hide: true }, make }: MadeOnce,
  headers: Record<string, string> = {},
): void {
  const made = madeOnce(async () => pack(await make()))
  app.get(url, { schema }, async (request, reply) => {
    const packed = await made()
    reply.headers({
      'cache-control': 'no-cache',
      vary: 'Accept-Encoding',
      ...headers,
      etag: packed.etag,
    })
    reply.header('content-type', contentTypes[type])
    return sendPacked(request, reply, packed)
  })
}

/** Remembers what was made, unless that failed. */
export function madeOnce<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined
  return () => {
    made ??= make().catch((error) => {
      made = undefined
      throw error
    })
    return made
  }
}

export interface Packed {
  plain: Buffer
  gzipped: Buffer
  etag: string
}

export async function pack(content: string | Buffer): Promise<Packed> {
  const plain = Buffer.from(content)
  return { plain, gzipped: await promisify(gzip)(plain), etag: etagOf(plain) }
}

/** Answers in the form that the client takes, or that it has it already. The headers are the caller's. */
export function sendPacked(
  { headers }: Pick<FastifyRequest, 'headers'>,
  reply: FastifyReply,
  { plain, gzipped, etag }: Packed,
): FastifyReply {
  if (matchesEtag(headers['if-none-match'], etag)) return reply.code(304).send()
  if (!acceptsGzip(headers['accept-encoding'])) return reply.send(plain)
  return reply.header('content-encoding', 'gzip').send(gzipped)
}

/** Weak, because the plain and the packed bytes share it. */
export function etagOf(bytes: Buffer): string {
  return `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`
}

function acceptsGzip(header: string | string[] | undefined): boolean {
  return /(^|,)\s*gzip\s*(?!;\s*q=0(\.0*)?\s*(,|$))/i.test(String(header ?? ''))
}

export function matchesEtag(header: string | undefined, etag: string): boolean {
  return header?.split(',').some((tag) => tag.trim() === etag || tag.trim() === '*') ?? false
}
