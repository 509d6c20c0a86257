import type { FastifyRequest, onRequestHookHandler } from 'fastify'
import ipaddr from 'ipaddr.js'
import { z } from 'zod'
import { bearerOf } from '../../infra/access/key-checks.ts'
import { enforcing } from '../../infra/access/principal.ts'
import { isToken, isTokenOf, type Token } from '../../infra/crypto/tokens.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import { pathId } from '../../infra/http/schemas.ts'
import { type GateSessionId, isId } from '../../infra/ids.ts'
import { isLoopback, networkPrefix, plainAddress } from '../../infra/ip/network.ts'
import { findGateSession } from '../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../projections/gate/tables.ts'
import type { GateParts } from './context.ts'
import { foundSession } from './sessions.ts'

/** What the description of each endpoint that checks its body has. */
export const gateRoute = { tag: 'Gate', bodyCode: 'gate.validation_failed' } as const

const kinds = { poll: 'gtpoll', agent: 'agt' } as const
const names = { gtpoll: 'a poll token', agt: 'an agent token' } as const

/** 401 without a well-formed token of the kind. The route decides whether it is valid. */
export function requireToken(token: keyof typeof kinds): onRequestHookHandler {
  return enforcing({ token }, (request, _reply, done) => {
    readToken(request, kinds[token])
    done()
  })
}

export const agentTokenOf = (request: FastifyRequest): Token<'agt'> => readToken(request, 'agt')

function readToken<K extends 'gtpoll' | 'agt'>({ headers }: FastifyRequest, kind: K): Token<K> {
  const token = bearerOf(headers.authorization)
  if (isToken(kind, token)) return token
  const message = `This endpoint needs ${names[kind]}, ${kind}_..., and the one sent is none or has a typo.`
  throw new ApiError('auth.invalid_api_key', { message })
}

/** Must be the first hook, because refusals are not to be cached either. */
export const noStore: onRequestHookHandler = (_request, reply, done) => {
  reply.header('cache-control', 'no-store')
  done()
}

/** Browsers send one of the two headers wherever something changes. */
export function isFromBrowser({ headers }: Pick<FastifyRequest, 'headers'>): boolean {
  return headers.origin !== undefined || headers['sec-fetch-site'] !== undefined
}

/** 403 for a request of a page of another origin. A request that is not from a browser passes. */
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

export interface Requester {
  requested_ip: string | null
  requested_user_agent: string | null
}

export interface RequesterNetwork {
  /** Whether whoever reads the consent data is in the same network; null = not known. */
  same: boolean | null
  country: string | null
  operator: string | null
}

/** Where a signup or login was requested, seen from the browser that decides about it. */
export function requesterNetwork(
  { network, clock }: Pick<GateParts, 'network' | 'clock'>,
  requestedIp: string | null,
  readerIp: string,
): RequesterNetwork {
  if (requestedIp === null) return { same: null, country: null, operator: null }
  const { location, routing } = network.lookup(requestedIp, clock())
  return {
    same: placeOf(requestedIp) === placeOf(readerIp),
    country: location?.country ?? location?.country_code ?? null,
    operator: routing.organization,
  }
}

// All addresses of this machine are one place.
function placeOf(ip: string): string | null {
  return isLoopback(ip) ? 'loopback' : networkPrefix(ip)
}

const userAgentCharacters = 200

/**
 * The address in its usual notation, and 200 characters of the user agent without control and direction characters.
 */
export function requesterOf({ ip, headers }: Pick<FastifyRequest, 'ip' | 'headers'>): Requester {
  const userAgent = (headers['user-agent'] ?? '').replace(/[\p{Cc}\p{Bidi_Control}]+/gu, ' ').trim()
  return {
    requested_ip: ipaddr.isValid(ip) ? plainAddress(ip) : null,
    requested_user_agent: Array.from(userAgent).slice(0, userAgentCharacters).join('') || null,
  }
}

export const gateSessionParams = z.object({ gateSessionId: pathId('gate') })

/** 404 for what cannot be an id. */
export function gateSessionIdOf({ params }: { params: unknown }): GateSessionId {
  const { gateSessionId = '' } = gateSessionParams.safeParse(params).data ?? {}
  if (isId('gate', gateSessionId)) return gateSessionId
  throw new ApiError('gate.session_not_found')
}

/**
 * The signup of the request's poll token. Counts the request towards the limit of the token. ApiError: 404 no such
 * signup, 401 another's token, 429. Requests that only guess are not counted.
 */
export async function polledSession(
  { pool, keyring, limits }: GateParts,
  request: FastifyRequest,
  limit: 'poll' | 'ack' | 'claim',
): Promise<GateSessionRow> {
  const session = await findGateSession(pool, gateSessionIdOf(request))
  const found = foundSession(session?.kind === 'signup' ? session : undefined)
  const token = readToken(request, 'gtpoll')
  if (!isTokenOf(keyring, { token, hash: found.poll_token_hash }))
    throw new ApiError('auth.invalid_api_key')
  await limits.count(limit, token)
  return found
}
