import type { FastifyInstance } from 'fastify'
import { newId } from '../../../infra/event-store/decide.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { list, organizationParams, pathId, single } from '../../../infra/http/schemas.ts'
import { type CommandRouteOptions, commandDeps } from '../../../infra/idempotency/idempotency.ts'
import { alertLimits, decideAlertSave, decideAlertUpdate, requireAlert } from './alert-decide.ts'
import { alertJson, alertSchema, createAlertBody, updateAlertBody } from './alert-schemas.ts'
import { findAlerts, newAlert } from './alert-store.ts'
import { changeViews } from './commands.ts'

const path = '/v1/organizations/:organizationId/alerts'
const manages = 'Requires the `views:manage` secret-key scope.'

/** Adds the routes for alerts on saved views. An alert belongs to the environment of the caller. */
export function alertRoutes(app: FastifyInstance, options: CommandRouteOptions): void {
  const { pool, auth, idempotency, clock } = options
  const shared = { tag: 'Sessions', params: organizationParams }
  const changing = {
    ...shared,
    auth: auth.requireOwnOrganization('views:manage'),
    params: organizationParams.extend({ alertId: pathId('alert') }),
    responses: { 200: single(alertSchema) },
    errors: [404],
  }
  endpoint(app, {
    ...shared,
    route: `GET ${path}`,
    auth: auth.requireOwnOrganization('sessions:list'),
    operationId: 'listAlerts',
    summary: 'List alerts',
    description: `Requires the \`sessions:list\` secret-key scope. Returns all alerts of the environment (at most ${alertLimits.alerts}) on one page, oldest first.`,
    responses: { 200: list(alertSchema) },
    async run(request) {
      const alerts = await findAlerts(pool, auth.dataScope(request))
      return {
        data: alerts.map(alertJson),
        pagination: { limit: alertLimits.alerts, has_more: false },
      }
    },
  })
  endpoint(app, {
    ...shared,
    route: `POST ${path}`,
    auth: changing.auth,
    operationId: 'createAlert',
    summary: 'Create an alert',
    description: `${manages} Counts the sessions that match a saved view every minute, ignoring the view's period. The alert opens once the value reaches the threshold, and closes after three checks in a row below it; both raise a webhook event. Returns 409 if the environment has ${alertLimits.alerts} alerts.`,
    body: createAlertBody,
    responses: { 201: single(alertSchema) },
    run: (request, { reply, toResponse }) =>
      idempotency.run({ request, reply }, async (command) => {
        const scope = auth.dataScope(request)
        const deps = commandDeps(options, request, command)
        const now = clock()
        const id = newId('alert', { ...deps, now })
        const alert = newAlert(scope, { id, now, ...request.body })
        await changeViews(deps, scope, (views, alerts) => decideAlertSave(alerts, views, alert))
        return toResponse({ data: alertJson(requireAlert(await findAlerts(pool, scope), id)) })
      }),
  })
  endpoint(app, {
    ...changing,
    route: `PATCH ${path}/:alertId`,
    operationId: 'updateAlert',
    summary: 'Change an alert',
    description: `${manages} The status stays until the next check.`,
    body: updateAlertBody,
    async run(request) {
      const scope = auth.dataScope(request)
      const id = request.params.alertId
      const change = { ...request.body, id, now: clock() }
      await changeViews(commandDeps(options, request), scope, (views, alerts) =>
        decideAlertUpdate(alerts, views, change),
      )
      return { data: alertJson(requireAlert(await findAlerts(pool, scope), id)) }
    },
  })
  endpoint(app, {
    ...changing,
    route: `DELETE ${path}/:alertId`,
    operationId: 'deleteAlert',
    summary: 'Delete an alert',
    description: `${manages} Returns the deleted alert. No \`alert.closed\` event is raised.`,
    rejectBodyAs: 'alert_delete',
    async run(request) {
      const scope = auth.dataScope(request)
      const [edit] = await changeViews(commandDeps(options, request), scope, (_, alerts) => {
        const alert = requireAlert(alerts, request.params.alertId)
        return [{ type: 'AlertDeleted', alert } as const]
      })
      return { data: alertJson(requireAlert(edit ? [edit.alert] : [], request.params.alertId)) }
    },
  })
}
