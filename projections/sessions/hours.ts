import type { Column, Cte } from '../../infra/postgres/arrays.ts'
import { unnest } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'

export const hourMs = 3_600_000

/** Fields by which roll-ups count sessions, each together with the verdict. */
export const rollUpFields = [
  ...(['country', 'asn', 'network', 'browser', 'os', 'page_host', 'page_path', 'key_id'] as const),
  ...(['agent_status', 'agent_provider', 'signal', 'attribution'] as const),
]
export type RollUpField = (typeof rollUpFields)[number]

/**
 * Hourly roll-ups: cached session counts of past hours. `roll-up.ts` computes them in the background, and every change
 * of a session deletes the roll-up of its hour in the same transaction. While a roll-up is computed, `sessions` is
 * null.
 *
 * Each field has two arrays: entries, and their numbers of sessions. An entry is the first letter of the verdict,
 * followed by `=` and the value, by `-` for no value, or by `!` for sessions whose facts have expired.
 */
export const sessionHours = {
  name: 'session_hours',
  ddl: `create table session_hours (
  organization_id text collate "C" not null,
  environment text not null,
  hour bigint not null,
  sessions integer,
  ${rollUpFields.map((field) => `${field} text[],\n  ${field}_sessions integer[]`).join(',\n  ')},
  primary key (organization_id, environment, hour)
);
`,
}

/** Returns SQL for the start of the hour, in epoch milliseconds. */
export const hourStartSql = (at: string): string => `(${at} - ${at} % ${hourMs})`

// Locks rows in key order, so that concurrent deletes of the same hours cannot deadlock.
const deleteRollUpsSql = (changed: string): string =>
  `delete from session_hours where (organization_id, environment, hour) in (
    select h.organization_id, h.environment, h.hour from session_hours h
    where (h.organization_id, h.environment, h.hour) in (
      select organization_id, environment, ${hourStartSql('evaluated_at')} from ${changed}
    ) order by h.organization_id, h.environment, h.hour for update
  )`

export interface TimedSession {
  session_id: string
  organization_id: string
  environment: string
  evaluated_at: number
}

const timedColumns: Column<TimedSession>[] = [
  { name: 'session_id', type: 'text', encode: (row) => row.session_id },
  { name: 'organization_id', type: 'text', encode: (row) => row.organization_id },
  { name: 'environment', type: 'text', encode: (row) => row.environment },
  { name: 'evaluated_at', type: 'bigint', encode: (row) => row.evaluated_at },
]

/** Returns a CTE, for the statement that writes the sessions, that deletes the roll-ups of their old and new hours. */
export function deleteRollUpsCte(sessions: TimedSession[]): Cte {
  return {
    as: 'delete_hours',
    sql: (first) => {
      const { names, source, values } = unnest(timedColumns, sessions, first)
      const stored = `select s.organization_id, s.environment, s.evaluated_at from sessions s join fresh using (session_id)`
      const changed = `(with fresh as (select * from ${source} as f (${names}))
        select organization_id, environment, evaluated_at from fresh union all ${stored}) as changed`
      return { text: deleteRollUpsSql(changed), values }
    },
  }
}

/** Deletes the roll-ups of deleted or changed sessions. */
export async function deleteRollUps(tx: Tx, rows: TimedSession[]): Promise<void> {
  if (rows.length === 0) return
  const { names, source, values } = unnest(timedColumns, rows)
  await tx.query(deleteRollUpsSql(`${source} as changed (${names})`), values)
}

/** Returns SQL for the columns of a `TimedSession`. */
export const timedSessionSql = (alias: string): string =>
  `${alias}.session_id, ${alias}.organization_id, ${alias}.environment, ${alias}.evaluated_at::float8 as evaluated_at`
