import { endpointsLock } from '../../../projections/webhooks/queries.ts'
import { eventTopics } from '../../../schemas/events.ts'

/**
 * The log and the read model of everything that is decided about the endpoints of one organization, one command at a
 * time: how many there are is part of it.
 */
export function endpointsOf(organizationId: string) {
  return {
    topic: eventTopics.WebhookEndpointCreated,
    projection: 'webhooks',
    key: organizationId,
    locks: [endpointsLock(organizationId)],
  }
}

/** What a decision that ends the approvals of an endpoint reads too: the services that name it, in any partition. */
export const seesServices = {
  alsoReads: [{ projection: 'gate', topic: eventTopics.GateServiceRegistered }],
}
