import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { refuseBody } from '../../../infra/http/checked-fields.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import { findService } from '../../../projections/gate/queries.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import { verifyDomain } from './commands.ts'
import { serviceFor } from './decide.ts'
import { domainChallenge, domainOf, ownedPrefix } from './ownership.ts'
import { serviceDomainSchema, serviceParams } from './schemas.ts'
import { servicePath } from './service-routes.ts'

type DomainContext = Pick<
  GateContext,
  'pool' | 'auth' | 'decideByKey' | 'clock' | 'random' | 'keyring' | 'scopeOf' | 'limits' | 'domainLooks'
>

const tags = ['Gate']
const security = [{ secretKey: [] }]
const path = '/v1/gate/services/:serviceId/domain'

interface Params {
  Params: z.output<typeof serviceParams>
}

export function domainRoutes(app: FastifyInstance, context: DomainContext): void {
  getRoute(app, context)
  verifyRoute(app, context)
}

function getRoute(app: FastifyInstance, context: DomainContext): void {
  const schema = {
    tags,
    security,
    params: serviceParams,
    operationId: 'getManagedGateServiceDomain',
    summary: "Get the domain of a service's website, and how to verify it",
    description: 'Requires the `gate:services:read` secret-key scope.',
    response: { 200: single(serviceDomainSchema), ...errorResponses(401, 403, 404, 422) },
  }
  const onRequest = context.auth.requireSecret('gate:services:read')
  app.get<Params>(path, { schema, onRequest }, (request) => domainBody(context, request))
}

function verifyRoute(app: FastifyInstance, context: DomainContext): void {
  const { auth, decideByKey, limits } = context
  const schema = {
    tags,
    security,
    params: serviceParams,
    operationId: 'verifyManagedGateServiceDomain',
    summary: "Verify the domain of a service's website",
    description:
      'Requires the `gate:services:manage` secret-key scope. Looks for the challenge in DNS and in the file, and is 422 naming `website` where neither has it. It is looked for this once; another website ends the verification. Verifying again does nothing. 30 a minute for each service.',
    response: {
      200: single(serviceDomainSchema),
      ...errorResponses(400, 401, 403, 404, 409, 413, 415, 422, 429),
    },
  }
  const onRequest = auth.requireSecret('gate:services:manage')
  const preValidation = refuseBody('gate_service_domain_verify')
  const config = { bodyCode: 'gate.validation_failed' } as const
  app.post<Params>(`${path}/verify`, { schema, onRequest, preValidation, config }, async (request) => {
    const service = servicePath(context, request)
    const limited = () => limits.count('verify_domain', service.serviceId)
    await verifyDomain({ ...context, decide: decideByKey(request), limited }, service)
    return domainBody(context, request)
  })
}

async function domainBody(context: DomainContext, request: FastifyRequest<Params>) {
  const path = servicePath(context, request)
  const service = serviceFor(await findService(context.pool, path.serviceId), path)
  return { data: domainJson(service, context), meta: { request_id: request.id } }
}

function domainJson(service: GateServiceRow, { keyring }: Pick<DomainContext, 'keyring'>) {
  const domain = domainOf(service.definition.website)?.domain ?? null
  const claim = { organizationId: service.organization_id, serviceId: service.id }
  return {
    object: 'gate_service_domain',
    service_id: service.id,
    domain,
    verified: service.verified_domain !== null,
    env_prefix: ownedPrefix(service),
    challenge: domain === null ? null : domainChallenge(keyring, { ...claim, domain }),
  }
}
