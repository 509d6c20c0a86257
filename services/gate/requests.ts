import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { bearerToken } from '../../infra/access/key-checks.ts'
import { declareAccess } from '../../infra/access/principal.ts'
import { isToken, matchesTokenHash, type Token } from '../../infra/crypto/tokens.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { pathId } from '../../infra/http/schemas.ts'
import { type GateSessionId, isId } from '../../infra/ids.ts'
import { isLoopback, networkPrefix, plainAddress } from '../../infra/ip/network.ts'
import { findGateSession } from '../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../projections/gate/tables.ts'
import type { GateParts } from './context.ts'
import { requireSession } from './sessions.ts'

/** Endpoint options shared by all routes that validate a body. */
export const gateRoute = { tag: 'Gate', bodyErrorCode: 'gate.validation_failed' } as const

const tokenPrefixes = { poll: 'gtpoll', agent: 'agt' } as const
const tokenNames = { gtpoll: 'a poll token', agt: 'an agent token' } as const

/** Returns a hook that throws 401 without a well-formed token. The route checks if the token is valid. */
export function requireToken(token: keyof typeof tokenPrefixes): onRequestHookHandler {
  return declareAccess({ token }, (request, _reply, done) => {
    readToken(request, tokenPrefixes[token])
    done()
  })
}

export const agentTokenOf = (request: FastifyRequest): Token<'agt'> => readToken(request, 'agt')

function readToken<K extends 'gtpoll' | 'agt'>({ headers }: FastifyRequest, kind: K): Token<K> {
  const token = bearerToken(headers.authorization)
  if (isToken(kind, token)) return token
  const message = `This endpoint needs ${tokenNames[kind]} (${kind}_...); the one sent is malformed.`
  throw new ApiError('auth.invalid_api_key', { message })
}

/** Must be the first hook, so that error responses are not cached either. */
export const noStore: onRequestHookHandler = (_request, reply, done) => {
  reply.header('cache-control', 'no-store')
  done()
}

/** Returns true for a POST, PATCH or DELETE by a browser, which always has one of the two headers. */
export function isFromBrowser({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  return headers.origin !== undefined || headers['sec-fetch-site'] !== undefined
}

/** Returns a hook that throws 403 for a request from a web page of another origin. Other clients pass. */
export function requireOwnOrigin(publicUrl: string): onRequestHookHandler {
  const { origin } = new URL(publicUrl)
  return ({ headers }, _reply, done) => {
    if (isSameOrigin(headers, origin)) return done()
    const message = "Only this server's consent page may do this in a browser."
    done(new ApiError('auth.origin_not_allowed', { message }))
  }
}

function isSameOrigin(headers: FastifyRequest['headers'], origin: string): boolean {
  const site = headers['sec-fetch-site']
  // Under a no-referrer policy, beacons have the origin `null`. Scripts cannot forge Sec-Fetch-Site.
  const isOwnPage =
    headers.origin === origin || (headers.origin === 'null' && site === 'same-origin')
  if (headers.origin !== undefined && !isOwnPage) return false
  return site === undefined || site === 'same-origin' || site === 'none'
}

export interface Requester {
  requested_ip: string | null
  requested_user_agent: string | null
}

export interface RequesterNetwork {
  /** True if the requester and the browser on the consent page are in the same network; null if unknown. */
  same: boolean | null
  country: string | null
  operator: string | null
}

/** Describes the requester's network and compares it with the network of the browser on the consent page. */
export function requesterNetwork(
  { network, clock }: Pick<GateParts, 'network' | 'clock'>,
  requestedIp: string | null,
  browserIp: string,
): RequesterNetwork {
  if (requestedIp === null) return { same: null, country: null, operator: null }
  const { location, routing } = network.lookup(requestedIp, clock())
  return {
    same: networkKey(requestedIp) === networkKey(browserIp),
    country: location?.country ?? location?.country_code ?? null,
    operator: routing.organization,
  }
}

// All loopback addresses count as one network.
function networkKey(ip: string): string | null {
  return isLoopback(ip) ? 'loopback' : networkPrefix(ip)
}

const maxUserAgentLength = 200

/** Returns the normalized address, and the user agent cut to 200 characters without control and bidi characters. */
export function requesterOf({ ip, headers }: Pick<FastifyRequest, 'ip' | 'headers'>): Requester {
  const userAgent = (headers['user-agent'] ?? '').replace(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ').trim()
  return {
    requested_ip: ipaddr.isValid(ip) ? plainAddress(ip) : null,
    requested_user_agent: Array.from(userAgent).slice(0, maxUserAgentLength).join('') || null,
  }
}

export const gateSessionParams = z.object({ gateSessionId: pathId('gate') })

/** Returns the session id in the path. Throws 404 `gate.session_not_found` if it is malformed. */
export function gateSessionIdOf({ params }: { params: unknown }): GateSessionId {
  const { gateSessionId = '' } = gateSessionParams.safeParse(params).data ?? {}
  if (isId('gate', gateSessionId)) return gateSessionId
  throw new ApiError('gate.session_not_found')
}

/**
 * Returns the signup in the path and counts the request towards its poll token's limit. Throws 404 if there is no such
 * signup, 401 for a wrong poll token (which is not counted), and 429 over the limit.
 */
export async function requireSignup(
  { pool, keyring, limits }: GateParts,
  request: FastifyRequest,
  limit: 'poll' | 'ack' | 'claim',
): Promise<GateSessionRow> {
  const session = await findGateSession(pool, gateSessionIdOf(request))
  const signup = requireSession(session?.kind === 'signup' ? session : undefined)
  const token = readToken(request, 'gtpoll')
  if (!matchesTokenHash(keyring, { token, hash: signup.poll_token_hash }))
    throw new ApiError('auth.invalid_api_key')
  await limits.enforce(limit, token)
  return signup
}
