import type { Db, Tx } from '../../../infra/postgres/pool.ts'
import {
  column,
  constrained,
  insertInto,
  nullable,
  overwrite,
  primaryKey,
  type RowOf,
  table,
} from '../../../infra/postgres/table.ts'
import type { DataScope } from '../../../projections/sessions/scope.ts'
import type { Environment } from '../../../schemas/events.ts'

export const alertKinds = ['count', 'share', 'multiple'] as const

/** `quiet_checks` counts the checks in a row that were below the threshold. */
export type AlertState =
  | { status: 'quiet'; opened_at: number | null; closed_at: number | null }
  | { status: 'open'; opened_at: number; closed_at: null; quiet_checks: number }

/** Alerts. A view's alerts are deleted with it. Times are epoch milliseconds. */
export const alerts = table(
  'tidegate.alerts',
  {
    id: primaryKey(column.id()),
    organization_id: column.id(),
    environment: column.text<Environment>(),
    view_id: constrained(column.id(), 'references tidegate.views (id) on delete cascade'),
    kind: column.text<(typeof alertKinds)[number]>(),
    threshold: column.json<number>(),
    window_minutes: column.integer(),
    created_at: column.bigint(),
    updated_at: column.bigint(),
    state: column.json<AlertState>(),
    /** False until the webhook event of a change of status is raised. */
    is_announced: column.boolean(),
    last_value: nullable(column.json<number>()),
    last_checked_at: nullable(column.bigint()),
  },
  { indexes: ['(organization_id, environment)', '(view_id)'] },
)
export type AlertRow = RowOf<typeof alerts>

/** Returns the members that a person chooses, and the id. */
export const settingsOf = ({ id, view_id, kind, threshold, window_minutes }: AlertRow) => ({
  id,
  view_id,
  kind,
  threshold,
  window_minutes,
})

export const newAlert = (
  { organizationId: organization_id, environment }: DataScope,
  { now, ...settings }: ReturnType<typeof settingsOf> & { now: number },
): AlertRow => ({
  ...settings,
  organization_id,
  environment,
  created_at: now,
  updated_at: now,
  state: { status: 'quiet', opened_at: null, closed_at: null },
  is_announced: true,
  last_value: null,
  last_checked_at: null,
})

export interface AlertEdit {
  type: 'AlertSaved' | 'AlertDeleted'
  alert: AlertRow
}

/** Returns the alerts, oldest first. */
export async function findAlerts(
  db: Db,
  { organizationId, environment }: DataScope,
): Promise<AlertRow[]> {
  const { rows } = await db.query<AlertRow>(
    `select ${alerts.select('a')} from tidegate.alerts a
     where a.organization_id = $1 and a.environment = $2 order by a.created_at, a.id`,
    [organizationId, environment],
  )
  return rows
}

/** Writes a person's edit. Leaves the state as it is, which a check may be changing. */
export async function storeAlertEdit(tx: Tx, { type, alert }: AlertEdit): Promise<void> {
  if (type === 'AlertDeleted')
    await tx.query('delete from tidegate.alerts where id = $1', [alert.id])
  else {
    const columns = alerts.columnsOf('id', 'kind', 'threshold', 'window_minutes', 'updated_at')
    const conflict = overwrite({ key: alerts.key, columns })
    await tx.query(insertInto(alerts, { columns: alerts.columns, rows: [alert], conflict }))
  }
}

export type DueAlert = AlertRow & { query: string }

/**
 * Returns the alerts that were not checked within `recheckMs`, with the query of their view: first one of each
 * environment, so that an environment with many slow alerts doesn't delay the others.
 */
export async function findDueAlerts(
  db: Db,
  { now, recheckMs, limit }: { now: number; recheckMs: number; limit: number },
): Promise<DueAlert[]> {
  const { rows } = await db.query<DueAlert>(
    `select ${alerts.select('a')}, v.query from tidegate.alerts a
     join tidegate.views v on v.id = a.view_id
     -- A check in the future was made by a clock that was ahead.
     where coalesce(a.last_checked_at, 0) not between $1 and $2
     order by row_number() over (
       partition by a.organization_id, a.environment order by a.last_checked_at nulls first, a.id
     ), a.last_checked_at nulls first, a.id limit $3`,
    [now - recheckMs + 1, now, limit],
  )
  return rows
}

type CheckResult = Pick<AlertRow, 'state' | 'is_announced' | 'last_value' | 'last_checked_at'>

/** Returns false if the alert is gone, or another process has checked it. */
export async function storeCheck(db: Db, alert: AlertRow, result: CheckResult): Promise<boolean> {
  const { state, is_announced, last_value, last_checked_at } = result
  const { rowCount } = await db.query(
    `update tidegate.alerts set state = $3, is_announced = $4, last_value = $5, last_checked_at = $6
     where id = $1 and last_checked_at is not distinct from $2`,
    [
      alert.id,
      alert.last_checked_at,
      JSON.stringify(state),
      is_announced,
      last_value,
      last_checked_at,
    ],
  )
  return rowCount === 1
}
