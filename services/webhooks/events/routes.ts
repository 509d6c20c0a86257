import type { FastifyInstance } from 'fastify'
import type { Auth } from '../../../infra/access/auth.ts'
import type { ReadLimiter } from '../../../infra/access/read-limiter.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { createOffsetCheck } from '../../../infra/http/pagination.ts'
import { list, organizationParams, single } from '../../../infra/http/schemas.ts'
import { type Clock, isId } from '../../../infra/ids.ts'
import { iso } from '../../../infra/iso.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import {
  findSessionEvent,
  listSessionEvents,
} from '../../../projections/sessions/session-events.ts'
import { sessionEventTypes } from '../../../projections/sessions/tables.ts'
import {
  findDeliveriesByEvent,
  findEvent,
  listEvents,
  type WebhookEventQuery,
  type WebhookScope,
} from '../../../projections/webhooks/queries.ts'
import {
  type DeliveryRow,
  type WebhookEventRow,
  webhookRetentionMs,
} from '../../../projections/webhooks/tables.ts'
import { findInFlightDeliveries } from '../leases.ts'
import { unsentEvent } from './payloads.ts'
import { deliveryJson, eventParams, eventSchema, eventsQuery } from './schemas.ts'

export interface EventRouteOptions {
  readPool: Db
  readLimiter?: ReadLimiter | undefined
  auth: Auth
  clock: Clock
}

const tag = 'Events'
const requires = 'Requires the `webhooks:read` secret-key scope.'
const path = '/v1/organizations/:organizationId/events'

/** Adds the routes that list an organization's events, whether or not a webhook endpoint was subscribed to them. */
export function eventRoutes(app: FastifyInstance, options: EventRouteOptions): void {
  listRoute(app, options)
  getRoute(app, options)
}

function listRoute(
  app: FastifyInstance,
  { readPool, readLimiter, auth, clock }: EventRouteOptions,
): void {
  endpoint(app, {
    readLimiter,
    route: `GET ${path}`,
    auth: auth.requireOwnOrganization('webhooks:read'),
    operationId: 'listEvents',
    tag,
    summary: 'List events',
    description: `${requires} Returns the newest events of the last 30 days with their webhook deliveries, whether or not an endpoint is subscribed. There is only one page.`,
    params: organizationParams,
    query: eventsQuery,
    beforeValidation: createOffsetCheck('use limit'),
    responses: { 200: list(eventSchema) },
    errors: [422],
    async run(request) {
      const { limit, type, endpoint_id: endpointId } = request.query
      const since = clock() - webhookRetentionMs
      const query = { ...auth.dataScope(request), since, limit, type, endpointId }
      const rows = mergeNewest(
        limit,
        await listEvents(readPool, query),
        await listUnsent(readPool, query),
      )
      const ids = rows.map(({ id }) => id)
      const deliveries = await loadDeliveryJson(readPool, ids)
      return {
        data: rows.map((row) => eventJson(row, deliveries.get(row.id))),
        pagination: { limit, has_more: false },
      }
    },
  })
}

function getRoute(
  app: FastifyInstance,
  { readPool, readLimiter, auth, clock }: EventRouteOptions,
): void {
  endpoint(app, {
    readLimiter,
    route: `GET ${path}/:eventId`,
    auth: auth.requireOwnOrganization('webhooks:read'),
    operationId: 'retrieveEvent',
    tag,
    summary: 'Retrieve an event',
    description: `${requires} Returns the event with its webhook deliveries. Events older than 30 days return 404.`,
    params: eventParams,
    responses: { 200: single(eventSchema) },
    errors: [404],
    async run(request) {
      const { eventId } = request.params
      if (!isId('evt', eventId)) throw noSuchEvent()
      const query = { ...auth.dataScope(request), eventId, since: clock() - webhookRetentionMs }
      const event = (await findEvent(readPool, query)) ?? (await findUnsent(readPool, query))
      if (!event) throw noSuchEvent()
      const deliveries = await loadDeliveryJson(readPool, [eventId])
      return { data: eventJson(event, deliveries.get(eventId)) }
    },
  })
}

// Derives the events from the sessions read model. Includes events that were sent; `mergeNewest` removes those.
async function listUnsent(
  db: Db,
  { since, limit, type, endpointId, ...scope }: WebhookEventQuery,
): Promise<WebhookEventRow[]> {
  const types = sessionEventTypes.filter((eventType) => type === undefined || type === eventType)
  if (endpointId !== undefined || types.length === 0) return []
  const rows = await listSessionEvents(db, scope, { since, limit, types })
  return rows.map((row) => unsentEvent(row, scope))
}

async function findUnsent(
  db: Db,
  { eventId, since, ...scope }: WebhookScope & { eventId: string; since: number },
): Promise<WebhookEventRow | undefined> {
  const row = await findSessionEvent(db, scope, { eventId, since })
  return row && unsentEvent(row, scope)
}

// Returns the newest events of both lists. If an id is in both, the sent event wins.
function mergeNewest(
  limit: number,
  sent: WebhookEventRow[],
  unsent: WebhookEventRow[],
): WebhookEventRow[] {
  const sentIds = new Set(sent.map(({ id }) => id))
  return [...sent, ...unsent.filter(({ id }) => !sentIds.has(id))].sort(newestFirst).slice(0, limit)
}

function newestFirst(a: WebhookEventRow, b: WebhookEventRow): number {
  return b.created_at - a.created_at || (a.id < b.id ? 1 : -1)
}

// The same 404 for an id that is malformed, unknown, too old, or of another environment or organization.
function noSuchEvent(): ApiError {
  return new ApiError('request.not_found', {
    message:
      'No event with this id exists in this organization and environment, or it is older than 30 days.',
  })
}

function eventJson(event: WebhookEventRow, deliveries: object[] = []) {
  const data: unknown = JSON.parse(event.data)
  return {
    object: 'event',
    id: event.id,
    type: event.type,
    subject: { type: event.subject_type, id: event.subject_id },
    data,
    webhook_deliveries: deliveries,
    created_at: iso(event.created_at),
  }
}

/** Returns the deliveries by event id, as API responses have them, oldest first. */
export async function loadDeliveryJson(db: Db, eventIds: string[]) {
  const deliveries = await deliveriesJson(db, await findDeliveriesByEvent(db, eventIds))
  return Map.groupBy(deliveries, ({ event_id }) => event_id)
}

/** Returns the deliveries as API responses have them: pending ones in flight are `delivering`. */
export async function deliveriesJson(db: Db, rows: DeliveryRow[]) {
  const pending = rows.filter(({ status }) => status === 'pending').map(({ id }) => id)
  const inFlight =
    pending.length > 0 ? await findInFlightDeliveries(db, pending) : new Set<string>()
  return rows.map((row) => deliveryJson(row, row.status === 'pending' && inFlight.has(row.id)))
}
