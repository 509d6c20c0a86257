import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { tokenHashes } from '../../../infra/crypto/tokens.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single, timestamp } from '../../../infra/http/schemas.ts'
import { confirmationCodeSchema, consentUrl } from '../../../infra/wire/gate.ts'
import { findAgentToken } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { renewTokenIfDue } from '../accounts/commands.ts'
import type { GateContext } from '../context.ts'
import { serviceIdSchema } from '../registry/schemas.ts'
import { agentTokenOf, gateRoute, noStore, requesterOf, requireToken } from '../requests.ts'
import { consumeLoginCode, openLogin } from './commands.ts'
import { requireUsableToken } from './decide.ts'

const path = '/v1/gate/login-sessions'

export function loginRoutes(app: FastifyInstance, context: GateContext): void {
  createRoute(app, context)
  consumeRoute(app, context)
}

function createRoute(app: FastifyInstance, context: GateContext): void {
  const { idempotency, limits, clock, pool, keyring, publicUrl, decideAs, depsOf, readFresh } =
    context
  endpoint(app, {
    ...gateRoute,
    route: `POST ${path}`,
    auth: [noStore, requireToken('agent')],
    operationId: 'createGateLoginSession',
    summary: 'Create a dashboard login',
    description:
      'Requires an agent token, and counts as a use of it. The login expires after 15 minutes unless a person approves it at `consent_url`. 404 unless the service is active and discoverable, and has a `dashboard_login_url`. Ten requests per minute and token.',
    body: loginSessionBody,
    parameterSet: 'gate_login_session_create',
    idempotent: true,
    responses: { 201: single(loginSessionSchema) },
    errors: [404],
    async run(request, { reply, toResponse }) {
      const agentToken = agentTokenOf(request)
      const find = () => findAgentToken(pool, tokenHashes(keyring, agentToken))
      const token = requireUsableToken(await readFresh(find), clock())
      // After the token check, so that guessed tokens add no rows to the limits table.
      await limits.enforce('create_login', agentToken)
      const { service_id: serviceId } = request.body
      const login = { token, serviceId, requester: requesterOf(request) }
      const scope = `gate:${token.gate_account_id}`
      const decide = decideAs({ type: 'agent', id: token.gate_account_id }, request)
      return idempotency.run({ request, reply, scope }, async (command) => {
        const deps = depsOf(command, decide)
        const session = await openLogin(deps, login)
        await renewTokenIfDue(deps, token)
        return toResponse({ data: loginSessionJson(session, publicUrl) })
      })
    },
  })
}

function consumeRoute(app: FastifyInstance, context: GateContext): void {
  const { auth, idempotency, limits, decideAsCaller, depsOf, readFresh } = context
  endpoint(app, {
    ...gateRoute,
    route: `POST ${path}/consume`,
    auth: [noStore, auth.requireSecret('gate:login_sessions:consume')],
    operationId: 'consumeGateLoginSessionCode',
    summary: 'Exchange a dashboard login code',
    description:
      'Requires the `gate:login_sessions:consume` secret-key scope. A code works once, within 5 minutes, and only until the agent token of its account is revoked. 410 `gate.session_already_resolved` for a used code, 410 `gate.session_expired` for any other invalid code. A repeat with the same Idempotency-Key returns the first response. 30 requests per minute and code.',
    body: loginCodeBody,
    parameterSet: 'gate_login_session_consume',
    idempotent: true,
    responses: { 200: single(dashboardLoginSchema) },
    errors: [410],
    async run(request, { reply, toResponse }) {
      const scope = auth.dataScope(request)
      const { code } = request.body
      await limits.enforce('consume', scope.organizationId, code)
      return idempotency.run({ request, reply }, async (command) => {
        const deps = { ...depsOf(command, decideAsCaller(request)), readFresh }
        const account = await consumeLoginCode(deps, code, scope)
        return toResponse({ data: { object: 'gate_dashboard_login', ...account } })
      })
    },
  })
}

function loginSessionJson(
  { id, expires_at, confirmation_code }: GateSessionRow,
  publicUrl: string,
): z.input<typeof loginSessionSchema> {
  return {
    object: 'gate_login_session',
    id,
    status: 'pending',
    consent_url: consentUrl(publicUrl, id),
    confirmation_code,
    expires_at: new Date(expires_at).toISOString(),
  }
}

const loginSessionBody = z
  .strictObject({ service_id: serviceIdSchema })
  .meta({ id: 'CreateGateLoginSessionRequest' })

const loginSessionSchema = z
  .strictObject({
    object: z.literal('gate_login_session'),
    id: z.string().describe('Gate session, `gate_...`.'),
    status: z.literal('pending'),
    consent_url: z.url().describe('Page where a person approves the login.'),
    confirmation_code: confirmationCodeSchema,
    expires_at: timestamp,
  })
  .meta({ id: 'GateLoginSession' })

const loginCodeBody = z
  .strictObject({ code: z.string().describe('Login code, `gtcode_...`.') })
  .meta({ id: 'ConsumeGateLoginSessionRequest' })

const dashboardLoginSchema = z
  .strictObject({
    object: z.literal('gate_dashboard_login'),
    gate_account_id: z.string().describe('Gate account, `gacct_...`.'),
    account_name: z.string(),
  })
  .meta({ id: 'GateDashboardLogin' })
