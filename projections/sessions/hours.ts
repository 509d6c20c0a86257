import type { Column, Part } from '../../infra/postgres/arrays.ts'
import { unnest } from '../../infra/postgres/arrays.ts'
import type { Tx } from '../../infra/postgres/pool.ts'

export const hourMs = 3_600_000

/** What sessions of an hour are counted by, each by verdict. No field names a person. */
export const rolledFields = [
  ...(['country', 'asn', 'network', 'browser', 'os', 'page_host', 'key_id'] as const),
  ...(['agent_status', 'agent_provider', 'signal', 'attribution'] as const),
]
export type RolledField = (typeof rolledFields)[number]

/**
 * Roll-ups of hours that are over. No event makes them: `roll-up.ts` counts an hour beside those who apply events, and
 * whoever changes a session deletes those of its hours in the same transaction. A row whose `sessions` is null is of
 * an hour that is being counted.
 *
 * A field has two arrays: for each verdict and value an entry, and how many sessions have it. An entry is the first
 * letter of the verdict, then `=` and the value, or `-` for sessions without one, or `!` for those whose facts have ended.
 */
export const sessionHours = {
  name: 'session_hours',
  ddl: `create table session_hours (
  organization_id text collate "C" not null,
  environment text not null,
  hour bigint not null,
  sessions integer,
  ${rolledFields.map((field) => `${field} text[],\n  ${field}_sessions integer[]`).join(',\n  ')},
  primary key (organization_id, environment, hour)
);
`,
}

/** SQL: the hour of a time. */
export const hourOf = (at: string): string => `(${at} - ${at} % ${hourMs})`

// Rows are locked in the order of their key, so that two who delete the same hours cannot deadlock.
const deleteHoursOf = (changed: string): string =>
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

const changedColumns: Column<TimedSession>[] = [
  { name: 'session_id', type: 'text', of: (row) => row.session_id },
  { name: 'organization_id', type: 'text', of: (row) => row.organization_id },
  { name: 'environment', type: 'text', of: (row) => row.environment },
  { name: 'evaluated_at', type: 'bigint', of: (row) => row.evaluated_at },
]

/** In the statement that decides the sessions: deletes the roll-ups of the hours that they are in, and were in before. */
export function deleteHours(decided: TimedSession[]): Part {
  return {
    as: 'delete_hours',
    at: (first) => {
      const { names, source, values } = unnest(changedColumns, decided, first)
      const known = `select s.organization_id, s.environment, s.evaluated_at from sessions s join fresh using (session_id)`
      const changed = `(with fresh as (select * from ${source} as f (${names}))
        select organization_id, environment, evaluated_at from fresh union all ${known}) as changed`
      return { text: deleteHoursOf(changed), values }
    },
  }
}

/** Of sessions that are gone, or were changed otherwise. */
export async function deleteHoursOfRows(tx: Tx, rows: TimedSession[]): Promise<void> {
  if (rows.length === 0) return
  const { names, source, values } = unnest(changedColumns, rows)
  await tx.query(deleteHoursOf(`${source} as changed (${names})`), values)
}

/** SQL: what a changing statement returns for it. */
export const changedSession = (alias: string): string =>
  `${alias}.session_id, ${alias}.organization_id, ${alias}.environment, ${alias}.evaluated_at::float8 as evaluated_at`
