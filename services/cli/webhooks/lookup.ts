import { ApiError } from '../../../infra/errors/errors.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { findEndpoints } from '../../../projections/webhooks/queries.ts'

interface Wanted {
  endpointId: string
  /** undefined = of any. */
  organizationId: string | undefined
}

/** That there is the endpoint, so that nobody takes an empty list for good news. ApiError: 404. */
export async function requireEndpoint(db: Db, { endpointId, organizationId }: Wanted): Promise<void> {
  const endpoint = (await findEndpoints(db, [endpointId])).get(endpointId)
  if (endpoint && (organizationId ?? endpoint.organization_id) === endpoint.organization_id) return
  const where = organizationId ? ' in this organization' : ''
  const details = { fields: [{ name: 'endpoint', issue: 'not_found' }] }
  throw new ApiError('request.not_found', { message: `endpoint: no such id${where}.`, details })
}
