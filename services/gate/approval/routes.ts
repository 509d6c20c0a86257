import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { Command } from '../../../infra/http/idempotency.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import { findGateSession } from '../../../projections/gate/session-queries.ts'
import type { GateContext } from '../context.ts'
import { noStore } from '../no-store.ts'
import { ownOriginOnly } from '../own-origin.ts'
import { type GateSessionPath, gateSessionIdOf, gateSessionParams } from '../session-path.ts'
import { foundSession } from '../session-state.ts'
import { loginOutcome, startLogin } from './approve-login.ts'
import { signupOutcome, startSignup } from './approve-signup.ts'
import { type ApproveRequest, asksForOutcome, checkedApproval } from './approving.ts'
import { approveBody, approvedSchema } from './schemas.ts'

interface Approve extends GateSessionPath {
  Body: z.output<typeof approveBody>
}

/** What the consent page does when a person approves. */
export function approvalRoutes(app: FastifyInstance, context: GateContext): void {
  const { pool, idempotency, publicUrl } = context
  const schema = {
    operationId: 'approveGateSession',
    summary: 'Approve a signup or a dashboard login',
    description:
      'For the consent page: needs its newest `approve_token` and the sealed token of its own session, at most two minutes old. Three attempts for each address and session. A signup is approved once its service has answered; until then the answer is 409 `gate.approval_in_progress`, and the same request asks again without being another attempt, also where the answer got lost.',
    tags: ['Gate'],
    params: gateSessionParams,
    body: approveBody,
    response: {
      200: single(approvedSchema),
      ...errorResponses(400, 403, 404, 409, 410, 413, 415, 422, 429),
    },
  }
  const parameterSet = 'gate_session_approve'
  const config = { bodyCode: 'gate.validation_failed', parameterSet, idempotent: true } as const
  const onRequest = [noStore, ownOriginOnly(publicUrl)]
  app.post<Approve>(
    '/v1/gate/sessions/:gateSessionId/approve',
    { schema, config, onRequest },
    async (request, reply) => {
      const session = foundSession(await findGateSession(pool, gateSessionIdOf(request)))
      return idempotency.run({ request, reply, scope: session.id }, async (command) => {
        const data = await approve(context, requestOf(request, { session, command }))
        return { status: 200, body: { data, meta: { request_id: request.id } } }
      })
    },
  )
}

function requestOf(
  { body, ip }: FastifyRequest<Approve>,
  known: { session: ApproveRequest['session']; command: Command },
): ApproveRequest {
  const { approve_token: approveToken, sealed_token: sealedToken, session_id: proofSessionId } = body
  return { ...known, approveToken, sealedToken, proofSessionId, ip }
}

async function approve(context: GateContext, request: ApproveRequest) {
  const { session } = request
  const isLogin = session.kind === 'login'
  let token = await asksForOutcome(context, request)
  if (token === undefined) {
    const approving = await checkedApproval(context, request)
    await (isLogin ? startLogin(context, approving) : startSignup(context, approving))
    token = approving.token
  }
  return isLogin ? loginOutcome(context, session.id, token) : signupOutcome(context, session.id)
}
