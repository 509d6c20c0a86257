import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { requireUsableOrganization } from '../../infra/access/organization.ts'
import type { Config } from '../../infra/config.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { organizationParams, single } from '../../infra/http/schemas.ts'
import { validMembersCheck } from '../../infra/http/validation.ts'
import { type CommandRouteOptions, commandDeps } from '../../infra/idempotency/idempotency.ts'
import { findOrganization } from '../../projections/organizations/queries.ts'
import { findDataPolicy } from '../../projections/policies/queries.ts'
import { agentDirectoryRoutes } from './agent-directory-routes.ts'
import { checkOrganizationFields } from './checked-input.ts'
import { changeOrganization, createOrganization } from './commands.ts'
import { retentionOf } from './decide-data-policy.ts'
import { decideOrganizationUpdate } from './decide-organization.ts'
import { keyRoutes } from './key-routes.ts'
import { defaultRetentionOf } from './retention-scheduler.ts'
import {
  createOrganizationBody,
  dataPolicyJson,
  keptDaysJson,
  organizationJson,
  organizationSchema,
  rateLimitsJson,
  updateOrganizationBody,
} from './schemas.ts'

const tag = 'Organizations'

interface OrganizationRouteOptions extends CommandRouteOptions {
  config: Config
}

/** Adds the routes for organizations, their API keys and agent directories. */
export function organizationRoutes(app: FastifyInstance, options: OrganizationRouteOptions): void {
  createRoute(app, options)
  getRoute(app, options)
  updateRoute(app, options)
  keyRoutes(app, options)
  agentDirectoryRoutes(app, options)
}

function createRoute(app: FastifyInstance, options: OrganizationRouteOptions): void {
  const { auth, idempotency } = options
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
        return toResponse(await organizationResponse(options, organizationId))
      }),
  })
}

function getRoute(app: FastifyInstance, options: OrganizationRouteOptions): void {
  const { auth } = options
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
    run: ({ params }) => organizationResponse(options, params.organizationId),
  })
}

function updateRoute(app: FastifyInstance, options: OrganizationRouteOptions): void {
  const { auth } = options
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
      return organizationResponse(options, organizationId)
    },
  })
}

async function organizationResponse(
  { pool, config }: OrganizationRouteOptions,
  organizationId: string,
) {
  const organization = requireUsableOrganization(
    await findOrganization(pool, organizationId),
    'operator',
  )
  const policy = await findDataPolicy(pool, organizationId)
  const kept_days = keptDaysJson(retentionOf(policy, defaultRetentionOf(config)))
  const data_policy = { ...dataPolicyJson(policy), kept_days }
  const rate_limits = rateLimitsJson(organization, config)
  return { data: { ...organizationJson(organization), data_policy, rate_limits } }
}
