import { createHash } from 'node:crypto'
import type pg from 'pg'
import { ApiError } from '../../infra/errors/errors.ts'
import { sessionTtlMs } from './sessions.ts'

const minute = 60
// No session lives longer, so nobody has to wait longer.
const sessionTtl = sessionTtlMs / 1000

// Requests in a time from the first one on, per key. From service.md 8.2, but for `cancel`, `claim` and `erase`.
const rules = {
  create_session: { points: 5, seconds: minute },
  poll: { points: 30, seconds: minute },
  consent: { points: 30, seconds: minute },
  /** By IP address and session. A minute longer than a session: the clocks of processes differ. */
  approve: { points: 3, seconds: sessionTtl + minute },
  /** By IP address, of pending sessions. High, because a page that is being closed sends it, too. */
  cancel: { points: 60, seconds: minute },
  ack: { points: 20, seconds: minute },
  claim: { points: 20, seconds: minute },
  /** By IP address. */
  erase: { points: 10, seconds: minute },
  create_login: { points: 10, seconds: minute },
  verify: { points: 60, seconds: minute },
  revoke: { points: 20, seconds: minute },
  /** By service: each has this server ask strangers. */
  verify_domain: { points: 30, seconds: minute },
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

interface Window {
  count: number
  endsInMs: number
}

// A window begins with its first request and does not move: what is refused in it makes nobody wait for longer.
const now = '(extract(epoch from statement_timestamp()) * 1000)::bigint'
const countOne = `
insert into tidegate.gate_limits as known (key, points, expire) values ($1, 1, ${now} + $2)
on conflict (key) do update set
  points = case when known.expire <= ${now} then 1 else known.points + 1 end,
  expire = case when known.expire <= ${now} then excluded.expire else known.expire end
returning points as count, (expire - ${now})::float8 as "endsInMs"`

export function createGateLimits(pool: pg.Pool): GateLimits {
  return {
    async count(limit, ...key) {
      // Hashed: tokens and codes are among the keys.
      const id = createHash('sha256').update(key.join('\0')).digest('base64url')
      const { points, seconds } = rules[limit]
      const values = [`${limit}:${id}`, seconds * 1000]
      const { rows } = await pool.query<Window>({ name: 'gate-limit', text: countOne, values })
      const [window] = rows
      if (window && window.count > points) throw exceeded(window)
    },
  }
}

function exceeded({ endsInMs }: Window): ApiError {
  const seconds = Math.min(Math.max(1, Math.ceil(endsInMs / 1000)), sessionTtl)
  return new ApiError('gate.rate_limit', { headers: { 'retry-after': String(seconds) } })
}
