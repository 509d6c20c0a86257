import { createHash } from 'node:crypto'
import type pg from 'pg'
import { ApiError } from '../../infra/errors/errors.ts'
import { sessionTtlMs } from './sessions.ts'

const minute = 60
// No session lives longer, so nobody has to wait longer.
const sessionTtl = sessionTtlMs / 1000

// At most so many `points`, which are requests of a key, in so many seconds from the first one on.
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
  /** By service, because each of them makes this server ask strangers. */
  verify_domain: { points: 30, seconds: minute },
  consume: { points: 30, seconds: minute },
} as const

export type GateLimits = ReturnType<typeof createGateLimits>

// A window begins with its first request and does not move, so a refused request makes nobody wait for longer.
const now = '(extract(epoch from statement_timestamp()) * 1000)::bigint'
const countOne = `
insert into tidegate.gate_limits as known (key, points, expire) values ($1, 1, ${now} + $2)
on conflict (key) do update set
  points = case when known.expire <= ${now} then 1 else known.points + 1 end,
  expire = case when known.expire <= ${now} then excluded.expire else known.expire end
returning points as count, (expire - ${now})::float8 as "endsInMs"`

export function createGateLimits(pool: pg.Pool) {
  return {
    /**
     * Counts a request. ApiError 429 gate.rate_limit when it is one too many; refused requests do not count. Rejects
     * when the database does not answer, so that nothing is let through uncounted.
     */
    async count(limit: keyof typeof rules, ...key: [string, ...string[]]): Promise<void> {
      // Tokens and codes are among the keys, so they are hashed.
      const id = createHash('sha256').update(key.join('\0')).digest('base64url')
      const { points, seconds } = rules[limit]
      const values = [`${limit}:${id}`, seconds * 1000]
      const query = { name: 'gate-limit', text: countOne, values }
      const { rows } = await pool.query<{ count: number; endsInMs: number }>(query)
      const [window] = rows
      if (!window || window.count <= points) return
      const wait = Math.min(Math.max(1, Math.ceil(window.endsInMs / 1000)), sessionTtl)
      throw new ApiError('gate.rate_limit', { headers: { 'retry-after': String(wait) } })
    },
  }
}
