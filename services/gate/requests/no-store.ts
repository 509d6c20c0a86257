import type { onRequestHookHandler } from 'fastify'

/** First of a route's hooks: no answer of it, refusals too, may be kept by anything on the way. */
export const noStore: onRequestHookHandler = (_request, reply, done) => {
  reply.header('cache-control', 'no-store')
  done()
}
