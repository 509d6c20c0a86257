import { webhookEndpointsLock } from '../../../infra/access/organization.ts'
import { checkAll } from '../../../infra/errors/check-all.ts'
import { type CommandDeps, newId } from '../../../infra/event-store/decide.ts'
import { isId } from '../../../infra/ids.ts'
import type { Db, Tx } from '../../../infra/postgres/pool.ts'
import { agentTokenEnvName, envPrefixOf } from '../../../infra/wire/gate.ts'
import {
  countServices,
  findService,
  findSimilarServiceIds,
  findVerifiedNamesOfOthers,
  isServiceEventApplied,
  type ServiceScope,
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
import { type CompleteFields, checkedNewDefinition, checkedServiceFields } from './definition.ts'
import { checkedServiceId, fieldError, isServiceId } from './fields.ts'
import { domainChallenge, findDomainProof, parseRegistrableDomain } from './ownership.ts'
import type { ServiceFields } from './schemas.ts'
import { decideDomainVerification, decideVerification, requireVerifiable } from './verification.ts'
import { ownableEnvPrefix } from './well-known.ts'

type ServiceDeps = Omit<CommandDeps, 'keyring'>

/** Throws the errors of `decideRegistration`, and 422 naming the invalid fields. */
export async function createService(
  { decide, clock, ...deps }: ServiceDeps,
  { id, organizationId, environment, ...fields }: ServiceScope & CompleteFields & { id: string },
): Promise<void> {
  const rules = { environment, parameterSet: 'gate_service_create' } as const
  const { serviceId, definition } = checkAll({
    serviceId: () => checkedServiceId(id, rules),
    definition: () => checkedNewDefinition(fields, rules),
  })
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  const path = { organizationId, environment, serviceId }
  const stream = serviceDecisionOptions(path)
  await decide({
    ...stream,
    // Ids that differ only in - and _ share the name of their token variable, so only one of them can be registered.
    locks: [...stream.locks, `gate-variable:${agentTokenEnvName(serviceId)}`],
    // The organization's other services can be in any partition.
    reads: 'topic',
    ...alsoReadsEndpoints(path),
    load: async (tx) => ({
      organization: await findOrganization(tx, organizationId),
      isRepeated: await isServiceEventApplied(tx, eventId),
      similarIds: await findSimilarServiceIds(tx, serviceId),
      count: await countServices(tx, organizationId),
      verifiedNames: await findVerifiedNamesOfOthers(tx, organizationId),
      endpoint: await findServiceEndpoint(tx, path, fields.webhook_endpoint_id),
    }),
    decide: (state) => decideRegistration(state, { ...path, definition, eventId, now }),
  })
}

/** Throws the errors of `decideServiceChange`, and 422 naming the invalid fields. */
export async function changeService(
  { decide, clock, ...deps }: ServiceDeps,
  { organizationId, environment, serviceId, ...fields }: ServicePath & ServiceFields,
): Promise<void> {
  const changes = checkedServiceFields(fields, { environment, parameterSet: 'gate_service_update' })
  const now = clock()
  const eventId = newId('evt', { ...deps, now })
  const path = { organizationId, environment, serviceId }
  await decide({
    ...serviceDecisionOptions(path),
    ...(fields.webhook_endpoint_id !== undefined && alsoReadsEndpoints(path)),
    load: async (tx) => ({
      ...(await loadService(tx, path)),
      endpoint: await findServiceEndpoint(tx, path, fields.webhook_endpoint_id),
      verifiedNames:
        fields.name === undefined ? [] : await findVerifiedNamesOfOthers(tx, organizationId),
    }),
    decide: (state) => decideServiceChange(state, { ...path, changes, eventId, now }),
  })
}

/** Disables the service permanently. Throws the errors of `decideServiceDisabling`. */
export async function disableService(
  { decide, clock }: ServiceDeps,
  path: ServicePath,
): Promise<void> {
  const now = clock()
  await decide({
    ...serviceDecisionOptions(path),
    load: (tx) => loadService(tx, path),
    decide: (state) => decideServiceDisabling(state, { ...path, now }),
  })
}

/** Sets or withdraws the operator's verification. Throws the errors of `decideVerification`. */
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
 * Verifies the domain of the service's website if it publishes the challenge. Throws the errors of
 * `decideDomainVerification`, 422 if the challenge is not found or the domain not verifiable, and 429 over the limit.
 */
export async function verifyDomain(
  { decide, clock, random, pool, keyring, domainReader, limits }: GateDeps,
  path: ServicePath,
): Promise<void> {
  const { verified_domain, definition } = requireVerifiable(await loadService(pool, path), path)
  if (verified_domain !== null) return
  const { website } = definition
  const domain = requireVerifiableDomain(website)
  await limits.enforce('verify_domain', path.serviceId)
  const claim = { organizationId: path.organizationId, serviceId: path.serviceId, domain }
  const proof = await findDomainProof(domainReader, keyring, claim)
  if (proof === undefined) {
    const { dns, file } = domainChallenge(keyring, claim)
    const expected = `a TXT record of ${dns.name} that is ${dns.value}, or the line ${file.content} in ${file.url}`
    throw fieldError(websiteField, { issue: 'not_shown', expected })
  }
  const now = clock()
  const eventId = newId('evt', { random, now })
  await decide({
    ...serviceDecisionOptions(path),
    load: (tx) => loadService(tx, path),
    decide: (state) =>
      decideDomainVerification(state, { ...path, website, domain, proof, eventId, now }),
  })
}

const websiteField = { field: 'website', parameterSet: 'gate_service_domain_verify' } as const

function requireVerifiableDomain(website: string): string {
  const registrable = parseRegistrableDomain(website)
  if (registrable && ownableEnvPrefix(registrable.label, registrable.domain) !== null)
    return registrable.domain
  const expected = registrable
    ? `another domain: other services also have variables that begin with ${envPrefixOf(registrable.label)}`
    : 'a website with its own registrable domain, not an IP address or a public suffix'
  throw fieldError(websiteField, { issue: 'not_allowed', expected })
}

// The lock on the organization's endpoints keeps the service's endpoint from changing, and serializes registrations, so
// that the number of services is exact.
function serviceDecisionOptions({ organizationId, serviceId }: ServicePath) {
  const stream = serviceStream(serviceId)
  return { ...stream, locks: [...stream.locks, webhookEndpointsLock(organizationId)] }
}

function alsoReadsEndpoints({ organizationId: key }: ServicePath) {
  return { alsoReads: [{ projection: 'webhooks', topic: eventTopics.WebhookEndpointCreated, key }] }
}

async function loadService(tx: Db, { organizationId, serviceId }: ServicePath) {
  return {
    organization: await findOrganization(tx, organizationId),
    service: await findService(tx, serviceId),
  }
}

async function findServiceEndpoint(tx: Tx, scope: ServiceScope, endpointId: string | undefined) {
  if (endpointId === undefined || !isId('we', endpointId)) return undefined
  return findEndpoint(tx, { ...scope, endpointId })
}
