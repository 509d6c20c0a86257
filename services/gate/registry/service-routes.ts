import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { checkPresent } from '../../../infra/errors/check-all.ts'
import { unavailable } from '../../../infra/errors/errors.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { refusingOffset } from '../../../infra/http/pagination.ts'
import { single } from '../../../infra/http/schemas.ts'
import { fittingCheck } from '../../../infra/http/validation.ts'
import { findService, listServices } from '../../../projections/gate/queries.ts'
import type { GateContext } from '../context.ts'
import { gateRoute } from '../requests.ts'
import { changeService, createService, disableService } from './commands.ts'
import { noSuchService, type ServicePath, serviceFor } from './decide.ts'
import { checkedDefinition } from './definition.ts'
import { checkedServiceId, isServiceId } from './fields.ts'
import { refuseForbidden } from './forbidden.ts'
import { managedServiceJson } from './registered.ts'
import {
  completeList,
  createServiceBody,
  managedServiceSchema,
  serviceFields,
  serviceParams,
  updateServiceBody,
} from './schemas.ts'

const path = '/v1/gate/services'
const onePath = `${path}/:serviceId` as const
const reads = 'Requires the `gate:services:read` secret-key scope.'
const manages = 'Requires the `gate:services:manage` secret-key scope.'

export function serviceRoutes(app: FastifyInstance, context: GateContext): void {
  listRoute(app, context)
  createRoute(app, context)
  getRoute(app, context)
  updateRoute(app, context)
  disableRoute(app, context)
}

function listRoute(app: FastifyInstance, { pool, auth }: GateContext): void {
  endpoint(app, {
    route: `GET ${path}`,
    auth: auth.requireSecret('gate:services:read'),
    operationId: 'listManagedGateServices',
    tag: 'Gate',
    summary:
      "List the organization's Gate services in the key's environment, newest first, disabled ones too",
    description: reads,
    before: refusingOffset('the list is one page'),
    answers: { 200: completeList(managedServiceSchema) },
    errors: [422],
    async run(request) {
      return { data: (await listServices(pool, auth.scope(request))).map(managedServiceJson) }
    },
  })
}

function createRoute(app: FastifyInstance, context: GateContext): void {
  const { pool, auth, idempotency, decideByKey, depsOf } = context
  const parameterSet = 'gate_service_create'
  endpoint(app, {
    ...gateRoute,
    route: `POST ${path}`,
    auth: auth.requireSecret('gate:services:manage'),
    operationId: 'createManagedGateService',
    summary: 'Register a Gate service, active from the start',
    description: `${manages} The service is of the calling key's environment. An organization has at most five, in both environments together and disabled ones included; an id is given once in the whole installation, and so is the variable of its agent tokens: acme-mail and acme_mail share one. What it says of itself is at most 16 KiB of JSON.`,
    body: createServiceBody,
    parameterSet,
    checkFitting: fittingCheck(
      z.object(createServiceBody.shape).partial(),
      ({ id, ...fields }, request) => {
        const rules = { environment: auth.scope(request).environment, parameterSet } as const
        checkPresent<Record<'id' | 'fields' | 'allowed', unknown>>({
          id: id !== undefined && (() => checkedServiceId(id, rules)),
          fields: () => checkedDefinition(fields, rules),
          allowed: () => refuseForbidden(fields, rules),
        })
      },
    ),
    answers: { 201: single(managedServiceSchema) },
    run: (request, { reply, answer }) =>
      idempotency.run({ request, reply }, async (command) => {
        const deps = depsOf(command, decideByKey(request))
        await createService(deps, { ...request.body, ...auth.scope(request) })
        const service = await findService(pool, request.body.id)
        // Not a refusal: the service exists, and the same command will show it.
        if (!service) throw unavailable(new Error('the new service is not in the read model'))
        return answer({ data: managedServiceJson(service) })
      }),
  })
}

function getRoute(app: FastifyInstance, context: GateContext): void {
  endpoint(app, {
    route: `GET ${onePath}`,
    auth: context.auth.requireSecret('gate:services:read'),
    operationId: 'getManagedGateService',
    tag: 'Gate',
    summary: 'Get a Gate service of the organization',
    description: reads,
    params: serviceParams,
    answers: { 200: single(managedServiceSchema) },
    errors: [404, 422],
    run: (request) => serviceAnswer(context, servicePath(context, request)),
  })
}

function updateRoute(app: FastifyInstance, context: GateContext): void {
  const { pool, auth, decideByKey } = context
  const parameterSet = 'gate_service_update'
  endpoint(app, {
    ...gateRoute,
    route: `PATCH ${onePath}`,
    auth: auth.requireSecret('gate:services:manage'),
    operationId: 'updateManagedGateService',
    summary: 'Change a Gate service of the organization',
    description: `${manages} Lists and objects replace what was there as a whole. A change of the name, the website or the logo ends the operator's verification. A disabled service cannot be changed.`,
    params: serviceParams,
    body: updateServiceBody,
    parameterSet,
    checkFitting: fittingCheck(serviceFields, (fields, request) => {
      checkedDefinition(fields, { environment: auth.scope(request).environment, parameterSet })
    }),
    answers: { 200: single(managedServiceSchema) },
    errors: [404, 409],
    // A service of others is not found, whatever the body says.
    async before(request) {
      const service = servicePath(context, request)
      serviceFor(await findService(pool, service.serviceId), service)
    },
    async run(request) {
      const service = servicePath(context, request)
      await changeService(
        { ...context, decide: decideByKey(request) },
        { ...request.body, ...service },
      )
      return serviceAnswer(context, service)
    },
  })
}

function disableRoute(app: FastifyInstance, context: GateContext): void {
  const { auth, decideByKey } = context
  endpoint(app, {
    ...gateRoute,
    route: `DELETE ${onePath}`,
    auth: auth.requireSecret('gate:services:manage'),
    operationId: 'disableManagedGateService',
    summary: 'Disable a Gate service of the organization for good; its id stays taken',
    description: `${manages} Nobody can sign up for it or log in to it any more; what has begun goes on.`,
    params: serviceParams,
    noBody: 'gate_service_disable',
    answers: { 200: single(managedServiceSchema) },
    errors: [404],
    async run(request) {
      const service = servicePath(context, request)
      await disableService({ ...context, decide: decideByKey(request) }, service)
      return serviceAnswer(context, service)
    },
  })
}

/** 404 for what cannot be the id of a service. */
export function servicePath(
  { auth }: GateContext,
  request: FastifyRequest<{ Params: z.output<typeof serviceParams> }>,
): ServicePath {
  const { serviceId } = request.params
  if (!isServiceId(serviceId)) throw noSuchService()
  return { ...auth.scope(request), serviceId }
}

async function serviceAnswer({ pool }: GateContext, path: ServicePath) {
  return { data: managedServiceJson(serviceFor(await findService(pool, path.serviceId), path)) }
}
