import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Auth } from '../../infra/access/auth.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import { errorResponses, organizationParams, pathId, single, timestamp } from '../../infra/http/schemas.ts'
import { isId } from '../../infra/ids.ts'
import type { ErasureRow } from '../../projections/erasures/projection.ts'
import { iso } from '../../projections/sessions/decision-shape.ts'
import type { Person } from '../../projections/sessions/person.ts'
import type { DataScope } from '../../projections/sessions/scope.ts'
import { type ErasureDeps, erase } from './commands.ts'
import { type ExportDeps, exportPerson, type PersonExport } from './export.ts'
import { eraseGateAccount } from './gate.ts'

export interface ErasureOptions extends Omit<ErasureDeps, 'decide'> {
  auth: Auth
  decideAs: DecideAs
  exporting: ExportDeps
  ownOrganizationId: string
}

interface PersonParams {
  organizationId: string
  visitorId?: string
  clientUserId?: string
}

interface PersonKind {
  path: string
  name: 'Visitor' | 'User'
  about: string
  params: z.ZodType
  // undefined where no such id can be.
  personOf(params: PersonParams): Person | undefined
}

const visitors: PersonKind = {
  path: '/v1/organizations/:organizationId/visitors/:visitorId',
  name: 'Visitor',
  about: 'a visitor: all sessions that were given to it',
  params: organizationParams.extend({ visitorId: pathId('vid') }),
  personOf: ({ visitorId = '' }) => (isId('vid', visitorId) ? { visitorId } : undefined),
}

const users: PersonKind = {
  path: '/v1/organizations/:organizationId/users/:clientUserId',
  name: 'User',
  about: 'a user of yours: all sessions that were ever attached to the `client_user_id`',
  params: organizationParams.extend({ clientUserId: z.string().meta({ pattern: '^.{1,256}$' }) }),
  personOf: ({ clientUserId }) => (clientUserId ? { clientUserId } : undefined),
}

// `DELETE /v1/organizations/{id}/visitors/{visitorId}` and `.../users/{clientUserId}`, and `GET .../export` of both.
export function erasureRoutes(app: FastifyInstance, options: ErasureOptions): void {
  personRoutes(app, options, visitors)
  personRoutes(app, options, users)
  eraseAccountRoute(app, options)
}

function personRoutes(app: FastifyInstance, options: ErasureOptions, kind: PersonKind): void {
  eraseRoute(app, options, kind)
  exportRoute(app, options, kind)
}

const tags = ['Erasure']
const security = [{ secretKey: [] }]

export const erasureSchema = z
  .strictObject({
    object: z.literal('erasure'),
    id: z.string(),
    visitor_id: z.string().nullable().describe('Null where the erasure of a user was asked for.'),
    session_ids: z.array(z.string()),
    counts: z.record(z.string(), z.int()).describe('What went, by kind.'),
    erased_at: timestamp,
  })
  .meta({ id: 'Erasure' })

function eraseRoute(app: FastifyInstance, options: ErasureOptions, kind: PersonKind): void {
  const schema = {
    operationId: `erase${kind.name}`,
    summary: `Erase a ${kind.name.toLowerCase()} for good`,
    description: `Requires the \`visitors:erase\` secret-key scope. Erases ${kind.about}. It cannot be undone. Repeated, it erases what came since, or returns the same receipt.`,
    tags,
    security,
    params: kind.params,
    response: { 200: single(erasureSchema), ...errorResponses(401, 403, 404) },
  }
  const onRequest = options.auth.requireOwnOrganization('visitors:erase')
  app.delete<{ Params: PersonParams }>(kind.path, { schema, onRequest }, async (request) => {
    const person = kind.personOf(request.params)
    const deps = { ...options, decide: options.decideAs(options.auth.actor(request), request) }
    const rows = person ? await erase(deps, { scope: scopeOf(request, options), person }) : []
    return { data: receiptOf(rows), meta: { request_id: request.id } }
  })
}

const accountParams = organizationParams.extend({ gateAccountId: pathId('gacct') })

