// Gate's fixed-window rate limits, counted in tidegate.gate_limits. A window starts with its first request.

import { createHash } from 'node:crypto'
import type pg from 'pg'
import { ApiError } from '../../infra/errors/errors.ts'
import { sessionTtlMs } from './sessions.ts'

const minute = 60
// Also the maximum Retry-After, because no session lives longer.
const sessionTtl = sessionTtlMs / 1000

// `points`: requests allowed per key in a window of `seconds`.
const rules = {
  create_session: { points: 5, seconds: minute },
  poll: { points: 30, seconds: minute },
  consent: { points: 30, seconds: minute },
  /** Per IP address and session. A minute longer than a session lasts, to allow for clock skew. */
  approve: { points: 3, seconds: sessionTtl + minute },
  /** Per IP address and pending session. High, because a closing page sends this request, too. */
  cancel: { points: 60, seconds: minute },
  ack: { points: 20, seconds: minute },
  claim: { points: 20, seconds: minute },
  /** Per IP address. */
  erase: { points: 10, seconds: minute },
  create_login: { points: 10, seconds: minute },
  verify: { points: 60, seconds: minute },
  revoke: { points: 20, seconds: minute },
  /** Per service, because each request makes this server call third parties. */
  verify_domain: { points: 30, seconds: minute },
  consume: { points: 30, seconds: minute },
} as const

export type GateLimits = ReturnType<typeof createGateLimits>

const now = '(extract(epoch from statement_timestamp()) * 1000)::bigint'
// A request over the limit never extends the window.
const countRequest = `
insert into tidegate.gate_limits as counted (key, points, expire) values ($1, 1, ${now} + $2)
on conflict (key) do update set
  points = case when counted.expire <= ${now} then 1 else counted.points + 1 end,
  expire = case when counted.expire <= ${now} then excluded.expire else counted.expire end
returning points as count, (expire - ${now})::float8 as "endsInMs"`

export function createGateLimits(pool: pg.Pool) {
  return {
    /**
     * Counts the request, and throws 429 `gate.rate_limit` over the limit. Fails closed: rejects if the database is
     * unavailable.
     */
    async enforce(limit: keyof typeof rules, ...key: [string, ...string[]]): Promise<void> {
      // Hashed, because some keys are tokens or codes.
      const id = createHash('sha256').update(key.join('\0')).digest('base64url')
      const { points, seconds } = rules[limit]
      const values = [`${limit}:${id}`, seconds * 1000]
      const query = { name: 'gate-limit', text: countRequest, values }
      const { rows } = await pool.query<{ count: number; endsInMs: number }>(query)
      const [window] = rows
      if (!window || window.count <= points) return
      const wait = Math.min(Math.max(1, Math.ceil(window.endsInMs / 1000)), sessionTtl)
      throw new ApiError('gate.rate_limit', { headers: { 'retry-after': String(wait) } })
    },
  }
}
