import type { Db } from '../../infra/postgres/pool.ts'
import { type OrganizationRecord, organizationFields, organizationRow } from './records.ts'
import type { OrganizationRow } from './rows.ts'

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

async function one(db: Db, where: string, value: string): Promise<OrganizationRow | undefined> {
  const { rows } = await db.query<OrganizationRecord>(
    `select ${organizationFields('o')} from read.organizations o where ${where}
     order by o.created_at, o.organization_id limit 1`,
    [value],
  )
  return rows[0] && organizationRow(rows[0])
}