interface AccountParams {
  organizationId: string
  gateAccountId: string
}

function eraseAccountRoute(app: FastifyInstance, options: ErasureOptions): void {
  const schema = {
    operationId: 'eraseGateAccount',
    summary: 'Erase who asked for an account through Gate, and who approved it',
    description:
      "Requires the `visitors:erase` secret-key scope. Erases the agents' addresses and user agents, the account's name and what was sent along, of the signup and of all logins, and the consent pages' sessions. What of them waits ends. It cannot be undone; the account at the service and its agent token stay. Repeated, it erases what came since, or returns the same receipt.",
    tags,
    security,
    params: accountParams,
    response: { 200: single(erasureSchema), ...errorResponses(401, 403, 404) },
  }
  const path = '/v1/organizations/:organizationId/gate-accounts/:gateAccountId'
  const onRequest = options.auth.requireOwnOrganization('visitors:erase')
  app.delete<{ Params: AccountParams }>(path, { schema, onRequest }, async (request) => {
    const deps = { ...options, decide: options.decideAs(options.auth.actor(request), request) }
    const { gateAccountId } = request.params
    const known = isId('gacct', gateAccountId)
    const asked = { scope: scopeOf(request, options), gateAccountId }
    const rows = known ? await eraseGateAccount(deps, asked) : []
    return { data: receiptOf(rows), meta: { request_id: request.id } }
  })
}

function receiptOf(rows: ErasureRow[]): z.output<typeof erasureSchema> {
  const [first] = rows
  if (!first) throw nobody()
  return {
    object: 'erasure',
    id: first.erasure_id,
    visitor_id: first.visitor_id,
    session_ids: rows.flatMap(({ session_ids }) => session_ids),
    counts: Object.assign({}, ...rows.map(({ counts }) => counts)),
    erased_at: iso(first.erased_at),
  }
}

const nobody = () =>
  new ApiError('request.not_found', {
    message: 'No such visitor, user or account is known in this environment.',
  })

const exportSchema: z.ZodType<PersonExport> = z
  .strictObject({
    object: z.literal('person_export'),
    visitors: z.array(z.looseObject({})),
    corrections: z
      .array(z.looseObject({}))
      .describe('What was said of the sessions when they were given to another visitor, oldest first.'),
    sessions: z.array(
      z.strictObject({
        id: z.string(),
        visitor_id: z.string().nullable(),
        client_users: z.array(
          z.strictObject({ client_user_id: z.string().nullable(), event_id: z.string() }),
        ),
        decisions: z.array(z.looseObject({})).describe('Each as the log has it, oldest first.'),
        webhook_events: z.array(z.looseObject({})),
        state: z.looseObject({}).nullable().describe('What was observed, for a day after the opening.'),
        link: z
          .looseObject({})
          .nullable()
          .describe('How the session came to its visitor, and what the visitor is found by through it.'),
      }),
    ),
  })
  .meta({ id: 'PersonExport' })

function exportRoute(app: FastifyInstance, options: ErasureOptions, kind: PersonKind): void {
  const schema = {
    operationId: `export${kind.name}`,
    summary: `Export everything about a ${kind.name.toLowerCase()}`,
    description: `Requires the \`visitors:export\` secret-key scope. Exports ${kind.about}.`,
    tags,
    security,
    params: kind.params,
    response: { 200: single(exportSchema), ...errorResponses(401, 403, 404) },
  }
  const onRequest = options.auth.requireOwnOrganization('visitors:export')
  app.get<{ Params: PersonParams }>(`${kind.path}/export`, { schema, onRequest }, async (request, reply) => {
    reply.header('cache-control', 'no-store')
    const person = kind.personOf(request.params)
    const scope = scopeOf(request, options)
    const data = person && (await exportPerson(options.exporting, { scope, person }))
    if (!data) throw nobody()
    return { data, meta: { request_id: request.id } }
  })
}

function scopeOf(request: FastifyRequest, { auth }: ErasureOptions): DataScope {
  const { organizationId, environment } = auth.secret(request)
  return { organizationId, environment }
}
