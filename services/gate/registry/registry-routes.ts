import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import { listRegistry } from '../../../projections/gate/service-queries.ts'
import type { RegistryContext } from './context.ts'
import { findRegistered, openService, type RegisteredService } from './registered.ts'
import { completeList, registryEntrySchema, serviceParams } from './schemas.ts'
import { registryEntryJson } from './shapes.ts'
import { systemService } from './system-service.ts'

const tags = ['Gate']
const path = '/v1/gate/registry'

/** What anyone may see: the services that agents can sign up for. */
export function registryRoutes(app: FastifyInstance, context: RegistryContext): void {
  listRoute(app, context)
  getRoute(app, context)
}

function listRoute(app: FastifyInstance, { pool, publicUrl }: RegistryContext): void {
  const schema = {
    operationId: 'listGateRegistryServices',
    summary: 'List the services that agents can sign up for, by id',
    description: 'All that are active and discoverable, the built-in one of this server among them.',
    tags,
    response: { 200: completeList(registryEntrySchema), ...errorResponses(422) },
  }
  app.get(path, { schema }, async (request) => {
    const services: RegisteredService[] = [systemService(publicUrl), ...(await listRegistry(pool))]
    const data = services.toSorted(byId).map(registryEntryJson)
    return { data, meta: { request_id: request.id } }
  })
}

// As Postgres does it, which sorts by code points; ids are ASCII.
const byId = (a: RegisteredService, b: RegisteredService): number => (a.id < b.id ? -1 : 1)

function getRoute(app: FastifyInstance, { pool, publicUrl }: RegistryContext): void {
  const schema = {
    operationId: 'getGateRegistryService',
    summary: 'Get a service that agents can sign up for',
    tags,
    params: serviceParams,
    response: { 200: single(registryEntrySchema), ...errorResponses(404, 422) },
  }
  app.get<{ Params: z.output<typeof serviceParams> }>(`${path}/:serviceId`, { schema }, async (request) => {
    const { serviceId } = request.params
    const service = openService(await findRegistered(pool, { serviceId, publicUrl }))
    return { data: registryEntryJson(service), meta: { request_id: request.id } }
  })
}
