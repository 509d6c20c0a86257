import { ApiError, unavailable } from '../../../infra/errors/errors.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { systemServiceId } from '../../../infra/wire/gate.ts'
import { findService } from '../../../projections/gate/queries.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import { findOrganization } from '../../../projections/organizations/queries.ts'
import { isServiceId, serviceDefaults } from './fields.ts'
import { verifiedEnvPrefix } from './ownership.ts'

export type RegisteredService = Omit<GateServiceRow, 'organization_id'> & {
  organization_id: string | null
}

interface ServiceRef {
  serviceId: string
  /** URL of this server, used for the built-in service. */
  publicUrl: string
}

/** Returns the service, even if it is disabled or not discoverable, because its sessions stay usable. */
export async function findRegisteredService(
  db: Db,
  { serviceId, publicUrl }: ServiceRef,
): Promise<RegisteredService | undefined> {
  if (serviceId === systemServiceId) return systemService(publicUrl)
  return isServiceId(serviceId) ? findService(db, serviceId) : undefined
}

/** Returns the service of an existing session. Throws 503 if the read model does not have it yet. */
export async function requireRegisteredService(
  db: Db,
  ref: ServiceRef,
): Promise<RegisteredService> {
  const service = await findRegisteredService(db, ref)
  if (!service) throw unavailable(new Error(`the service ${ref.serviceId} is not readable`))
  return service
}

/** Throws 404 unless the service is active and discoverable. */
export function requireOpenService(service: RegisteredService | undefined): RegisteredService {
  if (service?.status === 'active' && service.definition.discoverable) return service
  throw new ApiError('request.not_found', { message: 'No such service accepts signups.' })
}

/** Throws 404 unless the service is active and discoverable, and its organization is active. */
export async function loadOpenService(db: Db, ref: ServiceRef): Promise<RegisteredService> {
  const service = await findRegisteredService(db, ref)
  const owner = service?.organization_id ?? null
  const isOwnerActive = owner === null || (await findOrganization(db, owner))?.status === 'active'
  return requireOpenService(isOwnerActive ? service : undefined)
}

const systemServiceCreatedAt = Date.UTC(2026, 10, 21)

/** Returns the built-in service, whose signups create an organization on this server, with API keys. */
export function systemService(publicUrl: string): RegisteredService {
  return {
    id: systemServiceId,
    organization_id: null,
    environment: 'live',
    status: 'active',
    verified: true,
    verified_domain: null,
    definition: {
      ...serviceDefaults,
      name: 'Tidegate',
      description:
        'Scores sessions for automation and fraud, and lets agents sign up with consent.',
      website: publicUrl,
      discoverable: true,
      webhook_endpoint_id: null,
      docs_url: `${publicUrl}/docs`,
      env_vars: [
        { name: 'Organization', key: 'TIDEGATE_ORGANIZATION_ID', secret: false },
        { name: 'Publishable key', key: 'TIDEGATE_PUBLISHABLE_KEY', secret: false },
        { name: 'Secret key', key: 'TIDEGATE_SECRET_KEY', secret: true },
        { name: 'Publishable key for tests', key: 'TIDEGATE_TEST_PUBLISHABLE_KEY', secret: false },
        { name: 'Secret key for tests', key: 'TIDEGATE_TEST_SECRET_KEY', secret: true },
      ],
      branding: { ...serviceDefaults.branding, logo_url: `${publicUrl}/assets/mark.svg` },
    },
    created_at: systemServiceCreatedAt,
    updated_at: systemServiceCreatedAt,
  }
}

export function registryEntryJson(service: RegisteredService) {
  const { id, status, verified, verified_domain, definition } = service
  const env_prefix = verifiedEnvPrefix(service)
  const { discoverable, name, description, website, env_vars, sdks } = definition
  const { branding, consent, dashboard_login_url, docs_url } = definition
  return {
    id,
    status,
    discoverable,
    name,
    description,
    website,
    ...(dashboard_login_url !== null && { dashboard_login_url }),
    env_vars,
    docs_url: docs_url ?? website,
    sdks,
    branding: { ...withoutNulls(branding), verified },
    consent: withoutNulls(consent),
    ...(definition.claim_required && { claim_required: true }),
    ...(definition.minimum_verdict === 'human' && { minimum_verdict: 'human' as const }),
    ...(verified_domain !== null && { verified_domain }),
    ...(env_prefix !== null && { env_prefix }),
  }
}

export function managedServiceJson(service: GateServiceRow) {
  return {
    object: 'gate_service',
    ...registryEntryJson(service),
    webhook_endpoint_id: service.definition.webhook_endpoint_id,
    created_at: new Date(service.created_at).toISOString(),
    updated_at: new Date(service.updated_at).toISOString(),
  }
}

function withoutNulls<T extends object>(members: T): Partial<T> {
  const set: Partial<T> = { ...members }
  for (const name in set) if (set[name] === null) delete set[name]
  return set
}
