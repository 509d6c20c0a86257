import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError, type ErrorCode } from '../../infra/errors/errors.ts'

const allowHeaders = 'Authorization, Content-Type, X-Client-Key, X-Batch-Seq'
const exposeHeaders =
  'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Cost, Retry-After, X-Request-Id'
const maxAgeSeconds = '7200'
const originErrors: ErrorCode[] = ['auth.origin_not_allowed', 'auth.native_key_not_allowed']

/** Returns the headers that let the requesting page read the response to a collect request. */
export function corsHeaders({ headers }: Pick<FastifyRequest, 'headers'>): Record<string, string> {
  if (!headers.origin) return { vary: 'Origin' }
  return {
    vary: 'Origin',
    'access-control-allow-origin': headers.origin,
    'access-control-allow-credentials': 'true',
    'access-control-expose-headers': exposeHeaders,
  }
}

/** onRequest hook. Lets the requesting page read the response, errors included, and send the continuity cookie. */
export function allowOrigin(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  reply.headers(corsHeaders(request))
  done()
}

/** Returns CORS headers for errors that occur before the route's hooks run; for `addErrorHeaders`. */
export function errorCorsHeaders(
  request: FastifyRequest,
  { code }: ApiError,
): Record<string, string> {
  return isCollectRequest(request) && !originErrors.includes(code) ? corsHeaders(request) : {}
}

/** onRequest hook of the root scope. Allows preflights of unknown paths, so that the page can read the 404. */
export function respondToUnknownPreflight(
  request: FastifyRequest,
  reply: FastifyReply,
  done: () => void,
): void {
  const isUnknown = request.is404 && request.method === 'OPTIONS' && isCollectRequest(request)
  if (isUnknown) sendPreflight(reply.headers(corsHeaders(request)), 'GET, POST, OPTIONS')
  else done()
}

export function isCollectRequest({ url }: Pick<FastifyRequest, 'url'>): boolean {
  return url.startsWith('/v2/collect/')
}

/** onError hook. Removes the CORS headers if the key does not allow the origin. */
export async function removeCorsHeaders(
  _request: FastifyRequest,
  reply: FastifyReply,
  error: Error,
): Promise<void> {
  if (!(error instanceof ApiError) || !originErrors.includes(error.code)) return
  reply.removeHeader('access-control-allow-origin')
  reply.removeHeader('access-control-allow-credentials')
}

/**
 * Adds preflight routes, which respond 204. Preflights carry no key, so every origin is allowed; the actual request is
 * rejected if its key does not allow the origin.
 */
export function addPreflight(app: FastifyInstance, paths: string[], methods: string): void {
  for (const path of paths) {
    app.options(path, { schema: { hide: true } }, async (_request, reply) =>
      sendPreflight(reply, methods),
    )
  }
}

function sendPreflight(reply: FastifyReply, methods: string): FastifyReply {
  return reply.code(204).headers(preflightHeaders(methods)).send()
}

export const preflightHeaders = (methods: string) => ({
  'access-control-allow-methods': methods,
  'access-control-allow-headers': allowHeaders,
  'access-control-max-age': maxAgeSeconds,
})
