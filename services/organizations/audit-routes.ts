import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Auth } from '../../infra/access/auth.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { createCursors, loadPage, pageQuery, refuseOffset } from '../../infra/http/pagination.ts'
import { list, organizationParams, timestamp } from '../../infra/http/schemas.ts'
import type { ActorType } from '../../schemas/events.ts'
import { type AuditDeps, auditJson, readAuditLog } from './audit-log.ts'

interface AuditRouteOptions extends AuditDeps {
  auth: Auth
  keyring: Keyring
}

const actorTypes = ['key', 'operator', 'person', 'agent', 'service', 'scheduler', 'other'] as const

const auditEntrySchema = z
  .strictObject({
    object: z.literal('audit_entry'),
    id: z.string().describe('Of the event on the log; of a mark one for all of its events.'),
    type: z.string().describe('What happened, as `ApiKeyRevoked`; later versions may add types.'),
    occurred_at: timestamp,
    environment: z.enum(['live', 'test']).nullable().describe('null for what is of both.'),
    subject_id: z.string().describe('What it happened to: a key, an endpoint, a session, ...'),
    reason: z
      .string()
      .nullable()
      .describe(
        'Why, in the words of whoever corrected a visitor or changed the scoring model; else null.',
      ),
    actor: z
      .strictObject({
        type: z.enum(actorTypes satisfies readonly ActorType[]),
        id: z
          .string()
          .describe(
            'Of a key its id, or `live` where a test key reads of a live one; of an operator the command; of an agent its delivery key or account; of a person the console session, or `consent-page`; else the part of the server.',
          ),
      })
      .meta({ id: 'AuditActor' }),
    request_id: z.string().nullable().describe('Of the request that caused it, if one did.'),
  })
  .meta({ id: 'AuditEntry' })

/** `GET /v1/organizations/{organizationId}/audit-log`. */
export function auditRoutes(app: FastifyInstance, options: AuditRouteOptions): void {
  const { auth } = options
  const cursors = createCursors(options)
  endpoint(app, {
    route: 'GET /v1/organizations/:organizationId/audit-log',
    auth: auth.requireOwnOrganization('organizations:read'),
    operationId: 'listOrganizationAuditLog',
    tag: 'Organizations',
    summary: 'List who did what in an organization, newest first, in both environments',
    description:
      'Requires the `organizations:read` secret-key scope. Has every change that a key, an operator, a person, an agent or the server itself made, and no secret. A test key reads what is of the test environment, and what is of both. What clients send is not in it, nor is the delivery of webhooks.',
    params: organizationParams,
    query: z.object(pageQuery),
    before: refuseOffset,
    answers: { 200: list(auditEntrySchema) },
    errors: [404, 422],
    async run(request) {
      const { organizationId, environment: reader } = auth.scope(request)
      const { limit, cursor } = request.query
      const { rows, pagination } = await loadPage({
        limit,
        cursor,
        cursors,
        query: { list: 'audit-log', organizationId, environment: reader },
        load: (after) =>
          readAuditLog(options, {
            organizationId,
            reader,
            limit,
            after: after && { occurredAt: after.value, id: after.id },
          }),
        positionOf: (row) => ({ value: row.occurred_at, id: row.id }),
      })
      return { data: rows.map(auditJson), pagination }
    },
  })
}
