import { endpointsLock } from '../../../infra/access/organization.ts'
import { checkAll } from '../../../infra/errors/check-all.ts'
import { type CommandDeps, newId } from '../../../infra/event-store/decide.ts'
import { isId } from '../../../infra/ids.ts'
import type { Db, Tx } from '../../../infra/postgres/pool.ts'
import { agentTokenEnvName, envPrefixOf } from '../../../infra/wire/gate.ts'
import {
  countServices,
  findService,
  findSimilarServiceIds,
  isServiceEventApplied,
  type ServiceScope,
  verifiedNames,
} from '../../../projections/gate/queries.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import { findEndpoint } from '../../../projections/webhooks/queries.ts'
import { eventTopics } from '../../../schemas/events.ts'
import type { GateDeps } from '../context.ts'
import { serviceStream } from '../sessions.ts'
import {
  decideRegistration,
  decideServiceChange,
  decideServiceDisabling,
  type ServicePath,
} from './decide.ts'
import { type CompleteFields, checkedDefinition, completeDefinition } from './definition.ts'
import { checkedServiceId, invalidMember, isServiceId } from './fields.ts'
import { domainChallenge, domainOf, findProof } from './ownership.ts'
import type { ServiceFields } from './schemas.ts'
import { checkVerifiable, decideDomainVerification, decideVerification } from './verification.ts'
import { ownablePrefix } from './well-known.ts'

type ServiceDeps = Omit<CommandDeps, 'keyring'>

/** ApiError: 404 no such organization, 403 not active, 409 id taken or too many services, 422 invalid fields. */
export async function createService(
  { decide, clock, ...deps }: ServiceDeps,
  { id, organizationId, environment, ...fields }: ServiceScope & CompleteFields & { id: string },
): Promise<void> {
  const rules = { environment, parameterSet: 'gate_service_create' } as const
  const { serviceId, definition } = checkAll({
    serviceId: () => checkedServiceId(id, rules),
    definition: () => completeDefinition(fields, rules),
  })
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  const path = { organizationId, environment, serviceId }
  const stream = serviceDecision(path)
  await decide({
    ...stream,
    // Ids that differ only in - and _ map to the same variable, which only one service can have.
    locks: [...stream.locks, `gate-variable:${agentTokenEnvName(serviceId)}`],
    // The organization's other services may be in any partition.
    reads: 'topic',
    ...readsEndpoints(path),
    load: async (tx) => ({
      organization: await findOrganization(tx, organizationId),
      isRepeated: await isServiceEventApplied(tx, eventId),
      similarIds: await findSimilarServiceIds(tx, serviceId),
      count: await countServices(tx, organizationId),
      verifiedNames: await verifiedNames(tx, organizationId),
      endpoint: await endpointOf(tx, path, fields.webhook_endpoint_id),
    }),
    decide: (state) => decideRegistration(state, { ...path, definition, eventId, now }),
  })
}

/** ApiError: 404 no such service, 403 organization not active, 409 disabled, 422 invalid fields. */
export async function changeService(
  { decide, clock, ...deps }: ServiceDeps,
  { organizationId, environment, serviceId, ...fields }: ServicePath & ServiceFields,
): Promise<void> {
  const changes = checkedDefinition(fields, { environment, parameterSet: 'gate_service_update' })
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  const path = { organizationId, environment, serviceId }
  await decide({
    ...serviceDecision(path),
    ...(fields.webhook_endpoint_id !== undefined && readsEndpoints(path)),
    load: async (tx) => ({
      ...(await loadService(tx, path)),
      endpoint: await endpointOf(tx, path, fields.webhook_endpoint_id),
      verifiedNames: fields.name === undefined ? [] : await verifiedNames(tx, organizationId),
    }),
    decide: (state) => decideServiceChange(state, { ...path, changes, eventId, now }),
  })
}

/**
 * Disables the service permanently; a repeat has no effect. ApiError: 404 no such service, 403 organization not active.
 */
export async function disableService(
  { decide, clock }: ServiceDeps,
  path: ServicePath,
): Promise<void> {
  const now = clock()
  await decide({
    ...serviceDecision(path),
    load: (tx) => loadService(tx, path),
    decide: (state) => decideServiceDisabling(state, { ...path, now }),
  })
}

/**
 * Sets or withdraws the operator's verification; a repeat has no effect. ApiError: 404 no organization has the service.
 */
export async function verifyService(
  { decide, clock, ...deps }: ServiceDeps,
  { serviceId, verified }: { serviceId: string; verified: boolean },
): Promise<void> {
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  await decide({
    ...serviceStream(serviceId),
    load: async (tx) => (isServiceId(serviceId) ? findService(tx, serviceId) : undefined),
    decide: (service) => decideVerification(service, { verified, eventId, now }),
  })
}

/**
 * Verifies the website's domain if it publishes the challenge; does nothing for a verified one. ApiError: 404 no such
 * service, 403 organization not active, 409 disabled, 422 challenge not found or domain not verifiable, 429.
 */
export async function verifyDomain(
  { decide, clock, random, pool, keyring, domainReader, limits }: GateDeps,
  path: ServicePath,
): Promise<void> {
  const { verified_domain, definition } = checkVerifiable(await loadService(pool, path), path)
  if (verified_domain !== null) return
  const { website } = definition
  const domain = requireVerifiableDomain(website)
  await limits.count('verify_domain', path.serviceId)
  const claim = { organizationId: path.organizationId, serviceId: path.serviceId, domain }
  const proof = await findProof(domainReader, keyring, claim)
  if (proof === undefined) {
    const { dns, file } = domainChallenge(keyring, claim)
    const expected = `a TXT record of ${dns.name} that is ${dns.value}, or the line ${file.content} in ${file.url}`
    throw invalidMember(websiteField, { issue: 'not_shown', expected })
  }
  const now = clock()
  const eventId = newId('evt', { random, now })
  await decide({
    ...serviceDecision(path),
    load: (tx) => loadService(tx, path),
    decide: (state) =>
      decideDomainVerification(state, { ...path, website, domain, proof, eventId, now }),
  })
}

const websiteField = { field: 'website', parameterSet: 'gate_service_domain_verify' } as const

function requireVerifiableDomain(website: string): string {
  const registrable = domainOf(website)
  if (registrable && ownablePrefix(registrable.label, registrable.domain) !== null)
    return registrable.domain
  const expected = registrable
    ? `another domain: variables that begin with ${envPrefixOf(registrable.label)} are of others, too`
    : 'a website under a domain of its own, not an address or a name under which anybody may have one'
  throw invalidMember(websiteField, { issue: 'not_allowed', expected })
}

// Also locks the organization's endpoints, because a service refers to one. The lock also serializes the organization's
// registrations, so that they can be counted.
function serviceDecision({ organizationId, serviceId }: ServicePath) {
  const stream = serviceStream(serviceId)
  return { ...stream, locks: [...stream.locks, endpointsLock(organizationId)] }
}

function readsEndpoints({ organizationId: key }: ServicePath) {
  return { alsoReads: [{ projection: 'webhooks', topic: eventTopics.WebhookEndpointCreated, key }] }
}

async function loadService(tx: Db, { organizationId, serviceId }: ServicePath) {
  return {
    organization: await findOrganization(tx, organizationId),
    service: await findService(tx, serviceId),
  }
}

async function endpointOf(tx: Tx, scope: ServiceScope, endpointId: string | undefined) {
  if (endpointId === undefined || !isId('we', endpointId)) return undefined
  return findEndpoint(tx, { ...scope, endpointId })
}
