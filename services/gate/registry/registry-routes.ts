import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { matchesEtag } from '../../../infra/http/pages.ts'
import { refusingOffset } from '../../../infra/http/pagination.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import type { RegistryContext } from './context.ts'
import { findOpen } from './registered.ts'
import { createRegistryList } from './registry-list.ts'
import { completeList, registryEntrySchema, serviceParams } from './schemas.ts'
import { registryEntryJson } from './shapes.ts'

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
    description:
      'All that are active and discoverable and of active organizations, the built-in one of this server among them. The ETag is another when one of them is; with it in If-None-Match an unchanged list is not sent again.',
    tags,
    response: {
      200: completeList(registryEntrySchema),
      304: z.null().describe('As it was.'),
      ...errorResponses(422),
    },
  }
  const list = createRegistryList(pool, { publicUrl })
  const preValidation = refusingOffset('no offset: the list is one page')
  app.get(path, { schema, preValidation }, async (request, reply) => {
    const { data, etag } = await list()
    reply.headers({ etag, 'cache-control': 'no-cache' })
    if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send()
    const meta = JSON.stringify({ request_id: request.id })
    return reply.type('application/json; charset=utf-8').send(`{"data":${data},"meta":${meta}}`)
  })
}

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
    const service = await findOpen(pool, { serviceId, publicUrl })
    return { data: registryEntryJson(service), meta: { request_id: request.id } }
  })
}
