import { ApiError } from '../../../infra/errors/errors.ts'
import type { ServiceScope } from '../../../projections/gate/queries.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import type { OrganizationRow } from '../../../projections/organizations/tables.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import { type FieldRules, refused } from './fields/refused.ts'

/** Names one service, as one key sees it. */
export interface ServicePath extends ServiceScope {
  serviceId: string
}

/** What a decision about one service is made from. */
export interface ServiceState {
  organization: OrganizationRow | undefined
  /** Whoever owns it. */
  service: GateServiceRow | undefined
}

/** The same for an id that is malformed, unknown, or of others: nobody learns which. */
export function noSuchService(): ApiError {
  return new ApiError('request.not_found', {
    message: 'No Gate service with this id exists in this organization and environment.',
  })
}

/** The service, active or disabled, if it is of that organization and environment; else 404. */
export function serviceFor(
  service: GateServiceRow | undefined,
  { organizationId, environment }: ServiceScope,
): GateServiceRow {
  if (service?.organization_id === organizationId && service.environment === environment) return service
  throw noSuchService()
}

/** 422 unless the endpoint, looked up as the service's owner sees it, is told of approvals. */
export function refuseDeafEndpoint(
  endpoint: EndpointRow | undefined,
  { parameterSet }: Pick<FieldRules, 'parameterSet'>,
): void {
  if (endpoint?.status === 'active' && endpoint.event_types.includes('gate.session.approved')) return
  const expected =
    'an active webhook endpoint of this organization and environment that is subscribed to gate.session.approved'
  throw refused({ field: 'webhook_endpoint_id', parameterSet }, { issue: 'invalid', expected })
}
