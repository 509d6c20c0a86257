import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { checkPresent } from '../../../infra/errors/check-all.ts'
import { unavailable } from '../../../infra/errors/errors.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { createOffsetCheck } from '../../../infra/http/pagination.ts'
import { single } from '../../../infra/http/schemas.ts'
import { validMembersCheck } from '../../../infra/http/validation.ts'
import { findService, listServices } from '../../../projections/gate/queries.ts'
import type { GateContext, GateManagement } from '../context.ts'
import { gateRoute } from '../requests.ts'
import { changeService, createService, disableService } from './commands.ts'
import { noSuchService, requireOwnedService, type ServicePath } from './decide.ts'
import { checkedServiceFields } from './definition.ts'
import { checkedServiceId, isServiceId } from './fields.ts'
import { refuseForbiddenValues } from './forbidden.ts'
import { managedServiceJson } from './registered-services.ts'
import {
  createServiceBody,
  managedServiceSchema,
  serviceFields,
  serviceParams,
  unpaginatedListSchema,
  updateServiceBody,
} from './schemas.ts'

const path = '/v1/gate/services'
const itemPath = `${path}/:serviceId` as const
const requiresRead = 'Requires the `gate:services:read` secret-key scope.'
const requiresManage = 'Requires the `gate:services:manage` secret-key scope.'

export function serviceRoutes(app: FastifyInstance, context: GateContext): void {
  createRoute(app, context)
  getRoute(app, context)
  updateRoute(app, context)
  disableRoute(app, context)
}

export function listServicesRoute(app: FastifyInstance, { pool, auth }: GateManagement): void {
  endpoint(app, {
    route: `GET ${path}`,
    auth: auth.requireSecret('gate:services:read'),
    operationId: 'listManagedGateServices',
    tag: 'Gate',
    summary: 'List Gate services',
    description: `${requiresRead} Returns all services of the organization in the key's environment on one page, newest first, including disabled ones.`,
    beforeValidation: createOffsetCheck('the list is one page'),
    responses: { 200: unpaginatedListSchema(managedServiceSchema) },
    errors: [422],
    async run(request) {
      return { data: (await listServices(pool, auth.dataScope(request))).map(managedServiceJson) }
    },
  })
}

function createRoute(app: FastifyInstance, context: GateContext): void {
  const { pool, auth, idempotency, decideAsCaller, depsOf } = context
  const parameterSet = 'gate_service_create'
  endpoint(app, {
    ...gateRoute,
    route: `POST ${path}`,
    auth: auth.requireSecret('gate:services:manage'),
    operationId: 'createManagedGateService',
    summary: 'Register a Gate service',
    description: `${requiresManage} The service is active from the start and belongs to the calling key's environment. An organization can have five services in both environments together, including disabled ones, of at most 16 KiB of JSON each. Ids are unique across the server and never reused; ids that differ only in runs of - and _, such as acme-mail and acme_mail, count as equal.`,
    body: createServiceBody,
    parameterSet,
    checkValidMembers: validMembersCheck(
      z.object(createServiceBody.shape).partial(),
      ({ id, ...fields }, request) => {
        const rules = { environment: auth.dataScope(request).environment, parameterSet } as const
        checkPresent<Record<'id' | 'fields' | 'allowed', unknown>>({
          id: id !== undefined && (() => checkedServiceId(id, rules)),
          fields: () => checkedServiceFields(fields, rules),
          allowed: () => refuseForbiddenValues(fields, rules),
        })
      },
    ),
    responses: { 201: single(managedServiceSchema) },
    run: (request, { reply, toResponse }) =>
      idempotency.run({ request, reply }, async (command) => {
        const deps = depsOf(command, decideAsCaller(request))
        await createService(deps, { ...request.body, ...auth.dataScope(request) })
        const service = await findService(pool, request.body.id)
        // Retryable, because a repeated request returns the service.
        if (!service) throw unavailable(new Error('the new service is not in the read model'))
        return toResponse({ data: managedServiceJson(service) })
      }),
  })
}

function getRoute(app: FastifyInstance, context: GateContext): void {
  endpoint(app, {
    route: `GET ${itemPath}`,
    auth: context.auth.requireSecret('gate:services:read'),
    operationId: 'getManagedGateService',
    tag: 'Gate',
    summary: 'Retrieve a Gate service',
    description: requiresRead,
    params: serviceParams,
    responses: { 200: single(managedServiceSchema) },
    errors: [404, 422],
    run: (request) => serviceResponse(context, requireServicePath(context, request)),
  })
}

function updateRoute(app: FastifyInstance, context: GateContext): void {
  const { pool, auth, decideAsCaller } = context
  const parameterSet = 'gate_service_update'
  endpoint(app, {
    ...gateRoute,
    route: `PATCH ${itemPath}`,
    auth: auth.requireSecret('gate:services:manage'),
    operationId: 'updateManagedGateService',
    summary: 'Update a Gate service',
    description: `${requiresManage} Lists and objects are replaced as a whole. Changing the name, website or logo ends the operator's verification. A disabled service can't be changed.`,
    params: serviceParams,
    body: updateServiceBody,
    parameterSet,
    checkValidMembers: validMembersCheck(serviceFields, (fields, request) => {
      checkedServiceFields(fields, {
        environment: auth.dataScope(request).environment,
        parameterSet,
      })
    }),
    responses: { 200: single(managedServiceSchema) },
    errors: [404, 409],
    // 404 for another organization's service takes precedence over 422 for the body.
    async beforeValidation(request) {
      const service = requireServicePath(context, request)
      requireOwnedService(await findService(pool, service.serviceId), service)
    },
    async run(request) {
      const service = requireServicePath(context, request)
      await changeService(
        { ...context, decide: decideAsCaller(request) },
        { ...request.body, ...service },
      )
      return serviceResponse(context, service)
    },
  })
}

function disableRoute(app: FastifyInstance, context: GateContext): void {
  const { auth, decideAsCaller } = context
  endpoint(app, {
    ...gateRoute,
    route: `DELETE ${itemPath}`,
    auth: auth.requireSecret('gate:services:manage'),
    operationId: 'disableManagedGateService',
    summary: 'Disable a Gate service',
    description: `${requiresManage} Permanent: the service can't be enabled again, and its id stays taken. New signups and logins are refused; pending ones continue.`,
    params: serviceParams,
    rejectBodyAs: 'gate_service_disable',
    responses: { 200: single(managedServiceSchema) },
    errors: [404],
    async run(request) {
      const service = requireServicePath(context, request)
      await disableService({ ...context, decide: decideAsCaller(request) }, service)
      return serviceResponse(context, service)
    },
  })
}

/** Returns the organization, environment and service id of the request. Throws 404 if the id is malformed. */
export function requireServicePath(
  { auth }: GateContext,
  request: FastifyRequest<{ Params: z.output<typeof serviceParams> }>,
): ServicePath {
  const { serviceId } = request.params
  if (!isServiceId(serviceId)) throw noSuchService()
  return { ...auth.dataScope(request), serviceId }
}

async function serviceResponse({ pool }: GateContext, path: ServicePath) {
  return {
    data: managedServiceJson(requireOwnedService(await findService(pool, path.serviceId), path)),
  }
}
