import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { matchesEtag } from '../../../infra/http/pages.ts'
import { refusingOffset } from '../../../infra/http/pagination.ts'
import { single } from '../../../infra/http/schemas.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { seldom } from '../../../infra/timing.ts'
import { listRegistry, registryVersion } from '../../../projections/gate/queries.ts'
import type { GateContext } from '../context.ts'
import {
  findOpenService,
  type RegisteredService,
  registryEntryJson,
  systemService,
} from './registered.ts'
import { completeList, registryEntrySchema, serviceParams } from './schemas.ts'

const path = '/v1/gate/registry'

export function registryRoutes(app: FastifyInstance, context: GateContext): void {
  listRoute(app, context)
  getRoute(app, context)
}

function listRoute(app: FastifyInstance, { pool, publicUrl }: GateContext): void {
  const list = createRegistryList(pool, publicUrl)
  endpoint(app, {
    route: `GET ${path}`,
    auth: [],
    operationId: 'listGateRegistryServices',
    tag: 'Gate',
    summary: 'List the services that agents can sign up for, by id',
    description:
      'All that are active and discoverable and of active organizations, the built-in one of this server among them. The ETag is another when one of them is; with it in If-None-Match an unchanged list is not sent again.',
    before: refusingOffset('the list is one page'),
    answers: { 200: completeList(registryEntrySchema), 304: z.null().describe('As it was.') },
    errors: [422],
    async run(request, { reply }) {
      const { data, etag } = await list()
      reply.headers({ etag, 'cache-control': 'no-cache' })
      if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send()
      const meta = JSON.stringify({ request_id: request.id })
      return reply.type('application/json; charset=utf-8').send(`{"data":${data},"meta":${meta}}`)
    },
  })
}

function getRoute(app: FastifyInstance, { pool, publicUrl }: GateContext): void {
  endpoint(app, {
    route: `GET ${path}/:serviceId`,
    auth: [],
    operationId: 'getGateRegistryService',
    tag: 'Gate',
    summary: 'Get a service that agents can sign up for',
    params: serviceParams,
    answers: { 200: single(registryEntrySchema) },
    errors: [404, 422],
    async run({ params: { serviceId } }) {
      return { data: registryEntryJson(await findOpenService(pool, { serviceId, publicUrl })) }
    },
  })
}

interface RegistryList {
  version: string
  /** A JSON array of the entries, by id. */
  data: string
  etag: string
}

/** Reads the list again only when its version changed, once for all concurrent requests. */
export function createRegistryList(db: Db, publicUrl: string): () => Promise<RegistryList> {
  let cached: RegistryList | undefined

  async function read(): Promise<RegistryList> {
    const { version, services } = await listRegistry(db)
    cached = { version, ...renderList([systemService(publicUrl), ...services]) }
    return cached
  }

  const readShared = seldom(0, read)
  return async () => {
    const version = await registryVersion(db)
    if (cached?.version === version) return cached
    const shared = await readShared()
    // A reading that began before this request may be of an earlier state.
    return shared.version === version ? shared : read()
  }
}

function renderList(services: RegisteredService[]): Pick<RegistryList, 'data' | 'etag'> {
  const data = JSON.stringify(services.toSorted(byId).map(registryEntryJson))
  const hash = createHash('sha256').update(data).digest('base64url').slice(0, 22)
  // Weak: each answer has a request id of its own.
  return { data, etag: `W/"${hash}"` }
}

// As Postgres does it, which sorts by code points; ids are ASCII.
const byId = (a: RegisteredService, b: RegisteredService): number => (a.id < b.id ? -1 : 1)
