import type { FastifyInstance } from 'fastify'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import { findService } from '../../../projections/gate/queries.ts'
import type { GateContext } from '../context.ts'
import { gateRoute } from '../requests.ts'
import { verifyDomain } from './commands.ts'
import { requireOwnedService, type ServicePath } from './decide.ts'
import { domainChallenge, parseRegistrableDomain, verifiedEnvPrefix } from './ownership.ts'
import { serviceDomainSchema, serviceParams } from './schemas.ts'
import { requireServicePath } from './service-routes.ts'

const path = '/v1/gate/services/:serviceId/domain'

export function domainRoutes(app: FastifyInstance, context: GateContext): void {
  getRoute(app, context)
  verifyRoute(app, context)
}

function getRoute(app: FastifyInstance, context: GateContext): void {
  endpoint(app, {
    route: `GET ${path}`,
    auth: context.auth.requireSecret('gate:services:read'),
    operationId: 'getManagedGateServiceDomain',
    tag: 'Gate',
    summary: "Retrieve a service's domain challenge",
    description:
      "Requires the `gate:services:read` secret-key scope. Returns the registrable domain of the service's website, and the challenge that verifies it.",
    params: serviceParams,
    responses: { 200: single(serviceDomainSchema) },
    errors: [404, 422],
    run: (request) => domainResponse(context, requireServicePath(context, request)),
  })
}

function verifyRoute(app: FastifyInstance, context: GateContext): void {
  const { auth, decideAsCaller } = context
  endpoint(app, {
    ...gateRoute,
    route: `POST ${path}/verify`,
    auth: auth.requireSecret('gate:services:manage'),
    operationId: 'verifyManagedGateServiceDomain',
    summary: "Verify a service's domain",
    description:
      'Requires the `gate:services:manage` secret-key scope. Looks for the challenge in DNS and in the file; 422 naming `website` if neither has it. The challenge is not checked again, but changing the website ends the verification. Verifying a verified domain has no effect. 30 requests per minute and service.',
    params: serviceParams,
    rejectBodyAs: 'gate_service_domain_verify',
    responses: { 200: single(serviceDomainSchema) },
    errors: [404, 409],
    async run(request) {
      const service = requireServicePath(context, request)
      await verifyDomain({ ...context, decide: decideAsCaller(request) }, service)
      return domainResponse(context, service)
    },
  })
}

async function domainResponse({ pool, keyring }: GateContext, path: ServicePath) {
  const service = requireOwnedService(await findService(pool, path.serviceId), path)
  const domain = parseRegistrableDomain(service.definition.website)?.domain ?? null
  const claim = { organizationId: service.organization_id, serviceId: service.id }
  const data = {
    object: 'gate_service_domain',
    service_id: service.id,
    domain,
    verified: service.verified_domain !== null,
    env_prefix: verifiedEnvPrefix(service),
    challenge: domain === null ? null : domainChallenge(keyring, { ...claim, domain }),
  }
  return { data }
}
