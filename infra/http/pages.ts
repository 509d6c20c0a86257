import type { FastifyInstance } from 'fastify'

export const contentTypes = {
  html: 'text/html; charset=utf-8',
  css: 'text/css; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  svg: 'image/svg+xml',
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
export function pageHeaders({ images = ["'self'"], forms = "'none'", referrer, caching }: PageNeeds) {
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

export function matchesEtag(header: string | undefined, etag: string): boolean {
  return header?.split(',').some((tag) => tag.trim() === etag || tag.trim() === '*') ?? false
}
