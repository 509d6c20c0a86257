import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import { refusingOffset } from '../../../infra/http/pagination.ts'
import { errorResponses, list, organizationParams, single } from '../../../infra/http/schemas.ts'
import { isId } from '../../../infra/ids.ts'
import type { Db } from '../../../infra/postgres/pool.ts'
import { findSessionEvent, listSessionEvents } from '../../../projections/sessions/session-events.ts'
import { sessionEventTypes } from '../../../projections/sessions/tables.ts'
import {
  findEvent,
  type ListEvents,
  listEvents,
  type WebhookScope,
} from '../../../projections/webhooks/queries.ts'
import { type WebhookEventRow, webhookRetentionMs } from '../../../projections/webhooks/tables.ts'
import type { WebhookContext } from '../context.ts'
import { unsentEvent } from '../planner/raise.ts'
import { eventParams, eventSchema, eventsQuery } from './schemas.ts'
import { eventJson, loadDeliveries } from './shapes.ts'

const tags = ['Events']
const security = [{ secretKey: [] }]
const description = 'Requires the `webhooks:read` secret-key scope. Events are kept for 30 days.'
const path = '/v1/organizations/:organizationId/events'
const shared = { description, tags, security }

/** What happened in an organization, whether or not a webhook endpoint was notified. */
export function eventRoutes(app: FastifyInstance, context: WebhookContext): void {
  listRoute(app, context)
  getRoute(app, context)
}

function listRoute(app: FastifyInstance, { readPool, auth, scopeOf, clock }: WebhookContext): void {
  const schema = {
    ...shared,
    operationId: 'listEvents',
    summary: 'List events with their webhook deliveries, newest first',
    params: organizationParams,
    querystring: eventsQuery,
    response: { 200: list(eventSchema), ...errorResponses(401, 403, 422) },
  }
  const hooks = {
    onRequest: auth.requireOwnOrganization('webhooks:read'),
    preValidation: refusingOffset('limit'),
  }
  app.get<ListRequest>(path, { schema, ...hooks }, async (request) => {
    const { limit, type, endpoint_id: endpointId } = request.query
    const since = clock() - webhookRetentionMs
    const wanted = { ...scopeOf(request), since, limit, type, endpointId }
    const rows = newestOf(limit, await listEvents(readPool, wanted), await listUnsent(readPool, wanted))
    const { of, inFlight } = await loadDeliveries(
      readPool,
      rows.map(({ id }) => id),
    )
    return {
      data: rows.map((row) => eventJson(row, { deliveries: of(row.id), inFlight })),
      pagination: { limit, has_more: false },
      meta: { request_id: request.id },
    }
  })
}

interface ListRequest {
  Params: z.output<typeof organizationParams>
  Querystring: z.output<typeof eventsQuery>
}

function getRoute(app: FastifyInstance, { readPool, auth, scopeOf, clock }: WebhookContext): void {
  const schema = {
    ...shared,
    operationId: 'retrieveEvent',
    summary: 'Retrieve one event with its webhook deliveries',
    params: eventParams,
    response: { 200: single(eventSchema), ...errorResponses(401, 403, 404) },
  }
  const onRequest = auth.requireOwnOrganization('webhooks:read')
  app.get<GetRequest>(`${path}/:eventId`, { schema, onRequest }, async (request) => {
    const eventId = eventIdOf(request)
    const wanted = { ...scopeOf(request), eventId, since: clock() - webhookRetentionMs }
    const event = (await findEvent(readPool, wanted)) ?? (await findUnsent(readPool, wanted))
    if (!event) throw noSuchEvent()
    const { of, inFlight } = await loadDeliveries(readPool, [eventId])
    return { data: eventJson(event, { deliveries: of(eventId), inFlight }), meta: { request_id: request.id } }
  })
}

// Events of sessions that no endpoint was subscribed to; others are among them, too.
async function listUnsent(
  db: Db,
  { organizationId, environment, since, limit, type, endpointId }: ListEvents,
): Promise<WebhookEventRow[]> {
  const types = sessionEventTypes.filter((known) => type === undefined || type === known)
  if (endpointId !== undefined || types.length === 0) return []
  const rows = await listSessionEvents(db, { organizationId, environment }, { since, limit, types })
  return rows.map((row) => unsentEvent(row, { organization_id: organizationId, environment }))
}

async function findUnsent(
  db: Db,
  { eventId, since, organizationId, environment }: WebhookScope & { eventId: string; since: number },
): Promise<WebhookEventRow | undefined> {
  const row = await findSessionEvent(db, { organizationId, environment }, { eventId, since })
  return row && unsentEvent(row, { organization_id: organizationId, environment })
}

// The newest of both; of those with one id the one that was sent.
function newestOf(limit: number, sent: WebhookEventRow[], unsent: WebhookEventRow[]): WebhookEventRow[] {
  const known = new Set(sent.map(({ id }) => id))
  return [...sent, ...unsent.filter(({ id }) => !known.has(id))].sort(newestFirst).slice(0, limit)
}

function newestFirst(a: WebhookEventRow, b: WebhookEventRow): number {
  return b.created_at - a.created_at || (a.id < b.id ? 1 : -1)
}

interface GetRequest {
  Params: z.output<typeof eventParams>
}

function eventIdOf({ params: { eventId } }: FastifyRequest<GetRequest>): string {
  if (!isId('evt', eventId)) throw noSuchEvent()
  return eventId
}

// The same for an id that is malformed, unknown, too old, or of another environment or organization.
function noSuchEvent(): ApiError {
  return new ApiError('request.not_found', {
    message:
      'No event with this id exists in this organization and environment, or it is older than 30 days.',
  })
}
