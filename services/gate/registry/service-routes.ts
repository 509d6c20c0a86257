import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { checkGiven } from '../../../infra/errors/check-all.ts'
import { unavailable } from '../../../infra/errors/errors.ts'
import { refuseBody } from '../../../infra/http/checked-fields.ts'
import { refusingOffset } from '../../../infra/http/pagination.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import { fittingCheck } from '../../../infra/http/validation.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { findService, listServices } from '../../../projections/gate/queries.ts'
import type { GateContext } from '../context.ts'
import { changeService, createService, disableService } from './commands.ts'
import { noSuchService, type ServicePath, serviceFor } from './decide.ts'
import { checkedDefinition } from './definition.ts'
import { checkedServiceId } from './fields.ts'
import { refuseForbidden } from './forbidden.ts'
import { isServiceId, managedServiceJson } from './registered.ts'
import {
  completeList,
  createServiceBody,
  managedServiceSchema,
  serviceParams,
  updateServiceBody,
} from './schemas.ts'

type ServiceContext = Pick<
  GateContext,
  'pool' | 'auth' | 'idempotency' | 'decideByKey' | 'clock' | 'random' | 'depsOf' | 'scopeOf'
>

const tags = ['Gate']
const security = [{ secretKey: [] }]
const path = '/v1/gate/services'
const onePath = `${path}/:serviceId`
const manages = 'Requires the `gate:services:manage` secret-key scope.'

export function serviceRoutes(app: FastifyInstance, context: ServiceContext): void {
  listRoute(app, context)
  createRoute(app, context)
  getRoute(app, context)
  updateRoute(app, context)
  disableRoute(app, context)
}

function listRoute(app: FastifyInstance, { pool, auth, scopeOf }: ServiceContext): void {
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

function createRoute(app: FastifyInstance, context: ServiceContext): void {
  const { pool, auth, idempotency, decideByKey, depsOf, scopeOf } = context
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
  const parameterSet = 'gate_service_create'
  const checkFitting = fittingCheck(
    z.object(createServiceBody.shape).partial(),
    ({ id, ...fields }, request) => {
      const rules = { environment: scopeOf(request).environment, parameterSet } as const
      checkGiven<Record<'id' | 'said' | 'allowed', unknown>>({
        id: id !== undefined && (() => checkedServiceId(id, rules)),
        said: () => checkedDefinition(fields, rules),
        allowed: () => refuseForbidden(fields, rules),
      })
    },
  )
  const config = { bodyCode: 'gate.validation_failed', parameterSet, checkFitting } as const
  app.post<Create>(path, { schema, onRequest, config }, (request, reply) =>
    idempotency.run({ request, reply }, async (command) => {
      await createService(depsOf(command, decideByKey(request)), { ...request.body, ...scopeOf(request) })
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

function getRoute(app: FastifyInstance, context: ServiceContext): void {
  const { pool, auth } = context
  const schema = {
    tags,
    security,
    params: serviceParams,
    operationId: 'getManagedGateService',
    summary: 'Get a Gate service of the organization',
    description: 'Requires the `gate:services:read` secret-key scope.',
    response: { 200: single(managedServiceSchema), ...errorResponses(401, 403, 404, 422) },
  }
  const onRequest = auth.requireSecret('gate:services:read')
  app.get<Params>(onePath, { schema, onRequest }, (request) =>
    serviceBody(pool, { ...servicePath(context, request), requestId: request.id }),
  )
}

function updateRoute(app: FastifyInstance, context: ServiceContext): void {
  const { pool, auth, decideByKey, clock, random, scopeOf } = context
  const schema = {
    tags,
    security,
    params: serviceParams,
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
  const parameterSet = 'gate_service_update'
  const checkFitting = fittingCheck(z.object(updateServiceBody.shape), (fields, request) => {
    checkedDefinition(fields, { environment: scopeOf(request).environment, parameterSet })
  })
  const config = { bodyCode: 'gate.validation_failed', parameterSet, checkFitting } as const
  // Before the body is validated: a service of others is not found, whatever the body says.
  const preValidation = async (request: FastifyRequest<Params>) => {
    const service = servicePath(context, request)
    serviceFor(await findService(pool, service.serviceId), service)
  }
  app.patch<Params & Update>(onePath, { schema, onRequest, preValidation, config }, async (request) => {
    const service = servicePath(context, request)
    const decide = decideByKey(request)
    await changeService({ decide, clock, random }, { ...request.body, ...service })
    return serviceBody(pool, { ...service, requestId: request.id })
  })
}

function disableRoute(app: FastifyInstance, context: ServiceContext): void {
  const { pool, auth, decideByKey, clock } = context
  const schema = {
    tags,
    security,
    params: serviceParams,
    operationId: 'disableManagedGateService',
    summary: 'Disable a Gate service of the organization for good; its id stays taken',
    description: `${manages} Nobody can sign up for it or log in to it any more; what has begun goes on.`,
    response: { 200: single(managedServiceSchema), ...errorResponses(400, 401, 403, 404, 413, 415, 422) },
  }
  const onRequest = auth.requireSecret('gate:services:manage')
  const preValidation = refuseBody('gate_service_disable')
  const config = { bodyCode: 'gate.validation_failed' } as const
  app.delete<Params>(onePath, { schema, onRequest, preValidation, config }, async (request) => {
    const service = servicePath(context, request)
    await disableService({ decide: decideByKey(request), clock }, service)
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
export function servicePath(
  { scopeOf }: Pick<ServiceContext, 'scopeOf'>,
  request: FastifyRequest<Params>,
): ServicePath {
  const { serviceId } = request.params
  if (!isServiceId(serviceId)) throw noSuchService()
  return { ...scopeOf(request), serviceId }
}

async function serviceBody(db: Db, { requestId, ...path }: ServicePath & { requestId: string }) {
  const service = serviceFor(await findService(db, path.serviceId), path)
  return { data: managedServiceJson(service), meta: { request_id: requestId } }
}
