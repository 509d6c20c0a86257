import { endpointsLock } from '../../../infra/access/organization.ts'
import { checkAll } from '../../../infra/errors/check-all.ts'
import { type CommandDeps, newId } from '../../../infra/event-store/decide.ts'
import { isId } from '../../../infra/ids.ts'
import type { Db, Tx } from '../../../infra/postgres/pool.ts'
import { agentTokenEnvName, envPrefixOf } from '../../../infra/wire/gate.ts'
import {
  countServices,
  findIdsAlike,
  findService,
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
import { checkedServiceId, isServiceId, refusedMember } from './fields.ts'
import { domainChallenge, domainOf, findProof } from './ownership.ts'
import type { ServiceFields } from './schemas.ts'
import { checkVerifiable, decideDomainVerification, decideVerification } from './verification.ts'
import { ownPrefix } from './well-known.ts'

type ServiceDeps = Omit<CommandDeps, 'keyring'>

/** ApiError: 404 no such organization, 403 not active, 409 id used or too many services, 422 a field does not fit. */
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
  const stream = ownedStream(path)
  await decide({
    ...stream,
    // Ids that differ in - and _ have the same variable, which only one service may have.
    locks: [...stream.locks, `gate-variable:${agentTokenEnvName(serviceId)}`],
    // The organization's other services may be in any partition.
    reads: 'topic',
    ...seesEndpoint(path),
    load: async (tx) => ({
      organization: await findOrganization(tx, organizationId),
      isRepeated: await isServiceEventApplied(tx, eventId),
      alike: await findIdsAlike(tx, serviceId),
      count: await countServices(tx, organizationId),
      verifiedNames: await verifiedNames(tx, organizationId),
      endpoint: await endpointOf(tx, path, fields.webhook_endpoint_id),
    }),
    decide: (state) => decideRegistration(state, { ...path, definition, eventId, now }),
  })
}

/** ApiError: 404 no such service, 403 organization not active, 409 disabled, 422 a field does not fit. */
export async function changeService(
  { decide, clock, ...deps }: ServiceDeps,
  { organizationId, environment, serviceId, ...fields }: ServicePath & ServiceFields,
): Promise<void> {
  const changes = checkedDefinition(fields, { environment, parameterSet: 'gate_service_update' })
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  const path = { organizationId, environment, serviceId }
  await decide({
    ...ownedStream(path),
    ...(fields.webhook_endpoint_id !== undefined && seesEndpoint(path)),
    load: async (tx) => ({
      ...(await loadService(tx, path)),
      endpoint: await endpointOf(tx, path, fields.webhook_endpoint_id),
      verifiedNames: fields.name === undefined ? [] : await verifiedNames(tx, organizationId),
    }),
    decide: (state) => decideServiceChange(state, { ...path, changes, eventId, now }),
  })
}

/** For good; a repetition does nothing. ApiError: 404 no such service, 403 organization not active. */
export async function disableService(
  { decide, clock }: ServiceDeps,
  path: ServicePath,
): Promise<void> {
  const now = clock()
  await decide({
    ...ownedStream(path),
    load: (tx) => loadService(tx, path),
    decide: (state) => decideServiceDisabling(state, { ...path, now }),
  })
}

/** By the operator; a repetition does nothing. ApiError: 404 no organization has such a service. */
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
 * Verifies the website's domain where it has the challenge, which is not read again once it is verified. ApiError: 404 no
 * such service, 403 organization not active, 409 disabled, 422 it has none, or cannot be verified, 429.
 */
export async function verifyDomain(
  { decide, clock, random, pool, keyring, domainReader, limits }: GateDeps,
  path: ServicePath,
): Promise<void> {
  const { verified_domain, definition } = checkVerifiable(await loadService(pool, path), path)
  if (verified_domain !== null) return
  const { website } = definition
  const domain = verifiableDomain(website)
  await limits.count('verify_domain', path.serviceId)
  const claim = { organizationId: path.organizationId, serviceId: path.serviceId, domain }
  const proof = await findProof(domainReader, keyring, claim)
  if (proof === undefined) {
    const { dns, file } = domainChallenge(keyring, claim)
    const expected = `a TXT record of ${dns.name} that is ${dns.value}, or the line ${file.content} in ${file.url}`
    throw refusedMember(refusedWebsite, { issue: 'not_shown', expected })
  }
  const now = clock()
  const eventId = newId('evt', { random, now })
  await decide({
    ...ownedStream(path),
    load: (tx) => loadService(tx, path),
    decide: (state) =>
      decideDomainVerification(state, { ...path, website, domain, proof, eventId, now }),
  })
}

const refusedWebsite = { field: 'website', parameterSet: 'gate_service_domain_verify' } as const

function verifiableDomain(website: string): string {
  const found = domainOf(website)
  if (found && ownPrefix(found.label, found.domain) !== null) return found.domain
  const expected = found
    ? `another domain: variables that begin with ${envPrefixOf(found.label)} are of others, too`
    : 'a website under a domain of its own, not an address or a name under which anybody may have one'
  throw refusedMember(refusedWebsite, { issue: 'not_allowed', expected })
}

// Locks the organization's endpoints, too, because a service names one of them. Registrations of the organization wait
// for the same lock, so that they can be counted.
function ownedStream({ organizationId, serviceId }: ServicePath) {
  const stream = serviceStream(serviceId)
  return { ...stream, locks: [...stream.locks, endpointsLock(organizationId)] }
}

function seesEndpoint({ organizationId: key }: ServicePath) {
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
