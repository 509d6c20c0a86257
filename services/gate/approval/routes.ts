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
  ownOriginOnly,
} from '../requests.ts'
import { consentingPerson, foundSession } from '../sessions.ts'
import {
  approveParameterSet,
  type CheckedApproval,
  countedApproval,
  outcomeToken,
  signupOutcome,
  startSignupApproval,
} from './commands.ts'
import { approveBody, approvedSchema } from './schemas.ts'

export function approvalRoutes(app: FastifyInstance, context: GateContext): void {
  const { pool, idempotency, publicUrl, decideAs, depsOf } = context
  endpoint(app, {
    ...gateRoute,
    route: 'POST /v1/gate/sessions/:gateSessionId/approve',
    auth: [noStore, ownOriginOnly(publicUrl)],
    operationId: 'approveGateSession',
    summary: 'Approve a signup or a dashboard login',
    description:
      'For the consent page: needs an `approve_token` of it and a sealed token of its own session that was asked for with that, at most two minutes old. Three attempts for each address and session; one that lacks the `account_name` is none. A signup whose agent has to tell a code first is `pending`, with the code; the same request asks again. Else it is approved once its service has answered; until then the answer is 409 `gate.approval_in_progress`, and the same request asks again without being another attempt, also where the answer got lost. Nor does a repetition that an Idempotency-Key answers.',
    params: gateSessionParams,
    body: approveBody,
    parameterSet: approveParameterSet,
    idempotent: true,
    answers: { 200: single(approvedSchema) },
    errors: [403, 404, 410, 429],
    async run(request, { reply, answer }) {
      const session = foundSession(await findGateSession(pool, gateSessionIdOf(request)))
      const repeatable = { request, reply, scope: session.id }
      if (await idempotency.replay(repeatable)) return reply
      const token = await outcomeToken(context, session, request.body)
      // The answer is the same however often it is requested, so nothing is stored for it.
      if (token !== undefined) return { data: await outcomeOf(context, session, token) }
      // This comes before a row is made for the Idempotency-Key, so that a refusal leaves nothing behind.
      const approval = await countedApproval(context, {
        session,
        body: request.body,
        ip: request.ip,
      })
      return idempotency.run(repeatable, async (command) => {
        const deps = depsOf(command, decideAs(consentingPerson, request))
        return answer({ data: await approve({ ...context, ...deps }, approval) })
      })
    },
  })
}

async function approve(gate: GateContext & GateDeps, approval: CheckedApproval) {
  const { session, token } = approval
  await (session.kind === 'login'
    ? approveLogin(gate, approval)
    : startSignupApproval(gate, approval))
  return outcomeOf(gate, foundSession(await findGateSession(gate.pool, session.id)), token)
}

function outcomeOf(context: GateContext, session: GateSessionRow, token: Token<'gtapr'>) {
  return session.kind === 'login'
    ? loginOutcome(context, session.id, token)
    : signupOutcome(context, session, token)
}
