import { Readable } from 'node:stream'
import type {
  FastifyReply,
  FastifyRequest,
  preParsingAsyncHookHandler,
  RequestPayload,
} from 'fastify'
import type { KeyType } from '../../schemas/events.ts'
import { isObject } from '../../schemas/lenient.ts'
import { ApiError } from '../errors/errors.ts'
import type { Clock, OrganizationId } from '../ids.ts'
import { createLru } from '../lru.ts'
import { parseJsonOrUndefined } from '../text.ts'
import { type Budget, rateLimitError } from './budget.ts'
import { createFairShare, type FairShare } from './fair-share.ts'
import type { Principal } from './principal.ts'
import type {
  BucketName,
  RateLimiter,
  RateLimitRequest,
  RateLimitResult,
} from './rate-limit/limiter.ts'
import { sourceOf } from './source.ts'

export interface ChargeOptions {
  clock: Clock
  limiter?: RateLimiter | undefined
  /**
   * Units per 60 seconds: per key type of an organization that sets no limit (default: secret 600, publishable 3000),
   * per organization for scored requests (12,000), and per console session (600).
   */
  defaultLimits?: (Record<KeyType, number> & Partial<Record<BucketName, number>>) | undefined
  /**
   * Returns the budget per source address that replaces the organization's bucket, for a key that anyone can read. Such
   * a request costs one unit, and its response has no X-RateLimit-* headers.
   */
  perSourceBudget?: ((principal: Principal) => Budget | undefined) | undefined
  onRateLimited?: ((callerType: Principal['type']) => void) | undefined
}

export interface Charge {
  reply: FastifyReply
  cost: number
  /** Default: the bucket of the principal's type. */
  bucket?: BucketName | undefined
}

const standardLimits: Record<BucketName, number> = {
  secret: 600,
  publishable: 3000,
  requests: 12_000,
  person: 600,
}
// Fair shares are enforced only while the bucket is below this fraction of its limit.
const scarcityThreshold = 1 / 2
const windowMs = 60_000
const maxOrganizations = 1000
const limitHeader = 'x-ratelimit-limit'
const remainingHeader = 'x-ratelimit-remaining'
const costHeader = 'x-ratelimit-cost'

export type RequestMeter = ReturnType<typeof createRequestMeter>

export function createRequestMeter(options: ChargeOptions) {
  const { clock, limiter, perSourceBudget, onRateLimited } = options
  const requestOf = createRequestBuilder({ ...standardLimits, ...options.defaultLimits })

  // Sets headers on the reply rather than the error: a request that fails later was charged too and must say so.
  function setHeadersOrRefuse(
    { admitted, limit, remaining, cost, retryAfterSeconds }: RateLimitResult,
    reply: FastifyReply,
    callerType: Principal['type'],
  ): void {
    reply.header(limitHeader, limit).header(remainingHeader, remaining).header(costHeader, cost)
    if (!admitted) refuse(callerType, rateLimitError(retryAfterSeconds))
  }

  function refuse(callerType: Principal['type'], error: ApiError): never {
    onRateLimited?.(callerType)
    throw error
  }

  const fairShares = createLru<OrganizationId, FairShare>(maxOrganizations)
  function fairShareOf(organizationId: OrganizationId): FairShare {
    const share = fairShares.get(organizationId) ?? createFairShare({ clock, windowMs })
    fairShares.set(organizationId, share)
    return share
  }

  function refund(principal: Principal, reply: FastifyReply): void {
    const cost = Number(reply.getHeader(costHeader) ?? 0)
    if (cost > 0) limiter?.refund(requestOf(principal, { cost }))
    for (const name of [limitHeader, remainingHeader, costHeader]) reply.removeHeader(name)
  }

  return {
    /**
     * Throws 429 for a source that has had more than its fair share of a bucket below half full, while other sources
     * send requests too. A refusal costs no units: otherwise anyone who copies a publishable key could lock everyone
     * else out. All sources together get twice the remaining units per minute, so the bucket settles where refill
     * equals spending.
     */
    enforceFairShare(principal: Principal, ip: string): void {
      if (!limiter || perSourceBudget?.(principal)) return
      const source = sourceOf(ip)
      const share = fairShareOf(principal.organizationId)
      const request = requestOf(principal, { cost: 1 })
      const left = limiter.remaining(request)
      const isShared = left < request.limit * scarcityThreshold && !share.isOnlyParty(source)
      if (!share.admit(source, isShared ? () => left / scarcityThreshold : undefined))
        refuse(principal.type, rateLimitError())
    },
    /**
     * Throws 429 if there are not enough units. Returns undefined if it decided synchronously: a promise per request
     * would cost more than the decision.
     */
    charge(principal: Principal, { reply, ...units }: Charge): Promise<void> | undefined {
      if (!limiter) return undefined
      const budget = perSourceBudget?.(principal)
      if (budget) {
        if (!budget.spend(sourceOf(reply.request.ip))) refuse(principal.type, rateLimitError())
        return undefined
      }
      const result = limiter.consume(requestOf(principal, units))
      if (result instanceof Promise)
        return result.then((settled) => setHeadersOrRefuse(settled, reply, principal.type))
      setHeadersOrRefuse(result, reply, principal.type)
      return undefined
    },
    refund,
    /**
     * Raises the charge for a request to `cost` units, with a refund and a new charge, so that `Retry-After` covers all
     * of them. Charges at most a full bucket: otherwise a small limit would refuse the request forever.
     */
    async raiseCharge(principal: Principal, { reply, cost }: Omit<Charge, 'bucket'>) {
      if (!limiter || cost <= Number(reply.getHeader(costHeader) ?? 0)) return
      refund(principal, reply)
      const request = requestOf(principal, { cost })
      const result = await limiter.consume({ ...request, cost: Math.min(cost, request.limit) })
      setHeadersOrRefuse(result, reply, principal.type)
    },
  }
}

