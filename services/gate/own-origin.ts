import type { onRequestHookHandler } from 'fastify'
import { ApiError } from '../../infra/http/errors.ts'

/**
 * For what only the consent page does in a browser: 403 when a page of another origin asks, also one that hides its
 * origin. Without the header it is no page of another origin, or no browser.
 */
export function ownOriginOnly(publicUrl: string): onRequestHookHandler {
  const own = new URL(publicUrl).origin
  return ({ headers: { origin } }, _reply, done) => {
    if (origin === undefined || origin === own) return done()
    const message = "Only this server's consent page may do this in a browser."
    done(new ApiError('auth.origin_not_allowed', { message }))
  }
}
