import { asId } from '../../infra/ids.ts'
import type { OrganizationRow } from '../../projections/organizations/tables.ts'

export const organizationId = asId('org', `org_${'1'.repeat(26)}`)

/** An active organization. */
export const organization: OrganizationRow = {
  id: organizationId,
  name: 'Acme',
  slug: 'acme',
  status: 'active',
  secret_limit: null,
  publishable_limit: null,
  max_key_days: null,
  capabilities: [],
  created_at: 1,
  updated_at: 1,
}
