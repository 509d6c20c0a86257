import { ddlOf, type Migrations } from '../../../infra/postgres/migrations.ts'
import type { Db, Tx } from '../../../infra/postgres/pool.ts'
import {
  column,
  insertInto,
  overwrite,
  primaryKey,
  type RowOf,
  table,
} from '../../../infra/postgres/table.ts'
import type { DataScope } from '../../../projections/sessions/scope.ts'
import type { Environment } from '../../../schemas/events.ts'
import { alerts } from './alert-store.ts'

// Views are not event-sourced, so that those that name an erased person can be deleted. Only a backup of the database
// restores them.
const views = table(
  'tidegate.views',
  {
    id: primaryKey(column.id()),
    organization_id: column.id(),
    environment: column.text<Environment>(),
    name: column.text(),
    /** Query string of the console's Sessions page. */
    query: column.text(),
    created_at: column.bigint(),
    updated_at: column.bigint(),
  },
  { indexes: ['(organization_id, environment)'] },
)
export type ViewRow = RowOf<typeof views>

export const viewMigrations: Migrations = {
  name: 'views',
  create: ddlOf(views, alerts),
  changes: [ddlOf(alerts)],
}

/** Returns the views, oldest first. */
export async function findViews(
  db: Db,
  { organizationId, environment }: DataScope,
): Promise<ViewRow[]> {
  const { rows } = await db.query<ViewRow>(
    `select ${views.select('v')} from tidegate.views v
     where v.organization_id = $1 and v.environment = $2 order by v.created_at, v.id`,
    [organizationId, environment],
  )
  return rows
}

export async function storeView(tx: Tx, view: ViewRow): Promise<void> {
  const conflict = overwrite(views)
  await tx.query(insertInto(views, { columns: views.columns, rows: [view], conflict }))
}

export async function deleteViews(tx: Tx, ids: string[]): Promise<void> {
  await tx.query('delete from tidegate.views where id = any($1)', [ids])
}

export async function purgeViewsOfDeleted(db: Db): Promise<void> {
  await db.query(
    `delete from tidegate.views v using read.organizations o
     where o.organization_id = v.organization_id and o.status = 'deleted'`,
  )
}
