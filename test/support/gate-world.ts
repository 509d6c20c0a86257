import { randomBytes } from 'node:crypto'
import type { EndpointId, KeyId, OrganizationId } from '../../infra/ids.ts'
import type { Environment } from '../../schemas/events.ts'
import { createService } from '../../services/gate/registry/commands.ts'
import type { CompleteFields } from '../../services/gate/registry/definition.ts'
import { createOrganization, issueApiKey } from '../../services/organizations/commands.ts'
import { createEndpoint, type EndpointDeps } from '../../services/webhooks/endpoints/commands.ts'

/** Organization with an endpoint for approvals. */
export interface GateTenant {
  organizationId: OrganizationId
  environment: Environment
  /** Secret key of the environment, with all scopes. */
  secretKey: string
  secretKeyId: KeyId
  /** Subscribed to gate.session.approved. */
  endpointId: EndpointId
  signingSecret: string
}

/** Tenant with a service that agents can sign up for. */
export interface GateOwner extends GateTenant {
  serviceId: string
}

interface TenantOptions {
  environment?: Environment
}

interface OwnerOptions extends TenantOptions {
  /** Fields that differ from those of a plain service. */
  fields?: Partial<CompleteFields>
}

/**
 * An organization with an endpoint for approvals, made by the commands; needs the read models organizations and
 * webhooks.
 */
export async function gateTenant(
  deps: EndpointDeps,
  { environment = 'live' }: TenantOptions = {},
): Promise<GateTenant> {
  const slug = `org-${randomBytes(6).toString('hex')}`
  const { organizationId } = await createOrganization(deps, { name: 'Acme', slug })
  const scope = { organizationId, environment }
  const key = { ...scope, name: 'Key', type: 'secret', by: 'operator' } as const
  const issued = await issueApiKey(deps, { ...key, scopes: ['*'] })
  const { keyId: secretKeyId, revealedKey: secretKey } = issued
  const event_types = ['gate.session.approved']
  const url = 'https://acme.example/hooks'
  const endpoint = { ...scope, name: 'Approvals', url, event_types }
  const { endpointId, signingSecret } = await createEndpoint(deps, endpoint)
  return { organizationId, environment, secretKey, secretKeyId, endpointId, signingSecret }
}

/** Creates a tenant with a discoverable service. Requires the read model `gate`, too. */
export async function gateOwner(
  deps: EndpointDeps,
  { fields = {}, ...options }: OwnerOptions = {},
): Promise<GateOwner> {
  const tenant = await gateTenant(deps, options)
  const serviceId = `acme-${randomBytes(6).toString('hex')}`
  await createService(deps, { ...registration(tenant), ...fields, id: serviceId })
  return { ...tenant, serviceId }
}

/** Returns the registration of a plain service of the tenant, without the id. */
export const registration = ({
  organizationId,
  environment,
  endpointId,
}: Pick<GateTenant, 'organizationId' | 'environment' | 'endpointId'>) => ({
  organizationId,
  environment,
  name: 'Acme Mail',
  description: 'Mail for agents.',
  website: 'https://acme.example',
  webhook_endpoint_id: endpointId,
  discoverable: true,
  dashboard_login_url: 'https://acme.example/auth/gate',
  env_vars: [{ name: 'API key', key: 'ACME_API_KEY', secret: true }],
})
