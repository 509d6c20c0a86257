import type { FastifyInstance } from 'fastify'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { list, organizationParams, pathId, single } from '../../../infra/http/schemas.ts'
import { type CommandRouteOptions, commandDeps } from '../../../infra/idempotency/idempotency.ts'
import { addView, deleteView, updateView } from './commands.ts'
import { requireView, viewLimits } from './decide.ts'
import { createViewBody, updateViewBody, viewJson, viewSchema } from './schemas.ts'
import { findViews } from './store.ts'

const tag = 'Sessions'
const path = '/v1/organizations/:organizationId/views'
const viewParams = organizationParams.extend({ viewId: pathId('view') })
const manages = 'Requires the `views:manage` secret-key scope.'

/** Adds the routes for saved views of the session list. A view belongs to the environment of the caller. */
export function viewRoutes(app: FastifyInstance, options: CommandRouteOptions): void {
  const { pool, auth, idempotency } = options
  const canManage = auth.requireOwnOrganization('views:manage')
  endpoint(app, {
    route: `GET ${path}`,
    auth: auth.requireOwnOrganization('sessions:list'),
    operationId: 'listViews',
    tag,
    summary: 'List saved views',
    description: `Requires the \`sessions:list\` secret-key scope. Returns all saved views of the environment (at most ${viewLimits.views}) on one page, oldest first.`,
    params: organizationParams,
    responses: { 200: list(viewSchema) },
    async run(request) {
      const views = await findViews(pool, auth.dataScope(request))
      return {
        data: views.map(viewJson),
        pagination: { limit: viewLimits.views, has_more: false },
      }
    },
  })
  endpoint(app, {
    route: `POST ${path}`,
    auth: canManage,
    operationId: 'createView',
    tag,
    summary: 'Save a view',
    description: `${manages} Saves filters of the session list under a name. Returns 409 if the name is taken, or if the environment has ${viewLimits.views} views.`,
    params: organizationParams,
    body: createViewBody,
    responses: { 201: single(viewSchema) },
    run: (request, { reply, toResponse }) =>
      idempotency.run({ request, reply }, async (command) => {
        const scope = auth.dataScope(request)
        const id = await addView(commandDeps(options, request, command), scope, request.body)
        return toResponse({ data: viewJson(requireView(await findViews(pool, scope), id)) })
      }),
  })
  endpoint(app, {
    route: `PATCH ${path}/:viewId`,
    auth: canManage,
    operationId: 'updateView',
    tag,
    summary: 'Change a saved view',
    description: `${manages} Changes the name, the query, or both. Returns 409 if the name is taken.`,
    params: viewParams,
    body: updateViewBody,
    responses: { 200: single(viewSchema) },
    errors: [404, 409],
    async run(request) {
      const scope = auth.dataScope(request)
      const id = request.params.viewId
      await updateView(commandDeps(options, request), scope, { id, ...request.body })
      return { data: viewJson(requireView(await findViews(pool, scope), id)) }
    },
  })
  endpoint(app, {
    route: `DELETE ${path}/:viewId`,
    auth: canManage,
    operationId: 'deleteView',
    tag,
    summary: 'Delete a saved view',
    description: `${manages} Also deletes the alerts of the view, without \`alert.closed\` events. Returns the deleted view.`,
    params: viewParams,
    rejectBodyAs: 'view_delete',
    responses: { 200: single(viewSchema) },
    errors: [404],
    async run(request) {
      const scope = auth.dataScope(request)
      return {
        data: viewJson(
          await deleteView(commandDeps(options, request), scope, request.params.viewId),
        ),
      }
    },
  })
}