const createRequestBuilder =
  (defaultLimits: Record<BucketName, number>) =>
  (
    principal: Principal,
    { cost, bucket = principal.type }: Omit<Charge, 'reply'>,
  ): RateLimitRequest => {
    if (principal.type === 'person')
      return {
        owner: principal.consoleSessionId,
        bucket: 'person',
        limit: defaultLimits.person,
        cost,
      }
    const keyLimit = bucket === principal.type ? principal.rateLimit : null
    const limit = keyLimit ?? defaultLimits[bucket]
    return { owner: principal.organizationId, bucket, limit, cost }
  }

/** Cost of a request in units, at least 1. `body` is unvalidated, or undefined if it is not JSON. */
export type CostOf = (body: unknown) => number

/** Creates a cost function: one unit per item of the list `member`, at most `max`; 1 without a list. */
export const costOfItems =
  (member: string, max: number): CostOf =>
  (body) => {
    const items = isObject(body) ? body[member] : undefined
    return Array.isArray(items) ? Math.min(Math.max(items.length, 1), max) : 1
  }

/**
 * Creates a preParsing hook that reads the body, calls `charge` with its cost, and passes the body on unchanged and
 * unchecked. A body that is not JSON or is too large costs `costOf(undefined)`.
 */
export function chargeBody(
  costOf: CostOf,
  charge: (request: FastifyRequest, charge: Charge) => Promise<void>,
): preParsingAsyncHookHandler {
  return async (request, reply, payload) => {
    const { bodyLimit } = request.routeOptions
    const tooLarge = Number(request.headers['content-length']) > bodyLimit
    // Reads Content-Type exactly as the parser does: a body that the parser takes must not be cheaper here.
    if (request.mediaType !== 'application/json' || tooLarge) {
      await charge(request, { reply, cost: costOf(undefined) })
      return payload
    }
    const body = await readAll(payload, bodyLimit)
    // TextDecoder skips a byte order mark, as the body parser does.
    await charge(request, {
      reply,
      cost: costOf(body && parseJsonOrUndefined(new TextDecoder().decode(body))),
    })
    // The rest of the body stays unread, so the connection cannot be reused.
    if (!body) throw new ApiError('request.payload_too_large', { headers: { connection: 'close' } })
    return Readable.from([body])
  }
}

async function readAll(payload: RequestPayload, limit: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    // Destroying the request would also close the connection that carries the error response.
    for await (const chunk of payload.iterator({ destroyOnReturn: false })) {
      length += chunk.length
      if (length > limit) return undefined
      chunks.push(chunk)
    }
  } catch (cause) {
    throw new ApiError('request.malformed_body', { cause })
  }
  return Buffer.concat(chunks)
}
