import type { FastifyInstance } from 'fastify'
import type { Token } from '../../../infra/crypto/tokens.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateContext, GateDeps } from '../context.ts'
import { approveLogin, loginOutcome } from '../login/commands.ts'
import {
  gateRoute,
  gateSessionIdOf,
  gateSessionParams,
  noStore,
  requireOwnOrigin,
} from '../requests.ts'
import { consentingPerson, requireSession } from '../sessions.ts'
import {
  admitApproval,
  approveParameterSet,
  type CheckedApproval,
  findOutcomeToken,
  startSignupApproval,
  waitForSignupOutcome,
} from './commands.ts'
import { approveBody, approvedSchema } from './schemas.ts'

export function approvalRoutes(app: FastifyInstance, context: GateContext): void {
  const { pool, idempotency, publicUrl, decideAs, depsOf } = context
  endpoint(app, {
    ...gateRoute,
    route: 'POST /v1/gate/sessions/:gateSessionId/approve',
    auth: [noStore, requireOwnOrigin(publicUrl)],
    operationId: 'approveGateSession',
    summary: 'Approve a signup or a dashboard login',
    description:
      "Used by the consent page. Needs an `approve_token` from the consent data, and a sealed token of the page's own session that was requested with it and is at most two minutes old. Each IP address has three attempts per session; a request without a required `account_name` doesn't count. If the agent must send a claim code first, the signup stays `pending` and the response has the code. Otherwise the signup is approved once the service has answered; until then, the response is 409 `gate.approval_in_progress`. Repeating the request to get the outcome doesn't count as an attempt, and neither does a replay through an Idempotency-Key.",
    params: gateSessionParams,
    body: approveBody,
    parameterSet: approveParameterSet,
    idempotent: true,
    responses: { 200: single(approvedSchema) },
    errors: [403, 404, 410, 429],
    async run(request, { reply, toResponse }) {
      const session = requireSession(await findGateSession(pool, gateSessionIdOf(request)))
      const idempotent = { request, reply, scope: session.id }
      if (await idempotency.replay(idempotent)) return reply
      const token = await findOutcomeToken(context, session, request.body)
      // Reading the outcome is idempotent, so its response is not stored for the Idempotency-Key.
      if (token !== undefined) return { data: await outcomeOf(context, session, token) }
      // Before `idempotency.run`, so that an invalid approval stores nothing.
      const approval = await admitApproval(context, {
        session,
        body: request.body,
        ip: request.ip,
      })
      return idempotency.run(idempotent, async (command) => {
        const deps = depsOf(command, decideAs(consentingPerson, request))
        return toResponse({ data: await approve({ ...context, ...deps }, approval) })
      })
    },
  })
}

async function approve(gate: GateContext & GateDeps, approval: CheckedApproval) {
  const { session, token } = approval
  await (session.kind === 'login'
    ? approveLogin(gate, approval)
    : startSignupApproval(gate, approval))
  return outcomeOf(gate, requireSession(await findGateSession(gate.pool, session.id)), token)
}

function outcomeOf(context: GateContext, session: GateSessionRow, token: Token<'gtapr'>) {
  return session.kind === 'login'
    ? loginOutcome(context, session.id, token)
    : waitForSignupOutcome(context, session, token)
}
