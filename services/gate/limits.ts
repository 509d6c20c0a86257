import { createHash } from 'node:crypto'
import type pg from 'pg'
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import { ApiError } from '../../infra/errors/errors.ts'
import { sessionTtlMs } from './sessions.ts'

const minute = 60
/** As long as any session lives, in seconds: after that there is nothing left to wait for. */
const sessionTtl = sessionTtlMs / 1000

/** service.md 8.2, and one of our own: so many requests in so many seconds from the first on, for each key. */
const rules = {
  /** By IP address. */
  create_session: { points: 5, seconds: minute },
  /** By poll token. */
  poll: { points: 30, seconds: minute },
  /** By IP address. */
  consent: { points: 30, seconds: minute },
  /** By IP address and session. In all: the first attempt comes after the session began, and clocks may differ. */
  approve: { points: 3, seconds: sessionTtl + minute },
  /**
   * By IP address, of sessions that are pending. Not in service.md, and more than people behind one address need: the
   * page says so, too, when it is being closed.
   */
  cancel: { points: 60, seconds: minute },
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
  /**
   * Counts a request; 429 gate.rate_limit when it is one too many. A refused request does not lengthen the wait.
   * Rejects when the database does not answer: nothing is let through uncounted.
   */
  count(limit: GateLimit, ...key: [string, ...string[]]): Promise<void>
}

/** Needs the tables of `createGateTables`. */
export function createGateLimits(pool: pg.Pool): GateLimits {
  const limiters = createLimiters(pool)
  return {
    async count(limit, ...key) {
      // Hashed: tokens and codes are among the keys.
      const id = createHash('sha256').update(key.join('\0')).digest('base64url')
      try {
        await limiters[limit].consume(id)
      } catch (error) {
        if (error instanceof RateLimiterRes) throw exceeded(error)
        throw error
      }
    },
  }
}

function createLimiters(pool: pg.Pool): Record<GateLimit, RateLimiterPostgres> {
  const limiter = (keyPrefix: GateLimit) =>
    new RateLimiterPostgres({
      storeClient: pool,
      storeType: 'pool',
      schemaName: 'tidegate',
      tableName: 'gate_limits',
      tableCreated: true,
      // Windows that are over are deleted with all else that is.
      clearExpiredByTimeout: false,
      keyPrefix,
      points: rules[keyPrefix].points,
      duration: rules[keyPrefix].seconds,
    })
  return {
    create_session: limiter('create_session'),
    poll: limiter('poll'),
    consent: limiter('consent'),
    approve: limiter('approve'),
    cancel: limiter('cancel'),
    ack: limiter('ack'),
    create_login: limiter('create_login'),
    verify: limiter('verify'),
    revoke: limiter('revoke'),
    consume: limiter('consume'),
  }
}

function exceeded({ msBeforeNext }: RateLimiterRes): ApiError {
  const seconds = Math.min(Math.max(1, Math.ceil(msBeforeNext / 1000)), sessionTtl)
  return new ApiError('gate.rate_limit', { headers: { 'retry-after': String(seconds) } })
}
