import type { OrganizationStatus } from '../../projections/organizations/tables.ts'
import { changeOrganization } from '../../services/organizations/commands.ts'
import { decideOrganizationUpdate } from '../../services/organizations/decide-organization.ts'

/** Sets the organization's status like an operator. */
export function setStatus(
  deps: Parameters<typeof changeOrganization>[0],
  organizationId: string,
  status: OrganizationStatus,
): Promise<void> {
  return changeOrganization(deps, organizationId, (organization, change) =>
    decideOrganizationUpdate(organization, { by: 'operator', status, ...change }),
  )
}
