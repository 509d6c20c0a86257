import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Auth } from '../../infra/access/auth.ts'
import type { ReadLimiter } from '../../infra/access/read-limiter.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import type { DecideAs } from '../../infra/event-store/decide.ts'
import { endpoint } from '../../infra/http/endpoint.ts'
import { organizationParams, pathId, single } from '../../infra/http/schemas.ts'
import { isId } from '../../infra/ids.ts'
import { iso } from '../../infra/iso.ts'
import type { ErasureRow } from '../../projections/erasures/projection.ts'
import { clientUserIdInput } from '../../projections/sessions/decision-schemas.ts'
import type { SessionSelector } from '../../projections/sessions/selected-sessions.ts'
import { type ErasureDeps, erasePerson } from './commands.ts'
import { type ExportDeps, exportPerson } from './export.ts'
import { eraseGateAccount } from './gate.ts'
import { type Erasure, erasureSchema, exportSchema } from './schemas.ts'

export interface ErasureOptions extends Omit<ErasureDeps, 'decide'> {
  auth: Auth
  decideAs: DecideAs
  exportDeps: ExportDeps
  readLimiter?: ReadLimiter | undefined
  serverOrganizationId: string
}

interface PersonKind {
  path: `/${string}`
  name: 'Visitor' | 'User'
  /** Part of the endpoint's description. */
  subject: string
  params: z.ZodType<{ organizationId: string; visitorId?: string; clientUserId?: string }>
  /** Returns undefined if the id is malformed. */
  personOf(params: { visitorId?: string; clientUserId?: string }): SessionSelector | undefined
}

const visitors: PersonKind = {
  path: '/v1/organizations/:organizationId/visitors/:visitorId',
  name: 'Visitor',
  subject: 'all sessions of the visitor',
  params: organizationParams.extend({ visitorId: pathId('vid') }),
  personOf: ({ visitorId = '' }) => (isId('vid', visitorId) ? { visitorId } : undefined),
}

const users: PersonKind = {
  path: '/v1/organizations/:organizationId/users/:clientUserId',
  name: 'User',
  subject: 'all sessions that the `client_user_id` was ever attached to',
  params: organizationParams.extend({
    clientUserId: z
      .string()
      .meta({ pattern: '^.{1,256}$' })
      .describe(
        'Your id of the user, 1 to 256 characters without control characters. `.` and `..` are refused.',
      ),
  }),
  personOf({ clientUserId }) {
    const { data } = clientUserIdInput.safeParse(clientUserId)
    return data === undefined ? undefined : { clientUserId: data }
  },
}

/** Adds the routes that erase visitors, users and Gate accounts, and that export visitors and users. */
export function erasureRoutes(app: FastifyInstance, options: ErasureOptions): void {
  for (const kind of [visitors, users]) {
    eraseRoute(app, options, kind)
    exportRoute(app, options, kind)
  }
  eraseAccountRoute(app, options)
}

const tag = 'Erasure'

function eraseRoute(app: FastifyInstance, options: ErasureOptions, kind: PersonKind): void {
  const { auth, decideAs } = options
  endpoint(app, {
    route: `DELETE ${kind.path}`,
    auth: auth.requireOwnOrganization('visitors:erase'),
    operationId: `erase${kind.name}`,
    tag,
    summary: `Erase a ${kind.name.toLowerCase()}`,
    description: `Requires the \`visitors:erase\` secret-key scope. Permanently erases ${kind.subject}, and responds once the data is gone from all queries. A repeated request erases sessions that were added since, or returns the same receipt.`,
    params: kind.params,
    responses: { 200: single(erasureSchema) },
    errors: [404],
    async run(request) {
      const person = kind.personOf(request.params)
      const deps = { ...options, decide: decideAs(auth.actor(request), request) }
      return {
        data: receiptOf(
          person ? await erasePerson(deps, { scope: auth.dataScope(request), person }) : [],
        ),
      }
    },
  })
}

function eraseAccountRoute(app: FastifyInstance, options: ErasureOptions): void {
  const { auth, decideAs } = options
  endpoint(app, {
    route: 'DELETE /v1/organizations/:organizationId/gate-accounts/:gateAccountId',
    auth: auth.requireOwnOrganization('visitors:erase'),
    operationId: 'eraseGateAccount',
    tag,
    summary: 'Erase the personal data of a Gate account',
    description:
      "Requires the `visitors:erase` secret-key scope. Permanently erases the data of the signup and all logins: the agents' addresses and user agents, the account's name and metadata, and the sessions of the consent pages. Pending signups and logins are ended. The account at the service and its agent token are kept. A repeated request erases data that was added since, or returns the same receipt.",
    params: organizationParams.extend({ gateAccountId: pathId('gacct') }),
    responses: { 200: single(erasureSchema) },
    errors: [404],
    async run(request) {
      const deps = { ...options, decide: decideAs(auth.actor(request), request) }
      const { gateAccountId } = request.params
      const account = { scope: auth.dataScope(request), gateAccountId }
      return {
        data: receiptOf(isId('gacct', gateAccountId) ? await eraseGateAccount(deps, account) : []),
      }
    },
  })
}

function receiptOf(rows: ErasureRow[]): Erasure {
  const [first] = rows
  if (!first) throw personNotFound()
  return {
    object: 'erasure',
    id: first.erasure_id,
    visitor_id: first.visitor_id,
    session_ids: rows.flatMap(({ session_ids }) => session_ids),
    counts: Object.assign({}, ...rows.map(({ counts }) => counts)),
    erased_at: iso(first.erased_at),
  }
}

const personNotFound = () =>
  new ApiError('request.not_found', {
    message: 'No such visitor, user or account is known in this environment.',
  })

function exportRoute(
  app: FastifyInstance,
  { auth, exportDeps, readLimiter }: ErasureOptions,
  kind: PersonKind,
): void {
  endpoint(app, {
    readLimiter,
    route: `GET ${kind.path}/export`,
    auth: auth.requireOwnOrganization('visitors:export'),
    operationId: `export${kind.name}`,
    tag,
    summary: `Export the data of a ${kind.name.toLowerCase()}`,
    description: `Requires the \`visitors:export\` secret-key scope. Exports ${kind.subject}, with their decisions, marks and webhook events, as one JSON document.`,
    params: kind.params,
    responses: { 200: single(exportSchema) },
    errors: [404],
    async run(request, { reply }) {
      reply.header('cache-control', 'no-store')
      const person = kind.personOf(request.params)
      const data =
        person && (await exportPerson(exportDeps, { scope: auth.dataScope(request), person }))
      if (!data) throw personNotFound()
      return { data }
    },
  })
}
