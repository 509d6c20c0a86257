import type { Column, Cte } from '../../infra/postgres/arrays.ts'
import { unnest } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'

export const hourMs = 3_600_000

/** Fields that roll-ups count sessions by, each with the verdict. None identifies a person. */
export const rollUpFields = [
  ...(['country', 'asn', 'network', 'browser', 'os', 'page_host', 'key_id'] as const),
  ...(['agent_status', 'agent_provider', 'signal', 'attribution'] as const),
]
export type RollUpField = (typeof rollUpFields)[number]

/**
 * Hourly roll-ups: session counts of past hours. They are a cache and not projected from events: `roll-up.ts` computes
 * them in the background, and every change of a session deletes the roll-up of its hour in the same transaction. A row
 * with `sessions` null is being computed.
 *
 * A field has two arrays: entries, and the number of sessions of each. An entry is the first letter of the verdict,
 * then `=` and the value, `-` for sessions without a value, or `!` for those whose facts are deleted.
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

/** Returns SQL for the hour of a time. */
export const hourOf = (at: string): string => `(${at} - ${at} % ${hourMs})`

// Locks rows in key order, so that two transactions that delete the same hours cannot deadlock.
const deleteRollUpsSql = (changed: string): string =>
  `delete from session_hours where (organization_id, environment, hour) in (
    select h.organization_id, h.environment, h.hour from session_hours h
    where (h.organization_id, h.environment, h.hour) in (
      select organization_id, environment, ${hourOf('evaluated_at')} from ${changed}
    ) order by h.organization_id, h.environment, h.hour for update
  )`

export interface TimedSession {
  session_id: string
  organization_id: string
  environment: string
  evaluated_at: number
}

const timedColumns: Column<TimedSession>[] = [
  { name: 'session_id', type: 'text', of: (row) => row.session_id },
  { name: 'organization_id', type: 'text', of: (row) => row.organization_id },
  { name: 'environment', type: 'text', of: (row) => row.environment },
  { name: 'evaluated_at', type: 'bigint', of: (row) => row.evaluated_at },
]

/** Deletes the roll-ups of the sessions' hours, old and new, in the statement that writes the sessions. */
export function deleteRollUpsCte(sessions: TimedSession[]): Cte {
  return {
    as: 'delete_hours',
    at: (first) => {
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
