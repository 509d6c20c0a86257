import type { Decision } from '../../../infra/event-store/decide.ts'
import { decided } from '../../../infra/event-store/decided.ts'
import { derivedId } from '../../../infra/ids.ts'
import { organizationFor } from '../../../projections/organizations/queries.ts'
import type { GateServiceDisabled } from '../../../schemas/events.ts'
import { type ServicePath, type ServiceState, serviceFor } from './service-state.ts'

export interface DisableService extends ServicePath {
  /** Epoch milliseconds. */
  now: number
}

/** Disables a service for good; no event when it is disabled. 404 without it, 403 when its organization is not active. */
export function disableService(state: ServiceState, command: DisableService): Decision[] {
  organizationFor(state.organization, 'key')
  const service = serviceFor(state.service, command)
  if (service.status === 'disabled') return []
  const { serviceId, organizationId, environment, now } = command
  const data: GateServiceDisabled = {
    service_id: serviceId,
    organization_id: organizationId,
    environment,
    disabled_at: now,
  }
  const eventId = derivedId('evt', serviceId, 'disabled')
  return [decided({ type: 'GateServiceDisabled', data }, { organizationId, environment, eventId, now })]
}
