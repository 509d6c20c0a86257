import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Auth } from '../../infra/access/auth.ts'
import type { Keyring } from '../../infra/crypto/keyring.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { createCursors, loadPage, pageQuery, refuseOffset } from '../../infra/http/pagination.ts'
import { list, organizationParams, queryTime, repeatable } from '../../infra/http/schemas.ts'
import { isPlainText } from '../../infra/text.ts'
import { causedNames } from '../../schemas/events.ts'
import { type AuditDeps, auditJson, readAuditLog } from './audit-log.ts'
import { auditActorTypes, auditEntrySchema } from './schemas.ts'

interface AuditRouteOptions extends AuditDeps {
  auth: Auth
  keyring: Keyring
}

// Postgres can't store NUL.
const plainText = z.string().refine(isPlainText, { error: 'text without control characters' })

const auditQuery = z.object({
  ...pageQuery,
  type: repeatable(z.enum(causedNames)).describe('Types of the entries to return.'),
  actor_type: repeatable(z.enum(auditActorTypes)).describe('Types of the actors.'),
  actor_id: plainText.optional().describe('`actor.id` of the entries to return.'),
  subject_id: plainText.optional().describe('`subject_id` of the entries to return.'),
  since: queryTime.optional().describe('Earliest time, inclusive.'),
  until: queryTime.optional().describe('Latest time, exclusive.'),
})

/** `GET /v1/organizations/{organizationId}/audit-log`. */
export function auditRoutes(app: FastifyInstance, options: AuditRouteOptions): void {
  const { auth } = options
  const cursors = createCursors(options)
  endpoint(app, {
    route: 'GET /v1/organizations/:organizationId/audit-log',
    auth: auth.requireOwnOrganization('organizations:read'),
    operationId: 'listOrganizationAuditLog',
    tag: 'Organizations',
    summary: 'List audit log entries',
    description:
      'Requires the `organizations:read` secret-key scope. Returns every change made by a key, an operator, a person, an agent or the server, newest first and without secrets. A live key reads both environments; a test key reads entries of the test environment and entries that apply to both. Excludes webhook deliveries and data that clients send.',
    params: organizationParams,
    query: auditQuery,
    beforeValidation: refuseOffset,
    responses: { 200: list(auditEntrySchema) },
    errors: [404, 422],
    async run(request) {
      const { organizationId, environment } = auth.dataScope(request)
      const { limit, cursor, type: types, actor_type: actorTypes, ...query } = request.query
      const { actor_id: actorId, subject_id: subjectId, since, until } = query
      const filters = { types, actorTypes, actorId, subjectId, since, until }
      const { rows, pagination } = await loadPage({
        limit,
        cursor,
        cursors,
        query: { list: 'audit-log', organizationId, environment, filters: JSON.stringify(filters) },
        load: (after) =>
          readAuditLog(options, {
            organizationId,
            callerEnvironment: environment,
            ...filters,
            limit,
            after: after && { occurredAt: after.value, id: after.id },
          }),
        positionOf: (row) => ({ value: row.occurred_at, id: row.id }),
      })
      return { data: rows.map(auditJson), pagination }
    },
  })
}
