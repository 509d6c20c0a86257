import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { ReadLimiter } from '../../../infra/access/read-limiter.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import {
  createCursors,
  createOffsetCheck,
  loadPage,
  refuseOffset,
} from '../../../infra/http/pagination.ts'
import { list, organizationParams, single } from '../../../infra/http/schemas.ts'
import { type CommandRouteOptions, commandDeps } from '../../../infra/idempotency/idempotency.ts'
import { isId } from '../../../infra/ids.ts'
import { isoOrNull } from '../../../infra/iso.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { findSessionEventIds } from '../../../projections/sessions/session-events.ts'
import {
  deliveryPosition,
  listAttempts,
  listDeliveries,
  maxListedAttempts,
} from '../../../projections/webhooks/list-deliveries.ts'
import { findDelivery, findEndpoint } from '../../../projections/webhooks/queries.ts'
import { type DeliveryRow, webhookRetentionMs } from '../../../projections/webhooks/tables.ts'
import { deliveriesJson } from '../events/routes.ts'
import { deliverySchema } from '../events/schemas.ts'
import { resendDeliveries, retryDeliveries } from './resend.ts'
import {
  attemptJson,
  attemptSchema,
  deliveriesQuery,
  deliveryParams,
  resendBody,
  resendParams,
  resendSchema,
} from './schemas.ts'

export interface DeliveryRouteOptions extends CommandRouteOptions {
  readPool: Db
  readLimiter?: ReadLimiter | undefined
}

const tag = 'Webhooks'
const path = '/v1/organizations/:organizationId/webhooks'
const reads = 'Requires the `webhooks:read` secret-key scope.'
const manages = 'Requires the `webhooks:manage` secret-key scope.'

/** Adds the routes that show deliveries of the last 30 days and send them again. */
export function deliveryRoutes(app: FastifyInstance, options: DeliveryRouteOptions): void {
  listRoute(app, options)
  attemptsRoute(app, options)
  retryRoute(app, options)
  resendRoute(app, options)
}

function listRoute(app: FastifyInstance, options: DeliveryRouteOptions): void {
  const { readPool, readLimiter, auth, clock, keyring } = options
  const cursors = createCursors({ keyring })
  endpoint(app, {
    readLimiter,
    route: `GET ${path}/deliveries`,
    auth: auth.requireOwnOrganization('webhooks:read'),
    operationId: 'listWebhookDeliveries',
    tag,
    summary: 'List webhook deliveries',
    description: `${reads} Returns deliveries of the last 30 days, those of the newest events first.`,
    params: organizationParams,
    query: deliveriesQuery,
    beforeValidation: refuseOffset,
    responses: { 200: list(deliverySchema) },
    errors: [422],
    async run(request) {
      const { limit, cursor, session_id: sessionId, ...filters } = request.query
      const scope = auth.dataScope(request)
      const { rows, pagination } = await loadPage({
        limit,
        cursor,
        cursors,
        query: {
          list: 'webhook-deliveries',
          ...scope,
          filters: JSON.stringify({ sessionId, ...filters }),
        },
        positionOf: deliveryPosition,
        async load(after) {
          const eventIds = sessionId ? await findSessionEventIds(readPool, sessionId) : undefined
          const since = Math.max(filters.since ?? 0, clock() - webhookRetentionMs)
          const query = { ...filters, ...scope, eventIds, since, after, limit: limit + 1 }
          const found = await listDeliveries(readPool, query)
          return { rows: found.slice(0, limit), hasMore: found.length > limit }
        },
      })
      return { data: await deliveriesJson(readPool, rows), pagination }
    },
  })
}

