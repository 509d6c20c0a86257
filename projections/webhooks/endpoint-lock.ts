/**
 * The lock under which everything about an organization's webhook endpoints is decided, and what depends on one of
 * them: a service that names an endpoint is decided under it too, so that neither can miss what the other decides.
 */
export const endpointsLock = (organizationId: string): string => `webhook-endpoints:${organizationId}`
