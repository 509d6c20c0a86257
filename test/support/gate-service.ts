import type { DomainEvent } from '../../infra/event-store/event.ts'
import type { Environment } from '../../schemas/events.ts'
import { systemService } from '../../services/gate/registry/registered-services.ts'

interface Registered {
  serviceId: string
  organizationId: string
  environment?: Environment
  /** Webhook endpoint for approvals. */
  endpointId: string
  at?: number
}

/** Returns the registration of an organization's service. */
export function serviceRegistered({
  serviceId,
  organizationId,
  environment = 'live',
  endpointId,
  at = 1,
}: Registered): DomainEvent {
  const { definition } = systemService('https://service.example')
  return {
    type: 'GateServiceRegistered',
    data: {
      service_id: serviceId,
      organization_id: organizationId,
      environment,
      definition: { ...definition, webhook_endpoint_id: endpointId },
      registered_at: at,
    },
  }
}

/** Returns the event that disables the service. */
export function serviceDisabled(serviceId: string, organizationId: string): DomainEvent {
  return {
    type: 'GateServiceDisabled',
    data: {
      service_id: serviceId,
      organization_id: organizationId,
      environment: 'live',
      disabled_at: 2,
    },
  }
}
