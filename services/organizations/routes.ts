import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { requireUsableOrganization } from '../../infra/access/organization.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { organizationParams, single } from '../../infra/http/schemas.ts'
import { validMembersCheck } from '../../infra/http/validation.ts'
import { type CommandRouteOptions, commandDeps } from '../../infra/idempotency/idempotency.ts'
import type { Db } from '../../infra/postgres/pool.ts'
import { findOrganization } from '../../projections/organizations/queries.ts'
import { findDataPolicy } from '../../projections/policies/queries.ts'
import { agentDirectoryRoutes } from './agent-directory-routes.ts'
import { checkOrganizationFields } from './checked-input.ts'
import { changeOrganization, createOrganization } from './commands.ts'
import { decideOrganizationUpdate } from './decide-organization.ts'
import { keyRoutes } from './key-routes.ts'
import {
  createOrganizationBody,
  dataPolicyJson,
  organizationJson,
  organizationSchema,
  updateOrganizationBody,
} from './schemas.ts'

const tag = 'Organizations'

/** Adds the routes for organizations, their API keys and agent directories. */
export function organizationRoutes(app: FastifyInstance, options: CommandRouteOptions): void {
  createRoute(app, options)
  getRoute(app, options)
  updateRoute(app, options)
  keyRoutes(app, options)
  agentDirectoryRoutes(app, options)
}

function createRoute(app: FastifyInstance, options: CommandRouteOptions): void {
  const { pool, auth, idempotency } = options
  endpoint(app, {
    route: 'POST /v1/organizations',
    auth: auth.requireSecret('organizations:create'),
    operationId: 'createOrganization',
    tag,
    summary: 'Create an organization',
    description:
      'Requires the `organizations:create` secret-key scope. The calling key gets no access to the new organization.',
    body: createOrganizationBody,
    parameterSet: 'organization_create',
    checkValidMembers: validMembersCheck(
      z.object(createOrganizationBody.shape).partial(),
      (fields) => checkOrganizationFields(fields, 'organization_create'),
    ),
    responses: { 201: single(organizationSchema) },
    run: (request, { reply, toResponse }) =>
      idempotency.run({ request, reply }, async (command) => {
        const deps = commandDeps(options, request, command)
        const { organizationId } = await createOrganization(deps, request.body)
        return toResponse(await organizationResponse(pool, organizationId))
      }),
  })
}

function getRoute(app: FastifyInstance, { pool, auth }: CommandRouteOptions): void {
  endpoint(app, {
    route: 'GET /v1/organizations/:organizationId',
    auth: auth.requireOwnOrganization('organizations:read'),
    operationId: 'getOrganization',
    tag,
    summary: 'Retrieve an organization',
    description:
      'Requires the `organizations:read` secret-key scope and a key of this organization.',
    params: organizationParams,
    responses: { 200: single(organizationSchema) },
    errors: [404],
    run: ({ params }) => organizationResponse(pool, params.organizationId),
  })
}

function updateRoute(app: FastifyInstance, options: CommandRouteOptions): void {
  const { pool, auth } = options
  endpoint(app, {
    route: 'PATCH /v1/organizations/:organizationId',
    auth: auth.requireOwnOrganization('organizations:update', {
      subject: 'Name and status of the organization',
      allowsTestKeys: true,
    }),
    operationId: 'updateOrganization',
    tag,
    summary: 'Update an organization',
    description:
      "Requires the `organizations:update` secret-key scope. Suspending or deleting the organization disables all its keys, so it can't be undone through the API; ask the operator of the server.",
    params: organizationParams,
    body: updateOrganizationBody,
    parameterSet: 'organization_update',
    checkValidMembers: validMembersCheck(z.object(updateOrganizationBody.shape), (fields) =>
      checkOrganizationFields(fields, 'organization_update'),
    ),
    responses: { 200: single(organizationSchema) },
    errors: [404],
    async run(request) {
      const { organizationId } = request.params
      await changeOrganization(
        commandDeps(options, request),
        organizationId,
        (organization, change) =>
          decideOrganizationUpdate(organization, { ...request.body, ...change, by: 'key' }),
      )
      return organizationResponse(pool, organizationId)
    },
  })
}

async function organizationResponse(db: Db, organizationId: string) {
  const organization = requireUsableOrganization(
    await findOrganization(db, organizationId),
    'operator',
  )
  const data_policy = dataPolicyJson(await findDataPolicy(db, organizationId))
  return { data: { ...organizationJson(organization), data_policy } }
}
