import { eventTopics } from '../../schemas/events.ts'

/** The log and the read model of everything that is decided about one organization, one command at a time. */
export function streamOf(organizationId: string) {
  return {
    topic: eventTopics.OrganizationCreated,
    projection: 'organizations',
    key: organizationId,
    locks: [`organization:${organizationId}`],
  }
}
