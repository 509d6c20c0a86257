import type { Db } from '../../infra/postgres/pool.ts'
import { type OrganizationRecord, organizationFields, organizationRow } from './records.ts'
import type { OrganizationRow, OrganizationStatus } from './rows.ts'

export async function findOrganization(db: Db, organizationId: string): Promise<OrganizationRow | undefined> {
  return one(db, 'o.organization_id = $1', organizationId)
}

export async function findOrganizationBySlug(db: Db, slug: string): Promise<OrganizationRow | undefined> {
  return one(db, 'o.slug = $1', slug)
}

/** All organizations, newest first. */
export async function listOrganizations(db: Db): Promise<OrganizationRow[]> {
  const { rows } = await db.query<OrganizationRecord>(
    `select ${organizationFields('o')} from read.organizations o order by o.created_at desc, o.organization_id desc`,
  )
  return rows.map(organizationRow)
}

/** The statuses of the organizations that exist among the ids. */
export async function organizationStatuses(
  db: Db,
  organizationIds: string[],
): Promise<Map<string, OrganizationStatus>> {
  const { rows } = await db.query<{ id: string; status: OrganizationStatus }>({
    name: 'organization-statuses',
    text: `select organization_id as id, status from read.organizations where organization_id = any($1)`,
    values: [organizationIds],
  })
  return new Map(rows.map(({ id, status }) => [id, status]))
}

async function one(db: Db, where: string, value: string): Promise<OrganizationRow | undefined> {
  const { rows } = await db.query<OrganizationRecord>(
    `select ${organizationFields('o')} from read.organizations o where ${where}
     order by o.created_at, o.organization_id limit 1`,
    [value],
  )
  return rows[0] && organizationRow(rows[0])
}
