import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { errorResponses, organizationParams, single } from '../../infra/http/schemas.ts'
import { fittingCheck } from '../../infra/http/validation.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { findOrganization, organizationFor } from '../../projections/organizations/queries.ts'
import { findDataPolicy } from '../../projections/policies/queries.ts'
import { checkOrganizationFields } from './checked-input.ts'
import { createOrganization, updateOrganization } from './commands.ts'
import { type KeyRouteOptions, keyRoutes } from './key-routes.ts'
import {
  createOrganizationBody,
  dataPolicyJson,
  organizationJson,
  organizationSchema,
  updateOrganizationBody,
} from './schemas.ts'

export type OrganizationOptions = KeyRouteOptions

const tags = ['Organizations']
const security = [{ secretKey: [] }]

/** `/v1/organizations`, `/v1/organizations/{organizationId}`, and its API keys below `/api-keys`. */
export function organizationRoutes(app: FastifyInstance, options: OrganizationOptions): void {
  createRoute(app, options)
  getRoute(app, options)
  updateRoute(app, options)
  keyRoutes(app, options)
}

function createRoute(app: FastifyInstance, options: OrganizationOptions): void {
  const { pool, auth, idempotency, decideAs, clock } = options
  const schema = {
    operationId: 'createOrganization',
    summary: 'Create an organization',
    description:
      'Requires the `organizations:create` secret-key scope. The calling key gets no access to the new organization.',
    tags,
    security,
    body: createOrganizationBody,
    response: {
      201: single(organizationSchema),
      ...errorResponses(400, 401, 403, 409, 413, 415, 422),
    },
  }
  const onRequest = auth.requireSecret('organizations:create')
  const config = {
    parameterSet: 'organization_create',
    checkFitting: fittingCheck(z.object(createOrganizationBody.shape).partial(), (fields) =>
      checkOrganizationFields(fields, 'organization_create'),
    ),
  }
  app.post<{ Body: z.output<typeof createOrganizationBody> }>(
    '/v1/organizations',
    { schema, onRequest, config },
    (request, reply) =>
      idempotency.run({ request, reply }, async ({ random, now: idTime }) => {
        const decide = decideAs(auth.actor(request), request)
        const { organizationId } = await createOrganization({ decide, clock, random, idTime }, request.body)
        return { status: 201, body: await organizationBody(pool, organizationId, request.id) }
      }),
  )
}

function getRoute(app: FastifyInstance, { pool, auth }: OrganizationOptions): void {
  const schema = {
    operationId: 'getOrganization',
    summary: 'Retrieve one organization',
    description: "Requires the `organizations:read` secret-key scope and a key of the organization's own.",
    tags,
    security,
    params: organizationParams,
    response: { 200: single(organizationSchema), ...errorResponses(401, 403, 404) },
  }
  const onRequest = auth.requireOwnOrganization('organizations:read')
  app.get<Params>('/v1/organizations/:organizationId', { schema, onRequest }, (request) =>
    organizationBody(pool, request.params.organizationId, request.id),
  )
}

function updateRoute(
  app: FastifyInstance,
  { pool, auth, decideAs, clock, random }: OrganizationOptions,
): void {
  const schema = {
    operationId: 'updateOrganization',
    summary: 'Rename an organization or change its status',
    description:
      'Requires the `organizations:update` secret-key scope. Once it is suspended or deleted, all keys of the organization are refused, so that its status cannot be set back here.',
    tags,
    security,
    params: organizationParams,
    body: updateOrganizationBody,
    response: { 200: single(organizationSchema), ...errorResponses(400, 401, 403, 404, 413, 415, 422) },
  }
  const onRequest = auth.requireOwnOrganization('organizations:update')
  const config = {
    parameterSet: 'organization_update',
    checkFitting: fittingCheck(z.object(updateOrganizationBody.shape), (fields) =>
      checkOrganizationFields(fields, 'organization_update'),
    ),
  }
  app.patch<Params & Update>(
    '/v1/organizations/:organizationId',
    { schema, onRequest, config },
    async (request) => {
      const { organizationId } = request.params
      const decide = decideAs(auth.actor(request), request)
      await updateOrganization({ decide, clock, random }, { ...request.body, organizationId, by: 'key' })
      return organizationBody(pool, organizationId, request.id)
    },
  )
}

interface Params {
  Params: z.output<typeof organizationParams>
}

interface Update {
  Body: z.output<typeof updateOrganizationBody>
}

async function organizationBody(db: Db, organizationId: string, requestId: string) {
  const organization = organizationFor(await findOrganization(db, organizationId), 'operator')
  const data_policy = dataPolicyJson(await findDataPolicy(db, organizationId))
  return { data: { ...organizationJson(organization), data_policy }, meta: { request_id: requestId } }
}
