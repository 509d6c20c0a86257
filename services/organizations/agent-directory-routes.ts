import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { endpoint } from '../../infra/http/endpoint.ts'
import { list, organizationParams, single } from '../../infra/http/schemas.ts'
import { validMembersCheck } from '../../infra/http/validation.ts'
import { type CommandRouteOptions, commandDeps } from '../../infra/idempotency/idempotency.ts'
import { findAgentDirectories } from '../../projections/policies/queries.ts'
import type { AgentDirectoryRow } from '../../projections/policies/tables.ts'
import { addAgentDirectory, removeAgentDirectory } from './agent-directories.ts'
import {
  checkDirectoryFields,
  checkedDirectory,
  directoryLimits,
} from './decide-agent-directories.ts'
import { agentDirectorySchema, directoryDomain } from './schemas.ts'

const tag = 'Agents'
const setting = { subject: 'Agent directories' }
const path = '/v1/organizations/:organizationId/agent-directories'

const addBody = z.strictObject({
  domain: directoryDomain,
  name: z
    .string()
    .meta({ minLength: 1, maxLength: directoryLimits.name })
    .nullable()
    .optional()
    .describe('Name to show as `agent.provider` of signed sessions. Default: the domain.'),
})

const directoryParams = z.object({
  ...organizationParams.shape,
  domain: z.string().meta({ pattern: '^[A-Za-z0-9.-]+(:[0-9]+)?$' }),
})

/** Adds the routes for key directories, whose keys the organization trusts to sign agents' requests. */
export function agentDirectoryRoutes(app: FastifyInstance, options: CommandRouteOptions): void {
  listRoute(app, options)
  addRoute(app, options)
  removeRoute(app, options)
}

function listRoute(app: FastifyInstance, { pool, auth }: CommandRouteOptions): void {
  endpoint(app, {
    route: `GET ${path}`,
    auth: auth.requireOwnOrganization('organizations:read'),
    operationId: 'listAgentDirectories',
    tag,
    summary: 'List trusted agent directories',
    description: `Requires the \`organizations:read\` secret-key scope. Returns all key directories that the organization trusts (at most ${directoryLimits.directories}) on one page, ordered by domain.`,
    params: organizationParams,
    responses: { 200: list(agentDirectorySchema) },
    async run({ params: { organizationId } }) {
      return listJson(await findAgentDirectories(pool, organizationId))
    },
  })
}

function addRoute(app: FastifyInstance, options: CommandRouteOptions): void {
  const { pool, auth, idempotency } = options
  endpoint(app, {
    route: `POST ${path}`,
    auth: auth.requireOwnOrganization('organizations:update', setting),
    operationId: 'addAgentDirectory',
    tag,
    summary: 'Trust an agent directory',
    description:
      'Requires the `organizations:update` secret-key scope and a live key, since directories apply to both environments. Sessions signed with a key of the directory get a `verified` agent. Adding a directory again changes its name.',
    params: organizationParams,
    body: addBody,
    parameterSet: 'agent_directory_add',
    checkValidMembers: validMembersCheck(z.object(addBody.shape).partial(), checkDirectoryFields),
    responses: { 201: single(agentDirectorySchema) },
    run: (request, { reply, toResponse }) =>
      idempotency.run({ request, reply }, async (command) => {
        const { organizationId } = request.params
        const deps = commandDeps(options, request, command)
        await addAgentDirectory(deps, { organizationId, by: 'key', ...request.body })
        const { domain } = checkedDirectory(request.body)
        const added = (await findAgentDirectories(pool, organizationId)).find(
          (directory) => directory.domain === domain,
        )
        return toResponse({ data: added && directoryJson(added) })
      }),
  })
}

function removeRoute(app: FastifyInstance, options: CommandRouteOptions): void {
  const { pool, auth } = options
  endpoint(app, {
    route: `DELETE ${path}/:domain`,
    auth: auth.requireOwnOrganization('organizations:update', setting),
    operationId: 'removeAgentDirectory',
    tag,
    summary: 'Remove an agent directory',
    description:
      'Requires the `organizations:update` secret-key scope and a live key. Returns the remaining directories. Earlier decisions are not changed.',
    params: directoryParams,
    rejectBodyAs: 'agent_directory_remove',
    responses: { 200: list(agentDirectorySchema) },
    errors: [404],
    async run(request) {
      const { organizationId, domain } = request.params
      await removeAgentDirectory(commandDeps(options, request), {
        organizationId,
        domain,
        by: 'key',
      })
      return listJson(await findAgentDirectories(pool, organizationId))
    },
  })
}

const listJson = (directories: AgentDirectoryRow[]) => ({
  data: directories.map(directoryJson),
  pagination: { limit: directoryLimits.directories, has_more: false },
})

/** Returns a directory for the API and the CLI. */
export function directoryJson({ domain, name, changed_at: addedAt }: AgentDirectoryRow) {
  return {
    object: 'agent_directory' as const,
    domain,
    name,
    added_at: new Date(addedAt).toISOString(),
  }
}
