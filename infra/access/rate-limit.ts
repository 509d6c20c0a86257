import type { FastifyReply } from 'fastify'
import type { KeyType } from '../../schemas/events.ts'
import { ApiError } from '../errors/errors.ts'
import type { Principal } from './principal.ts'
import type { RateLimiter, Taken, TakeRequest } from './rate-limit/limiter.ts'
import type { SourceBudget } from './source-budget.ts'

export interface UnitOptions {
  /** Without one there are neither limits nor headers. */
  limiter?: RateLimiter | undefined
  /** Units in 60 seconds for organizations without limits of their own (default 600 and 3000). */
  defaultLimits?: Record<KeyType, number> | undefined
  /**
   * What each source has of its own with this key, instead of a share of the organization's bucket: for keys that
   * anybody may read. Such a request costs one, and its answer has no X-RateLimit-* headers.
   */
  perSource?: ((principal: Principal) => SourceBudget | undefined) | undefined
  /** Called for each request that is refused. */
  onRateLimited?: ((keyType: KeyType) => void) | undefined
}

export interface Charge {
  reply: FastifyReply
  /** Units, at least 1. */
  cost: number
}

const standardLimits: Record<KeyType, number> = { secret: 600, publishable: 3000 }
/** A source has the next unit within this time, as what is refused costs it nothing. */
const sourceRetrySeconds = 1
const limitHeader = 'x-ratelimit-limit'
const remainingHeader = 'x-ratelimit-remaining'
const costHeader = 'x-ratelimit-cost'

/** Takes units for requests and says so in their answers. */
export function createUnits(options: UnitOptions) {
  const { limiter, defaultLimits = standardLimits, perSource, onRateLimited } = options

  const requestOf = ({ organizationId, type, rateLimit }: Principal, cost: number): TakeRequest => ({
    organizationId,
    keyType: type,
    limit: rateLimit ?? defaultLimits[type],
    cost,
  })

  // Set on the reply and not on the error: what fails later has been paid for too and has to say so.
  function tell(taken: Taken, { reply, keyType }: { reply: FastifyReply; keyType: KeyType }): void {
    reply
      .header(limitHeader, taken.limit)
      .header(remainingHeader, taken.remaining)
      .header(costHeader, taken.cost)
    if (!taken.admitted) refuse(keyType, taken.retryAfterSeconds)
  }

  function refuse(keyType: KeyType, retryAfterSeconds: number): never {
    onRateLimited?.(keyType)
    throw new ApiError('rate_limit.exceeded', { headers: { 'retry-after': String(retryAfterSeconds) } })
  }

  return {
    /**
     * Takes the units, or throws 429 when there are not enough. undefined where the answer was there at once: a
     * promise for each request would cost more than the decision.
     */
    take(principal: Principal, { reply, cost }: Charge): Promise<void> | undefined {
      if (!limiter) return undefined
      const ofSource = perSource?.(principal)
      if (ofSource) {
        if (!ofSource.spend(reply.request.ip)) refuse(principal.type, sourceRetrySeconds)
        return undefined
      }
      const told = { reply, keyType: principal.type }
      const taken = limiter.take(requestOf(principal, cost))
      if (taken instanceof Promise) return taken.then((later) => tell(later, told))
      tell(taken, told)
      return undefined
    },
    /** Gives back what the request has taken, if it has, and removes the headers. */
    refund(principal: Principal, reply: FastifyReply): void {
      const cost = Number(reply.getHeader(costHeader) ?? 0)
      if (cost > 0) limiter?.refund(requestOf(principal, cost))
      for (const name of [limitHeader, remainingHeader, costHeader]) reply.removeHeader(name)
    },
  }
}
