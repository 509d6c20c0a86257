import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import { unavailable } from '../../../infra/errors/errors.ts'
import { refusingOffset } from '../../../infra/http/pagination.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import { findService, listServices } from '../../../projections/gate/queries.ts'
import type { RegistryContext } from './context.ts'
import { completeList, createServiceBody, managedServiceSchema } from './schemas.ts'
import { registerService } from './service-commands.ts'
import { managedServiceJson } from './shapes.ts'

const tags = ['Gate']
const security = [{ secretKey: [] }]
const path = '/v1/gate/services'

/** What is not about one service: the list, and a new one. */
export function serviceRoutes(app: FastifyInstance, context: RegistryContext): void {
  listRoute(app, context)
  createRoute(app, context)
}

function listRoute(app: FastifyInstance, { pool, auth, scopeOf }: RegistryContext): void {
  const schema = {
    operationId: 'listManagedGateServices',
    summary:
      "List the organization's Gate services in the key's environment, newest first, disabled ones too",
    description: 'Requires the `gate:services:read` secret-key scope.',
    tags,
    security,
    response: { 200: completeList(managedServiceSchema), ...errorResponses(401, 403, 422) },
  }
  const hooks = {
    onRequest: auth.requireSecret('gate:services:read'),
    preValidation: refusingOffset('no offset: the list is one page'),
  }
  app.get(path, { schema, ...hooks }, async (request) => {
    const services = await listServices(pool, scopeOf(request))
    return { data: services.map(managedServiceJson), meta: { request_id: request.id } }
  })
}

function createRoute(app: FastifyInstance, context: RegistryContext): void {
  const { pool, auth, idempotency, depsOf, scopeOf } = context
  const schema = {
    operationId: 'createManagedGateService',
    summary: 'Register a Gate service, active from the start',
    description:
      "Requires the `gate:services:manage` secret-key scope. The service is of the calling key's environment. An organization has at most five, in both environments together and disabled ones included; an id is given once in the whole installation, and so is the variable of its agent tokens: acme-mail and acme_mail share one. What it says of itself is at most 16 KiB of JSON.",
    tags,
    security,
    body: createServiceBody,
    response: { 201: single(managedServiceSchema), ...errorResponses(400, 401, 403, 409, 413, 415, 422) },
  }
  const onRequest = auth.requireSecret('gate:services:manage')
  const config = { bodyCode: 'gate.validation_failed', parameterSet: 'gate_service_create' } as const
  app.post<Create>(path, { schema, onRequest, config }, (request, reply) =>
    idempotency.run({ request, reply }, async (command) => {
      await registerService(depsOf(command), { ...request.body, ...scopeOf(request) })
      const service = await findService(pool, request.body.id)
      // Not a refusal: the service exists, and the same command will show it.
      if (!service) throw unavailable(new Error('the new service is not in the read model'))
      return { status: 201, body: { data: managedServiceJson(service), meta: { request_id: request.id } } }
    }),
  )
}

interface Create {
  Body: z.output<typeof createServiceBody>
}