function attemptsRoute(app: FastifyInstance, options: DeliveryRouteOptions): void {
  const { readPool, readLimiter, auth } = options
  endpoint(app, {
    readLimiter,
    route: `GET ${path}/deliveries/:deliveryId/attempts`,
    auth: auth.requireOwnOrganization('webhooks:read'),
    operationId: 'listWebhookAttempts',
    tag,
    summary: 'List the attempts of a delivery',
    description: `${reads} Returns the newest ${maxListedAttempts} attempts on one page, oldest first.`,
    params: deliveryParams,
    beforeValidation: createOffsetCheck('the list is one page'),
    responses: { 200: list(attemptSchema) },
    errors: [404, 422],
    async run(request) {
      const delivery = await requireDelivery(readPool, options, request)
      const attempts = await listAttempts(readPool, delivery.id)
      const pagination = { limit: maxListedAttempts, has_more: attempts.length > maxListedAttempts }
      const data = attempts
        .slice(-maxListedAttempts)
        .map((attempt) => attemptJson(attempt, delivery))
      return { data, pagination }
    },
  })
}

function retryRoute(app: FastifyInstance, options: DeliveryRouteOptions): void {
  const { pool, auth, idempotency } = options
  endpoint(app, {
    route: `POST ${path}/deliveries/:deliveryId/retry`,
    auth: auth.requireOwnOrganization('webhooks:manage'),
    operationId: 'retryWebhookDelivery',
    tag,
    summary: 'Retry a delivery',
    description: `${manages} Sends the event again, with the same \`webhook-id\` and the full retry schedule. Has no effect on a pending delivery. 409 for an approval, and if the endpoint is not active.`,
    params: deliveryParams,
    rejectBodyAs: 'webhook_delivery_retry',
    responses: { 202: single(deliverySchema) },
    errors: [404, 409],
    async run(request, { reply, toResponse }) {
      const delivery = await requireDelivery(pool, options, request)
      return idempotency.run({ request, reply }, async (command) => {
        const deps = commandDeps(options, request, command)
        await retryDeliveries(deps, delivery, [delivery.endpoint_id])
        const current = (await findDelivery(pool, delivery.id)) ?? delivery
        const [data] = await deliveriesJson(pool, [current])
        return toResponse({ data })
      })
    },
  })
}

function resendRoute(app: FastifyInstance, options: DeliveryRouteOptions): void {
  const { pool, auth, idempotency } = options
  endpoint(app, {
    route: `POST ${path}/endpoints/:endpointId/resend`,
    auth: auth.requireOwnOrganization('webhooks:manage'),
    operationId: 'resendWebhookDeliveries',
    tag,
    summary: 'Resend deliveries',
    description: `${manages} Sends up to 1,000 events of a period to the endpoint again, the oldest first, each with its \`webhook-id\` and the full retry schedule. Pending deliveries and approvals are left out. If \`next_since\` is not null, repeat the request from there. 409 if the endpoint is not active.`,
    params: resendParams,
    body: resendBody,
    parameterSet: 'webhook_endpoint_resend',
    responses: { 202: single(resendSchema) },
    errors: [404, 409],
    async run(request, { reply, toResponse }) {
      const { endpointId } = request.params
      const scope = { ...auth.dataScope(request), endpointId }
      const target = isId('we', endpointId) ? await findEndpoint(pool, scope) : undefined
      if (!target) throw notFound('webhook endpoint')
      const { event_type: type, ...range } = request.body
      return idempotency.run({ request, reply }, async (command) => {
        const deps = commandDeps(options, request, command)
        const { resent, nextSince } = await resendDeliveries(deps, target, { ...range, type })
        const next_since = isoOrNull(nextSince)
        return toResponse({ data: { object: 'webhook_resend', resent, next_since } })
      })
    },
  })
}

async function requireDelivery(
  db: Db,
  { auth, clock }: DeliveryRouteOptions,
  request: FastifyRequest<{ Params: z.output<typeof deliveryParams> }>,
): Promise<DeliveryRow> {
  const { deliveryId } = request.params
  const { organizationId, environment } = auth.dataScope(request)
  const delivery = isId('wdlv', deliveryId) ? await findDelivery(db, deliveryId) : undefined
  if (
    delivery?.organization_id !== organizationId ||
    delivery.environment !== environment ||
    delivery.created_at < clock() - webhookRetentionMs
  )
    throw notFound('delivery of the last 30 days')
  return delivery
}

const notFound = (subject: string) =>
  new ApiError('request.not_found', {
    message: `No ${subject} with this id exists in this organization and environment.`,
  })
