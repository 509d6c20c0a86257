import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { ApiError, type ErrorCode } from '../../infra/http/errors.ts'

const allowHeaders = 'Authorization, Content-Type, X-Client-Key, X-Batch-Seq'
const exposeHeaders = 'X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Cost, Retry-After, X-Request-Id'
const maxAgeSeconds = '7200'
const originErrors: ErrorCode[] = ['auth.origin_not_allowed', 'auth.native_key_not_allowed']

/** onRequest: lets the page that asks read the answer, errors included, and send the continuity cookie. */
export function answerOrigin(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  reply.header('vary', 'Origin')
  const { origin } = request.headers
  if (origin) {
    reply.header('access-control-allow-origin', origin)
    reply.header('access-control-allow-credentials', 'true')
    reply.header('access-control-expose-headers', exposeHeaders)
  }
  done()
}

/** onError: takes the permission back where the key does not allow the origin. */
export async function refuseOrigin(
  _request: FastifyRequest,
  reply: FastifyReply,
  error: Error,
): Promise<void> {
  if (!(error instanceof ApiError) || !originErrors.includes(error.code)) return
  reply.removeHeader('access-control-allow-origin')
  reply.removeHeader('access-control-allow-credentials')
}

/**
 * Preflight for the paths: 204. A preflight carries no key, so every origin may go on to the request itself,
 * which then has to be allowed by its key.
 */
export function addPreflight(app: FastifyInstance, paths: string[], methods: string): void {
  for (const path of paths) {
    app.options(path, { schema: { hide: true } }, async (_request, reply) => {
      reply.header('access-control-allow-methods', methods)
      reply.header('access-control-allow-headers', allowHeaders)
      reply.header('access-control-max-age', maxAgeSeconds)
      return reply.code(204).send()
    })
  }
}
