import { createHash } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { matchesEtag } from '../../../infra/http/pages.ts'
import { createOffsetCheck } from '../../../infra/http/pagination.ts'
import { single } from '../../../infra/http/schemas.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { cachedFor } from '../../../infra/timing.ts'
import { listRegistry, readRegistryVersion } from '../../../projections/gate/queries.ts'
import type { GateContext } from '../context.ts'
import {
  loadOpenService,
  type RegisteredService,
  registryEntryJson,
  systemService,
} from './registered-services.ts'
import { registryEntrySchema, serviceParams, unpaginatedListSchema } from './schemas.ts'

const path = '/v1/gate/registry'

export function registryRoutes(app: FastifyInstance, context: GateContext): void {
  listRoute(app, context)
  getRoute(app, context)
}

function listRoute(app: FastifyInstance, { pool, publicUrl }: GateContext): void {
  const list = createRegistryReader(pool, publicUrl)
  endpoint(app, {
    route: `GET ${path}`,
    auth: [],
    operationId: 'listGateRegistryServices',
    tag: 'Gate',
    summary: 'List registered services',
    description:
      'Needs no key. Returns all services that agents can sign up for, ordered by id: active, discoverable and owned by an active organization, plus the built-in service of this server. Send the ETag in `If-None-Match` to get 304 while the list is unchanged.',
    beforeValidation: createOffsetCheck('the list is one page'),
    responses: {
      200: unpaginatedListSchema(registryEntrySchema),
      304: z.null().describe('Unchanged since the given ETag.'),
    },
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
    summary: 'Retrieve a registered service',
    description: 'Needs no key. 404 unless agents can sign up for the service.',
    params: serviceParams,
    responses: { 200: single(registryEntrySchema) },
    errors: [404, 422],
    async run({ params: { serviceId } }) {
      return { data: registryEntryJson(await loadOpenService(pool, { serviceId, publicUrl })) }
    },
  })
}

interface RegistryList {
  version: string
  /** JSON array of the entries, ordered by id. */
  data: string
  etag: string
}

/** Returns a function that reads the list, cached until its version changes. Concurrent calls share one query. */
export function createRegistryReader(db: Db, publicUrl: string): () => Promise<RegistryList> {
  let cached: RegistryList | undefined

  async function read(): Promise<RegistryList> {
    const { version, services } = await listRegistry(db)
    cached = { version, ...renderList([systemService(publicUrl), ...services]) }
    return cached
  }

  const readShared = cachedFor(0, read)
  return async () => {
    const version = await readRegistryVersion(db)
    if (cached?.version === version) return cached
    const shared = await readShared()
    // A shared query that started before this call can return an older version.
    return shared.version === version ? shared : read()
  }
}

function renderList(services: RegisteredService[]): Pick<RegistryList, 'data' | 'etag'> {
  const data = JSON.stringify(services.toSorted(byId).map(registryEntryJson))
  const hash = createHash('sha256').update(data).digest('base64url').slice(0, 22)
  // Weak, because each response has its own request id.
  return { data, etag: `W/"${hash}"` }
}

// Sorts by code points, as Postgres does; ids are ASCII.
const byId = (a: RegisteredService, b: RegisteredService): number => (a.id < b.id ? -1 : 1)
