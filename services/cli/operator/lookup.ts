import { ApiError } from '../../../infra/errors/errors.ts'
import { isId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { findKey, listKeys } from '../../../projections/organizations/key-queries.ts'
import { findOrganization, findOrganizationBySlug } from '../../../projections/organizations/queries.ts'
import type { ApiKeyRow, OrganizationRow } from '../../../projections/organizations/rows.ts'

/** The organization of an id or a slug. ApiError: 404, without what was given, which may be a key. */
export async function organizationOf(db: Db, idOrSlug: string): Promise<OrganizationRow> {
  const organization = isId('org', idOrSlug)
    ? await findOrganization(db, idOrSlug)
    : await findOrganizationBySlug(db, idOrSlug)
  if (organization) return organization
  const message = 'organization: no such id or slug; "tidegate org list" shows those there are.'
  throw new ApiError('request.not_found', { message, details: { fields: [missing('organization')] } })
}

/** A key of the organization. ApiError: 404. */
export async function keyOf(db: Db, organizationId: string, keyId: string): Promise<ApiKeyRow> {
  const key = isId('key', keyId) ? await findKey(db, organizationId, keyId) : undefined
  if (key) return key
  const message =
    'key: no such id (key_...) in this organization; "tidegate keys list" shows those there are.'
  throw new ApiError('request.not_found', { message, details: { fields: [missing('key')] } })
}

const missing = (name: string) => ({ name, issue: 'not_found' })

const pageSize = 200

/** All keys of the organization, newest first. */
export async function allKeys(db: Db, organizationId: string): Promise<ApiKeyRow[]> {
  const keys: ApiKeyRow[] = []
  for (;;) {
    const last = keys.at(-1)
    const after = last && { createdAt: last.created_at, id: last.id }
    const page = await listKeys(db, organizationId, { limit: pageSize, after })
    keys.push(...page.rows)
    if (!page.hasMore) return keys
  }
}
