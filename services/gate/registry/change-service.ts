import { isDeepStrictEqual } from 'node:util'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { Decision } from '../../../infra/event-store/decide.ts'
import { decided } from '../../../infra/event-store/decided.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import { organizationFor } from '../../../projections/organizations/queries.ts'
import type { EndpointRow } from '../../../projections/webhooks/tables.ts'
import type { GateServiceChanged } from '../../../schemas/events.ts'
import { refuseLarge } from './definition-size.ts'
import type { DefinitionChanges } from './fields/definition.ts'
import { refuseDeafEndpoint, type ServicePath, type ServiceState, serviceFor } from './service-state.ts'

const parameterSet = 'gate_service_update'

export interface ChangeState extends ServiceState {
  /** The one that the change names, as the key sees it. */
  endpoint: EndpointRow | undefined
}

export interface ChangeService extends ServicePath {
  /** Each replaces what was there as a whole. */
  changes: DefinitionChanges
  eventId: string
  /** Epoch milliseconds. */
  now: number
}

/**
 * Describes the service anew; no event when it is so described already. 404 without it, 403 when its organization is
 * not active, 409 when it is disabled, 422 for an endpoint that would not be told of approvals
 * and for a description that is too large. An endpoint that the
 * change does not name is left as it is, told or not.
 */
export function changeService(state: ChangeState, command: ChangeService): Decision[] {
  organizationFor(state.organization, 'key')
  const service = changeable(serviceFor(state.service, command))
  const { changes } = command
  if (changes.webhook_endpoint_id !== undefined) {
    refuseDeafEndpoint(state.endpoint, { parameterSet })
  }
  const definition = { ...service.definition, ...changes }
  refuseLarge(definition, { parameterSet })
  return isDeepStrictEqual(definition, service.definition) ? [] : [changed(command, definition)]
}

function changeable(service: GateServiceRow): GateServiceRow {
  if (service.status === 'active') return service
  throw new ApiError('request.conflict', { message: 'A disabled service cannot be changed.' })
}

function changed(
  { serviceId, organizationId, environment, eventId, now }: ChangeService,
  definition: GateServiceRow['definition'],
): Decision {
  const data: GateServiceChanged = {
    service_id: serviceId,
    organization_id: organizationId,
    environment,
    definition,
    changed_at: now,
  }
  return decided({ type: 'GateServiceChanged', data }, { organizationId, environment, eventId, now })
}
