import { createHash } from 'node:crypto'
import type pg from 'pg'
import { RateLimiterPostgres, RateLimiterRes } from 'rate-limiter-flexible'
import { ApiError } from '../../infra/errors/errors.ts'
import { sessionTtlMs } from './sessions.ts'

const minute = 60
// No session lives longer, so nobody has to wait longer.
const sessionTtl = sessionTtlMs / 1000

/** Requests in a time from the first one on, per key. From service.md 8.2, but for `cancel`. */
const rules = {
  create_session: { points: 5, seconds: minute },
  poll: { points: 30, seconds: minute },
  consent: { points: 30, seconds: minute },
  /** By IP address and session. A minute longer than a session: the clocks of processes differ. */
  approve: { points: 3, seconds: sessionTtl + minute },
  /** By IP address, of pending sessions. High, because a page that is being closed sends it, too. */
  cancel: { points: 60, seconds: minute },
  ack: { points: 20, seconds: minute },
  create_login: { points: 10, seconds: minute },
  verify: { points: 60, seconds: minute },
  revoke: { points: 20, seconds: minute },
  consume: { points: 30, seconds: minute },
} as const
export type GateLimit = keyof typeof rules

export interface GateLimits {
  /**
   * Counts a request. ApiError 429 gate.rate_limit when it is one too many; refused requests do not count. Rejects
   * when the database does not answer: nothing is let through uncounted.
   */
  count(limit: GateLimit, ...key: [string, ...string[]]): Promise<void>
}

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
