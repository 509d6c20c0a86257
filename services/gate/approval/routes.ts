import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import type { Token } from '../../../infra/crypto/tokens.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import type { Command } from '../../../infra/idempotency/idempotency.ts'
import { createStoredAnswers } from '../../../infra/idempotency/stored-answers.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import { noStore } from '../requests/no-store.ts'
import { ownOriginOnly } from '../requests/own-origin.ts'
import { type GateSessionPath, gateSessionIdOf, gateSessionParams } from '../requests/session-path.ts'
import { foundSession } from '../session-state.ts'
import { signupOutcome, startSignup } from './approve-signup.ts'
import { type ApproveRequest, asksForOutcome, checkedApproval, countAttempt } from './approving.ts'
import { loginOutcome, startLogin } from './conclude-login.ts'
import { approveBody, approvedSchema } from './schemas.ts'

interface Approve extends GateSessionPath {
  Body: z.output<typeof approveBody>
}

/** What the consent page does when a person approves. */
export function approvalRoutes(app: FastifyInstance, context: GateContext): void {
  const { pool, idempotency, publicUrl } = context
  const storedAnswers = createStoredAnswers(context)
  const schema = {
    operationId: 'approveGateSession',
    summary: 'Approve a signup or a dashboard login',
    description:
      'For the consent page: needs its newest `approve_token` and the sealed token of its own session, at most two minutes old. Three attempts for each address and session. A signup is approved once its service has answered; until then the answer is 409 `gate.approval_in_progress`, and the same request asks again without being another attempt, also where the answer got lost. Nor does a repetition that an Idempotency-Key answers.',
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
      const answered = (data: Awaited<ReturnType<typeof outcomeOf>>) => ({
        data,
        meta: { request_id: request.id },
      })
      const run = { request, reply, scope: session.id }
      const replayed = await storedAnswers.replay(run)
      if (replayed) return replayed
      const asked = requestOf(request, session)
      const token = await asksForOutcome(context, asked)
      // The same whenever it is asked, as often as one likes: nothing is stored for it.
      if (token !== undefined) return answered(await outcomeOf(context, session, token))
      // Before a row is made for its key: refused, it leaves nothing behind.
      await countAttempt(context, asked)
      return idempotency.run(run, async (command) => {
        const data = await approve(context, asked, command)
        return { status: 200, body: answered(data) }
      })
    },
  )
}

function requestOf({ body, ip }: FastifyRequest<Approve>, session: GateSessionRow): ApproveRequest {
  const { approve_token: approveToken, sealed_token: sealedToken, session_id: proofSessionId } = body
  return { session, approveToken, sealedToken, proofSessionId, ip }
}

async function approve(context: GateContext, request: ApproveRequest, command: Command) {
  const { session } = request
  const approving = { ...(await checkedApproval(context, request)), command }
  await (session.kind === 'login' ? startLogin(context, approving) : startSignup(context, approving))
  return outcomeOf(context, session, approving.token)
}

function outcomeOf(context: GateContext, session: GateSessionRow, token: Token<'gtapr'>) {
  return session.kind === 'login' ? loginOutcome(context, session.id, token) : signupOutcome(context, session)
}
