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
import { parsedJson } from '../text.ts'
import { type Budget, overBudget } from './budget.ts'
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
   * Units in 60 seconds for organizations without limits of their own (default 600 and 3000), of requests that are
   * scored for every organization (12,000), and of each console session (600).
   */
  defaultLimits?: (Record<KeyType, number> & Partial<Record<BucketName, number>>) | undefined
  /**
   * With a key that anybody may read, each source has a budget of its own instead of a share of the organization's
   * bucket. Such a request costs one, and its answer has no X-RateLimit-* headers.
   */
  perSource?: ((principal: Principal) => Budget | undefined) | undefined
  onRateLimited?: ((callerType: Principal['type']) => void) | undefined
}

export interface Charge {
  reply: FastifyReply
  cost: number
  /** Default: that of the type of the key. */
  bucket?: BucketName | undefined
}

const standardLimits: Record<BucketName, number> = {
  secret: 600,
  publishable: 3000,
  requests: 12_000,
  person: 600,
}
// A bucket that has half of its units or more is not short, so nobody is refused any for the sake of others.
const short = 1 / 2
const windowMs = 60_000
const maxShared = 1000
const limitHeader = 'x-ratelimit-limit'
const remainingHeader = 'x-ratelimit-remaining'
const costHeader = 'x-ratelimit-cost'

export type Charges = ReturnType<typeof createCharges>

export function createCharges(options: ChargeOptions) {
  const { clock, limiter, perSource, onRateLimited } = options
  const requestOf = requestsOf({ ...standardLimits, ...options.defaultLimits })

  // Set on the reply and not on the error: a request that fails later has been charged too and has to say so.
  function announce(
    { admitted, limit, remaining, cost, retryAfterSeconds }: RateLimitResult,
    reply: FastifyReply,
    callerType: Principal['type'],
  ): void {
    reply.header(limitHeader, limit).header(remainingHeader, remaining).header(costHeader, cost)
    if (!admitted) refuse(callerType, overBudget(retryAfterSeconds))
  }

  function refuse(callerType: Principal['type'], error: ApiError): never {
    onRateLimited?.(callerType)
    throw error
  }

  const shares = createLru<OrganizationId, FairShare>(maxShared)
  function shareOf(organizationId: OrganizationId): FairShare {
    const share = shares.get(organizationId) ?? createFairShare({ clock, windowMs })
    shares.set(organizationId, share)
    return share
  }

  function refund(principal: Principal, reply: FastifyReply): void {
    const cost = Number(reply.getHeader(costHeader) ?? 0)
    if (cost > 0) limiter?.refund(requestOf(principal, { cost }))
    for (const name of [limitHeader, remainingHeader, costHeader]) reply.removeHeader(name)
  }

  return {
    /**
     * Throws 429 for a source that has had more than its share of a bucket that is short, while other sources send
     * requests as well. It costs no units, because a copied publishable key would else lock out whoever else has it. The
     * sources get twice of what is left in a minute, so that the bucket settles where it gains what it gives.
     */
    shareOut(principal: Principal, ip: string): void {
      if (!limiter || perSource?.(principal)) return
      const source = sourceOf(ip)
      const share = shareOf(principal.organizationId)
      const request = requestOf(principal, { cost: 1 })
      const left = limiter.remaining(request)
      const isShared = left < request.limit * short && !share.isOnly(source)
      if (!share.admits(source, isShared ? () => left / short : undefined))
        refuse(principal.type, overBudget())
    },
    /**
     * Throws 429 when there are not enough units. undefined where the answer is there at once: a promise for each
     * request would cost more than the decision.
     */
    charge(principal: Principal, { reply, ...units }: Charge): Promise<void> | undefined {
      if (!limiter) return undefined
      const ofSource = perSource?.(principal)
      if (ofSource) {
        if (!ofSource.spend(sourceOf(reply.request.ip))) refuse(principal.type, overBudget())
        return undefined
      }
      const result = limiter.consume(requestOf(principal, units))
      if (result instanceof Promise)
        return result.then((later) => announce(later, reply, principal.type))
      announce(result, reply, principal.type)
      return undefined
    },
    refund,
    /**
     * Charges `cost` units in place of those charged so far. All at once, so that `Retry-After` is for all of them;
     * no more than a full bucket holds, because a small limit would else refuse the request forever.
     */
    async recharge(principal: Principal, { reply, cost }: Omit<Charge, 'bucket'>): Promise<void> {
      if (!limiter || cost <= Number(reply.getHeader(costHeader) ?? 0)) return
      refund(principal, reply)
      const request = requestOf(principal, { cost })
      const result = await limiter.consume({ ...request, cost: Math.min(cost, request.limit) })
      announce(result, reply, principal.type)
    },
  }
}

const requestsOf =
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
    const own = bucket === principal.type ? principal.rateLimit : null
    return { owner: principal.organizationId, bucket, limit: own ?? defaultLimits[bucket], cost }
  }

/** Units of a request, at least 1, from its parsed body. undefined stands for a body that is no JSON. */
export type CostOf = (body: unknown) => number

/** A unit for each item of a list in the body, which is not validated yet: at least 1 and at most `most`; 1 without a list. */
export const costOfItems =
  (member: string, most: number): CostOf =>
  (body) => {
    const items = isObject(body) ? body[member] : undefined
    return Array.isArray(items) ? Math.min(Math.max(items.length, 1), most) : 1
  }

/**
 * preParsing hook. It reads the body, calls `charge` with its cost before anything checks the body, and passes it on
 * unchanged. A body that cannot be read as JSON, because of its type, size or content, costs `costOf(undefined)`.
 */
export function chargeBody(
  costOf: CostOf,
  charge: (request: FastifyRequest, charge: Charge) => Promise<void>,
): preParsingAsyncHookHandler {
  return async (request, reply, payload) => {
    const { bodyLimit } = request.routeOptions
    const tooLarge = Number(request.headers['content-length']) > bodyLimit
    // The same reading of Content-Type as the parser's: a body that it takes must not be cheaper here.
    if (request.mediaType !== 'application/json' || tooLarge) {
      await charge(request, { reply, cost: costOf(undefined) })
      return payload
    }
    const body = await readAll(payload, bodyLimit)
    // A byte order mark is skipped, as the body parser does it.
    await charge(request, {
      reply,
      cost: costOf(body && parsedJson(new TextDecoder().decode(body))),
    })
    // What is left of the body is not read, so nothing can follow on this connection.
    if (!body) throw new ApiError('request.payload_too_large', { headers: { connection: 'close' } })
    return Readable.from([body])
  }
}

async function readAll(payload: RequestPayload, limit: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    // Destroying the request would also end the connection that the refusal goes out on.
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
