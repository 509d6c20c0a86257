import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import { ApiError } from '../../../infra/errors/errors.ts'

/**
 * For what only the consent page does in a browser: 403 when a page of another origin asks. Without either header it
 * is no browser; browsers that do not say where a request is from name its origin wherever it changes something.
 */
export function ownOriginOnly(publicUrl: string): onRequestHookHandler {
  const own = new URL(publicUrl).origin
  return ({ headers }, _reply, done) => {
    if (isOurs(headers, own)) return done()
    const message = "Only this server's consent page may do this in a browser."
    done(new ApiError('auth.origin_not_allowed', { message }))
  }
}

function isOurs(headers: FastifyRequest['headers'], own: string): boolean {
  const site = headers['sec-fetch-site']
  // Pages that send no referrer send `null` for their origin along with beacons; scripts cannot set the other header.
  const isOwnPage = headers.origin === own || (headers.origin === 'null' && site === 'same-origin')
  if (headers.origin !== undefined && !isOwnPage) return false
  return site === undefined || site === 'same-origin' || site === 'none'
}
