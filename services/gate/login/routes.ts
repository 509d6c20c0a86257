import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single, timestamp } from '../../../infra/http/schemas.ts'
import { confirmationCodeSchema, consentUrl } from '../../../infra/wire/gate.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { findToken, useToken } from '../accounts/commands.ts'
import type { GateContext } from '../context.ts'
import { serviceIdSchema } from '../registry/schemas.ts'
import { agentTokenOf, noStore, requesterOf, requireToken } from '../requests.ts'
import { consumeLoginCode, type LoggedIn, openLogin } from './commands.ts'
import { goodToken } from './decide.ts'

const tag = 'Gate'
const path = '/v1/gate/login-sessions'

type LoginContext = Pick<
  GateContext,
  | 'auth'
  | 'limits'
  | 'pool'
  | 'keyring'
  | 'decideAs'
  | 'decideByKey'
  | 'clock'
  | 'logger'
  | 'idempotency'
  | 'publicUrl'
  | 'depsOf'
  | 'readCurrent'
>

export function loginRoutes(app: FastifyInstance, context: LoginContext): void {
  createRoute(app, context)
  consumeRoute(app, context)
}

function createRoute(app: FastifyInstance, context: LoginContext): void {
  const { idempotency, limits, clock, pool, publicUrl, decideAs, depsOf, readCurrent } = context
  endpoint(app, {
    route: `POST ${path}`,
    auth: [noStore, requireToken('agent')],
    operationId: 'createGateLoginSession',
    tag,
    summary: 'Create a Gate dashboard login session',
    description:
      'Requires an agent token, which this is a use of. The login waits 15 minutes for a person to approve it at `consent_url`. 404 unless the service is active and discoverable and has a `dashboard_login_url`.',
    body: loginSessionBody,
    bodyCode: 'gate.validation_failed',
    parameterSet: 'gate_login_session_create',
    idempotent: true,
    answers: { 201: single(loginSessionSchema) },
    errors: [404],
    async run(request, { reply, answer }) {
      const text = agentTokenOf(request)
      const token = goodToken(await readCurrent(() => findToken(context, text)), clock())
      // Nothing is kept of the requests of those who only guess tokens.
      await limits.count('create_login', text)
      const { service_id: serviceId } = request.body
      const requested = { token, serviceId, requester: requesterOf(request), publicUrl }
      const scope = `gate:${token.gate_account_id}`
      const decide = decideAs({ type: 'agent', id: token.gate_account_id }, request)
      return idempotency.run({ request, reply, scope }, async (command) => {
        const session = await openLogin({ ...depsOf(command, decide), pool }, requested)
        await useToken({ ...context, decide }, { token, now: clock() })
        return answer({ data: loginSessionJson(session, publicUrl) })
      })
    },
  })
}

function consumeRoute(app: FastifyInstance, context: LoginContext): void {
  const { auth, idempotency, limits, pool, decideByKey, depsOf, readCurrent } = context
  endpoint(app, {
    route: `POST ${path}/consume`,
    auth: [noStore, auth.requireSecret('gate:login_sessions:consume')],
    operationId: 'consumeGateLoginSessionCode',
    tag,
    summary: 'Consume a Gate dashboard login code',
    description:
      'Requires the `gate:login_sessions:consume` secret-key scope. A code works once, within 5 minutes, and not after the agent token of its account was revoked. 410 `gate.session_already_resolved` for one that was used, 410 `gate.session_expired` for any other that does not work. A repetition with the same Idempotency-Key gets the first answer.',
    body: loginCodeBody,
    bodyCode: 'gate.validation_failed',
    parameterSet: 'gate_login_session_consume',
    idempotent: true,
    answers: { 200: single(dashboardLoginSchema) },
    errors: [410],
    async run(request, { reply, answer }) {
      const scope = auth.scope(request)
      const { code } = request.body
      await limits.count('consume', scope.organizationId, code)
      return idempotency.run({ request, reply }, async (command) => {
        const deps = { ...depsOf(command, decideByKey(request)), pool, readCurrent }
        return answer({ data: dashboardLoginJson(await consumeLoginCode(deps, { code, ...scope })) })
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

function dashboardLoginJson({ gateAccountId, accountName }: LoggedIn): z.input<typeof dashboardLoginSchema> {
  return { object: 'gate_dashboard_login', gate_account_id: gateAccountId, account_name: accountName }
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
