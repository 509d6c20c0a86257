import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { errorResponses, single, timestamp } from '../../../infra/http/schemas.ts'
import { confirmationCodeSchema, consentUrl } from '../../../infra/wire/gate.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { findToken, useToken } from '../accounts/commands.ts'
import type { GateContext } from '../context.ts'
import { serviceIdSchema } from '../registry/schemas.ts'
import { agentTokenOf, noStore, requesterOf, requireToken } from '../requests.ts'
import { consumeLoginCode, type LoggedIn, openLogin } from './commands.ts'
import { goodToken } from './decide.ts'

const tags = ['Gate']
const path = '/v1/gate/login-sessions'

type LoginContext = Pick<
  GateContext,
  | 'auth'
  | 'limits'
  | 'scopeOf'
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
  const schema = {
    operationId: 'createGateLoginSession',
    summary: 'Create a Gate dashboard login session',
    description:
      'Requires an agent token, which this is a use of. The login waits 15 minutes for a person to approve it at `consent_url`. 404 unless the service is active and discoverable and has a `dashboard_login_url`.',
    tags,
    body: loginSessionBody,
    response: {
      201: single(loginSessionSchema),
      ...errorResponses(400, 401, 404, 409, 413, 415, 422, 429),
    },
  }
  const onRequest = [noStore, requireToken('agent')]
  const parameterSet = 'gate_login_session_create'
  const config = { parameterSet, bodyCode: 'gate.validation_failed', idempotent: true } as const
  app.post<Create>(path, { schema, onRequest, config }, async (request, reply) => {
    const text = agentTokenOf(request)
    const token = goodToken(await readCurrent(() => findToken(context, text)), clock())
    // Nothing is kept of the requests of those who only guess tokens.
    await limits.count('create_login', text)
    const requested = {
      token,
      serviceId: request.body.service_id,
      requester: requesterOf(request),
      publicUrl,
    }
    const scope = `gate:${token.gate_account_id}`
    const decide = decideAs({ type: 'agent', id: token.gate_account_id }, request)
    return idempotency.run({ request, reply, scope }, async (command) => {
      const session = await openLogin({ ...depsOf(command, decide), pool }, requested)
      await useToken({ ...context, decide }, { token, now: clock() })
      const data = loginSessionJson(session, publicUrl)
      return { status: 201, body: { data, meta: { request_id: request.id } } }
    })
  })
}

function consumeRoute(app: FastifyInstance, context: LoginContext): void {
  const { auth, idempotency, limits, pool, decideByKey, depsOf, scopeOf, readCurrent } = context
  const schema = {
    operationId: 'consumeGateLoginSessionCode',
    summary: 'Consume a Gate dashboard login code',
    description:
      'Requires the `gate:login_sessions:consume` secret-key scope. A code works once, within 5 minutes, and not after the agent token of its account was revoked. 410 `gate.session_already_resolved` for one that was used, 410 `gate.session_expired` for any other that does not work. A repetition with the same Idempotency-Key gets the first answer.',
    tags,
    body: loginCodeBody,
    response: {
      200: single(dashboardLoginSchema),
      ...errorResponses(400, 401, 403, 409, 410, 413, 415, 422, 429),
    },
  }
  const onRequest = [noStore, auth.requireSecret('gate:login_sessions:consume')]
  const parameterSet = 'gate_login_session_consume'
  const config = { parameterSet, bodyCode: 'gate.validation_failed', idempotent: true } as const
  app.post<Consume>(`${path}/consume`, { schema, onRequest, config }, async (request, reply) => {
    const scope = scopeOf(request)
    const { code } = request.body
    await limits.count('consume', scope.organizationId, code)
    return idempotency.run({ request, reply }, async (command) => {
      const deps = { ...depsOf(command, decideByKey(request)), pool, readCurrent }
      const login = await consumeLoginCode(deps, { code, ...scope })
      return { status: 200, body: { data: dashboardLoginJson(login), meta: { request_id: request.id } } }
    })
  })
}

interface Create {
  Body: z.output<typeof loginSessionBody>
}

interface Consume {
  Body: z.output<typeof loginCodeBody>
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
