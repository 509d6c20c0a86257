import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { endpoint } from '../../infra/http/endpoint.ts'
import { list, organizationParams, single, timestamp } from '../../infra/http/schemas.ts'
import { fittingCheck } from '../../infra/http/validation.ts'
import { type CommandRouteOptions, commandDeps } from '../../infra/idempotency/idempotency.ts'
import { findAgentDirectories } from '../../projections/policies/queries.ts'
import type { AgentDirectoryRow } from '../../projections/policies/tables.ts'
import { addAgentDirectory, removeAgentDirectory } from './agent-directories.ts'
import {
  checkDirectoryFields,
  checkedDirectory,
  directoryLimits,
} from './decide-agent-directories.ts'

const tag = 'Agents'
const setting = { subject: 'Agent directories' }
const path = '/v1/organizations/:organizationId/agent-directories'

const domain = z
  .string()
  .describe('As `agent.example`, or `agent.example:8443`. Stored in lower case.')

const directorySchema = z
  .strictObject({
    object: z.literal('agent_directory'),
    domain,
    name: z.string().nullable().describe('What sessions call whoever signs; null = by the domain.'),
    added_at: timestamp,
  })
  .meta({ id: 'AgentDirectory' })

const addBody = z.strictObject({
  domain,
  name: z
    .string()
    .meta({ minLength: 1, maxLength: directoryLimits.name })
    .nullable()
    .optional()
    .describe('The `agent.provider` of sessions that it signed. Default: the domain.'),
})

const directoryParams = z.object({
  ...organizationParams.shape,
  domain: z.string().meta({ pattern: '^[A-Za-z0-9.-]+(:[0-9]+)?$' }),
})

/** Whose signatures prove to an organization who an agent is. */
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
    summary: 'List the directories of keys whose agents the organization trusts',
    description: `Requires the \`organizations:read\` secret-key scope. All of them, by domain: at most ${directoryLimits.directories}.`,
    params: organizationParams,
    answers: { 200: list(directorySchema) },
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
    summary: 'Trust the agents whose keys are in a directory',
    description:
      'Requires the `organizations:update` secret-key scope and a live key, since directories apply to live and test. A session that such a key signed is `verified`. One that is there already gets the name.',
    params: organizationParams,
    body: addBody,
    parameterSet: 'agent_directory_add',
    checkFitting: fittingCheck(z.object(addBody.shape).partial(), checkDirectoryFields),
    answers: { 201: single(directorySchema) },
    run: (request, { reply, answer }) =>
      idempotency.run({ request, reply }, async (command) => {
        const { organizationId } = request.params
        const deps = commandDeps(options, request, command)
        await addAgentDirectory(deps, { organizationId, by: 'key', ...request.body })
        const { domain } = checkedDirectory(request.body)
        const added = (await findAgentDirectories(pool, organizationId)).find(
          (one) => one.domain === domain,
        )
        return answer({ data: added && directoryJson(added) })
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
    summary: 'End the trust in the agents of a directory',
    description:
      'Requires the `organizations:update` secret-key scope and a live key. Answers with those that are left. Decisions that were made stay as they are.',
    params: directoryParams,
    noBody: 'agent_directory_remove',
    answers: { 200: list(directorySchema) },
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

/** A directory as the API and the command line show it. */
export function directoryJson({ domain, name, changed_at }: AgentDirectoryRow) {
  return {
    object: 'agent_directory' as const,
    domain,
    name,
    added_at: new Date(changed_at).toISOString(),
  }
}
