import { createHash } from 'node:crypto'
import type pg from 'pg'
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import { ApiError } from '../../infra/http/errors.ts'

const minute = 60
/** Longer than any session lives: nobody gets another three attempts at the same one. */
const total = 24 * 60 * minute

/** service.md 8.2: so many requests in so many seconds, for each key. */
const rules = {
  /** By IP address. */
  create_session: { points: 5, seconds: minute },
  /** By poll token. */
  poll: { points: 30, seconds: minute },
  /** By IP address. */
  consent: { points: 30, seconds: minute },
  /** By IP address and session. */
  approve: { points: 3, seconds: total },
  /** By poll token. */
  ack: { points: 20, seconds: minute },
  /** By agent token. */
  create_login: { points: 10, seconds: minute },
  /** By organization and token. */
  verify: { points: 60, seconds: minute },
  /** By organization and token. */
  revoke: { points: 20, seconds: minute },
  /** By organization and login code. */
  consume: { points: 30, seconds: minute },
} as const
export type GateLimit = keyof typeof rules

/** Gate's own limits, one count for all processes. */
export interface GateLimits {
  /** Counts a request; 429 gate.rate_limit when it is one too many. A refused request does not lengthen the wait. */
  take(limit: GateLimit, ...key: [string, ...string[]]): Promise<void>
}

/** Needs the tables of `createGateTables`. */
export function createGateLimits(pool: pg.Pool): GateLimits {
  const limiters = new Map(
    Object.entries(rules).map(([name, { points, seconds }]) => [
      name,
      new RateLimiterPostgres({
        storeClient: pool,
        storeType: 'pool',
        schemaName: 'tidegate',
        tableName: 'gate_limits',
        tableCreated: true,
        keyPrefix: name,
        points,
        duration: seconds,
      }),
    ]),
  )
  return {
    async take(limit, ...key) {
      // Hashed: tokens and codes are among the keys.
      const id = createHash('sha256').update(key.join('\0')).digest('base64url')
      try {
        await limiters.get(limit)?.consume(id)
      } catch (error) {
        if (error instanceof RateLimiterRes) throw exceeded(error)
        throw error
      }
    },
  }
}

function exceeded({ msBeforeNext }: RateLimiterRes): ApiError {
  const seconds = Math.max(1, Math.ceil(msBeforeNext / 1000))
  return new ApiError('gate.rate_limit', { headers: { 'retry-after': String(seconds) } })
}
