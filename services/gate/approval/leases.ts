import type { GateSessionId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'

export interface LeasesOptions {
  pool: Db
  /** Who takes them; no other process has the same. */
  holder: string
  leaseMs: number
}

/**
 * Who works on which approval, so that a service is not asked by two processes at once. Nothing is wrong when it is: the
 * session's end is decided once. Times are of the database's clock, which is one for all.
 */
export interface Leases {
  /** Whether nobody worked on it; then it is this holder's from now on. */
  take(gateSessionId: GateSessionId): Promise<boolean>
  /** Whether it still is this holder's. */
  renew(gateSessionId: GateSessionId): Promise<boolean>
  release(gateSessionId: GateSessionId): Promise<void>
  releaseAll(): Promise<void>
}

const now = '(extract(epoch from clock_timestamp()) * 1000)::bigint'

export function createLeases({ pool, holder, leaseMs }: LeasesOptions): Leases {
  return {
    async take(gateSessionId) {
      const { rowCount } = await pool.query(
        `insert into tidegate.gate_leases as l values ($1, $2, ${now} + $3)
         on conflict (gate_session_id) do update set holder = excluded.holder, leased_until = excluded.leased_until
         where l.leased_until <= ${now}`,
        [gateSessionId, holder, leaseMs],
      )
      return rowCount === 1
    },
    async renew(gateSessionId) {
      const { rowCount } = await pool.query(
        `update tidegate.gate_leases set leased_until = ${now} + $3 where gate_session_id = $1 and holder = $2`,
        [gateSessionId, holder, leaseMs],
      )
      return rowCount === 1
    },
    async release(gateSessionId) {
      await pool.query('delete from tidegate.gate_leases where gate_session_id = $1 and holder = $2', [
        gateSessionId,
        holder,
      ])
    },
    async releaseAll() {
      await pool.query('delete from tidegate.gate_leases where holder = $1', [holder])
    },
  }
}
