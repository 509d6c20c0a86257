import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { tokenHashes } from '../../../infra/crypto/tokens.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single, timestamp } from '../../../infra/http/schemas.ts'
import { confirmationCodeSchema, consentUrl } from '../../../infra/wire/gate.ts'
import { findAgentToken } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { useToken } from '../accounts/commands.ts'
import type { GateContext } from '../context.ts'
import { serviceIdSchema } from '../registry/schemas.ts'
import { agentTokenOf, gateRoute, noStore, requesterOf, requireToken } from '../requests.ts'
import { consumeLoginCode, openLogin } from './commands.ts'
import { goodToken } from './decide.ts'

const path = '/v1/gate/login-sessions'

export function loginRoutes(app: FastifyInstance, context: GateContext): void {
  createRoute(app, context)
  consumeRoute(app, context)
}

function createRoute(app: FastifyInstance, context: GateContext): void {
  const { idempotency, limits, clock, pool, keyring, publicUrl, decideAs, depsOf, readCurrent } =
    context
  endpoint(app, {
    ...gateRoute,
    route: `POST ${path}`,
    auth: [noStore, requireToken('agent')],
    operationId: 'createGateLoginSession',
    summary: 'Create a Gate dashboard login session',
    description:
      'Requires an agent token, which this is a use of. The login waits 15 minutes for a person to approve it at `consent_url`. 404 unless the service is active and discoverable and has a `dashboard_login_url`.',
    body: loginSessionBody,
    parameterSet: 'gate_login_session_create',
    idempotent: true,
    answers: { 201: single(loginSessionSchema) },
    errors: [404],
    async run(request, { reply, answer }) {
      const text = agentTokenOf(request)
      const find = () => findAgentToken(pool, tokenHashes(keyring, text))
      const token = goodToken(await readCurrent(find), clock())
      // Requests of those who only guess tokens are not counted, so that they leave nothing behind.
      await limits.count('create_login', text)
      const { service_id: serviceId } = request.body
      const requested = { token, serviceId, requester: requesterOf(request) }
      const scope = `gate:${token.gate_account_id}`
      const decide = decideAs({ type: 'agent', id: token.gate_account_id }, request)
      return idempotency.run({ request, reply, scope }, async (command) => {
        const deps = depsOf(command, decide)
        const session = await openLogin(deps, requested)
        await useToken(deps, token)
        return answer({ data: loginSessionJson(session, publicUrl) })
      })
    },
  })
}

function consumeRoute(app: FastifyInstance, context: GateContext): void {
  const { auth, idempotency, limits, decideByKey, depsOf, readCurrent } = context
  endpoint(app, {
    ...gateRoute,
    route: `POST ${path}/consume`,
    auth: [noStore, auth.requireSecret('gate:login_sessions:consume')],
    operationId: 'consumeGateLoginSessionCode',
    summary: 'Consume a Gate dashboard login code',
    description:
      'Requires the `gate:login_sessions:consume` secret-key scope. A code works once, within 5 minutes, and not after the agent token of its account was revoked. 410 `gate.session_already_resolved` for one that was used, 410 `gate.session_expired` for any other that does not work. A repetition with the same Idempotency-Key gets the first answer.',
    body: loginCodeBody,
    parameterSet: 'gate_login_session_consume',
    idempotent: true,
    answers: { 200: single(dashboardLoginSchema) },
    errors: [410],
    async run(request, { reply, answer }) {
      const scope = auth.scope(request)
      const { code } = request.body
      await limits.count('consume', scope.organizationId, code)
      return idempotency.run({ request, reply }, async (command) => {
        const deps = { ...depsOf(command, decideByKey(request)), readCurrent }
        const account = await consumeLoginCode(deps, code, scope)
        return answer({ data: { object: 'gate_dashboard_login', ...account } })
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
    id: z.string().describe('gate_...'),
    status: z.literal('pending'),
    consent_url: z.url().describe('Where a person approves the login, in a browser.'),
    confirmation_code: confirmationCodeSchema,
    expires_at: timestamp,
  })
  .meta({ id: 'GateLoginSession' })

const loginCodeBody = z
  .strictObject({ code: z.string().describe('gtcode_...') })
  .meta({ id: 'ConsumeGateLoginSessionRequest' })

const dashboardLoginSchema = z
  .strictObject({
    object: z.literal('gate_dashboard_login'),
    gate_account_id: z.string().describe('gacct_...'),
    account_name: z.string(),
  })
  .meta({ id: 'GateDashboardLogin' })
