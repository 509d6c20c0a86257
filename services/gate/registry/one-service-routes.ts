import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { refuseBody } from '../../../infra/http/checked-fields.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { findService } from '../../../projections/gate/queries.ts'
import type { RegistryContext } from './context.ts'
import { isServiceId } from './fields/service-id.ts'
import { managedServiceSchema, serviceParams, updateServiceBody } from './schemas.ts'
import { changeService, disableService } from './service-commands.ts'
import { noSuchService, type ServicePath, serviceFor } from './service-state.ts'
import { managedServiceJson } from './shapes.ts'

const path = '/v1/gate/services/:serviceId'
const shared = { tags: ['Gate'], security: [{ secretKey: [] }], params: serviceParams }
const manages = 'Requires the `gate:services:manage` secret-key scope.'

/** What is about one service: show, change, disable it. */
export function oneServiceRoutes(app: FastifyInstance, context: RegistryContext): void {
  getRoute(app, context)
  updateRoute(app, context)
  disableRoute(app, context)
}

function getRoute(app: FastifyInstance, context: RegistryContext): void {
  const { pool, auth } = context
  const schema = {
    ...shared,
    operationId: 'getManagedGateService',
    summary: 'Get a Gate service of the organization',
    description: 'Requires the `gate:services:read` secret-key scope.',
    response: { 200: single(managedServiceSchema), ...errorResponses(401, 403, 404, 422) },
  }
  const onRequest = auth.requireSecret('gate:services:read')
  app.get<Params>(path, { schema, onRequest }, (request) =>
    serviceBody(pool, { ...servicePath(context, request), requestId: request.id }),
  )
}

function updateRoute(app: FastifyInstance, context: RegistryContext): void {
  const { pool, auth, decide, clock, random } = context
  const schema = {
    ...shared,
    operationId: 'updateManagedGateService',
    summary: 'Change a Gate service of the organization',
    description: `${manages} Lists and objects replace what was there as a whole. A change of the name, the website or the logo ends the operator's verification. A disabled service cannot be changed.`,
    body: updateServiceBody,
    response: {
      200: single(managedServiceSchema),
      ...errorResponses(400, 401, 403, 404, 409, 413, 415, 422),
    },
  }
  const onRequest = auth.requireSecret('gate:services:manage')
  const config = { bodyCode: 'gate.validation_failed', parameterSet: 'gate_service_update' } as const
  // Before the body is validated: a service of others is not found, whatever the body says.
  const preValidation = async (request: FastifyRequest<Params>) => {
    const service = servicePath(context, request)
    serviceFor(await findService(pool, service.serviceId), service)
  }
  app.patch<Params & Update>(path, { schema, onRequest, preValidation, config }, async (request) => {
    const service = servicePath(context, request)
    await changeService({ decide, clock, random }, { ...request.body, ...service })
    return serviceBody(pool, { ...service, requestId: request.id })
  })
}

function disableRoute(app: FastifyInstance, context: RegistryContext): void {
  const { pool, auth, decide, clock } = context
  const schema = {
    ...shared,
    operationId: 'disableManagedGateService',
    summary: 'Disable a Gate service of the organization for good; its id stays taken',
    description: `${manages} Nobody can sign up for it or log in to it any more; what has begun goes on.`,
    response: { 200: single(managedServiceSchema), ...errorResponses(400, 401, 403, 404, 413, 415, 422) },
  }
  const onRequest = auth.requireSecret('gate:services:manage')
  const preValidation = refuseBody('gate_service_disable')
  const config = { bodyCode: 'gate.validation_failed' } as const
  app.delete<Params>(path, { schema, onRequest, preValidation, config }, async (request) => {
    const service = servicePath(context, request)
    await disableService({ decide, clock }, service)
    return serviceBody(pool, { ...service, requestId: request.id })
  })
}

interface Params {
  Params: z.output<typeof serviceParams>
}

interface Update {
  Body: z.output<typeof updateServiceBody>
}

/** 404 for what cannot be the id of a service. */
function servicePath({ scopeOf }: RegistryContext, request: FastifyRequest<Params>): ServicePath {
  const { serviceId } = request.params
  if (!isServiceId(serviceId)) throw noSuchService()
  return { ...scopeOf(request), serviceId }
}

async function serviceBody(db: Db, { requestId, ...path }: ServicePath & { requestId: string }) {
  const service = serviceFor(await findService(db, path.serviceId), path)
  return { data: managedServiceJson(service), meta: { request_id: requestId } }
}
