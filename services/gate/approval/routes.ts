import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Token } from '../../../infra/crypto/tokens.ts'
import type { Decide } from '../../../infra/event-store/decide.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import { approveLogin, loginOutcome } from '../login/commands.ts'
import { gateSessionIdOf, gateSessionParams, noStore, ownOriginOnly } from '../requests.ts'
import { consentingPerson, foundSession } from '../sessions.ts'
import {
  type ApproveRequest,
  approveParameterSet,
  type CheckedApproval,
  countedApproval,
  outcomeToken,
  signupOutcome,
  startSignupApproval,
} from './commands.ts'

export function approvalRoutes(app: FastifyInstance, context: GateContext): void {
  const { pool, idempotency, publicUrl, decideAs } = context
  endpoint(app, {
    route: 'POST /v1/gate/sessions/:gateSessionId/approve',
    auth: [noStore, ownOriginOnly(publicUrl)],
    operationId: 'approveGateSession',
    tag: 'Gate',
    summary: 'Approve a signup or a dashboard login',
    description:
      'For the consent page: needs an `approve_token` of it and a sealed token of its own session that was asked for with that, at most two minutes old. Three attempts for each address and session; one that lacks the `account_name` is none. A signup whose agent has to tell a code first is `pending`, with the code; the same request asks again. Else it is approved once its service has answered; until then the answer is 409 `gate.approval_in_progress`, and the same request asks again without being another attempt, also where the answer got lost. Nor does a repetition that an Idempotency-Key answers.',
    params: gateSessionParams,
    body: approveBody,
    bodyCode: 'gate.validation_failed',
    parameterSet: approveParameterSet,
    idempotent: true,
    answers: { 200: single(approvedSchema) },
    errors: [403, 404, 410, 429],
    async run(request, { reply, answer }) {
      const session = foundSession(await findGateSession(pool, gateSessionIdOf(request)))
      const repeatable = { request, reply, scope: session.id }
      if (await idempotency.replay(repeatable)) return reply
      const approveRequest = requestOf(request, session)
      const token = await outcomeToken(context, approveRequest)
      // The same whenever it is approveRequest, as often as one likes: nothing is stored for it.
      if (token !== undefined) return { data: await outcomeOf(context, session, token) }
      // Before a row is made for its key: refused, it leaves nothing behind.
      const checked = await countedApproval(context, approveRequest)
      return idempotency.run(repeatable, async (command) => {
        const decide = decideAs(consentingPerson, request)
        return answer({ data: await approve({ ...context, decide }, { ...checked, command }) })
      })
    },
  })
}

function requestOf(
  { body, ip }: { body: z.output<typeof approveBody>; ip: string },
  session: GateSessionRow,
): ApproveRequest {
  const { approve_token: approveToken, sealed_token: sealedToken, session_id: proofSessionId } = body
  const { accepted_env_vars: acceptedEnvVars = [], account_name: accountName } = body
  return { session, approveToken, sealedToken, proofSessionId, accountName, acceptedEnvVars, ip }
}

async function approve(context: GateContext & { decide: Decide }, approving: CheckedApproval) {
  const { session, token } = approving
  await (session.kind === 'login'
    ? approveLogin(context, approving)
    : startSignupApproval(context, approving))
  return outcomeOf(context, foundSession(await findGateSession(context.pool, session.id)), token)
}

function outcomeOf(context: GateContext, session: GateSessionRow, token: Token<'gtapr'>) {
  return session.kind === 'login'
    ? loginOutcome(context, session.id, token)
    : signupOutcome(context, session, token)
}

const gateSessionId = z.string().describe('`gate_...`')

const approveBody = z
  .strictObject({
    approve_token: z.string().max(200).optional().describe('From the consent data of this session.'),
    sealed_token: z
      .string()
      .max(192 * 1024)
      .optional()
      .describe(
        'What the SDK on the consent page was handed for its session, with the approve token as `binding`.',
      ),
    account_name: z
      .string()
      .max(400)
      .optional()
      .describe('Needed where the verdict is not `human`: a person types it.'),
    session_id: z
      .string()
      .max(200)
      .optional()
      .describe('`sid_...` of that session; checked where it is given.'),
    accepted_env_vars: z
      .array(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/))
      .max(100)
      .optional()
      .describe('Of a signup: the variables that may go into the env file of the agent.'),
  })
  .meta({ id: 'ApproveGateSessionRequest' })

const approved = z.literal('approved')

const approvedSchema = z
  .discriminatedUnion('object', [
    z.strictObject({
      object: z.literal('gate_session'),
      id: gateSessionId,
      status: z.enum(['approved', 'pending']).describe('pending: the agent has to tell the code first.'),
      claim_code: z
        .string()
        .optional()
        .describe('While it is pending, for the page that approved and for no other.'),
      receipt_url: z
        .url()
        .optional()
        .describe(
          'Once it is approved, for the same page: where it can be forgotten who asked and approved.',
        ),
    }),
    z.strictObject({
      object: z.literal('gate_login_session'),
      id: gateSessionId,
      status: approved,
      code: z.string().describe('`gtcode_...`; the service exchanges it once, within five minutes.'),
      redirect_url: z
        .string()
        .nullable()
        .describe("The service's dashboard with `code` in the query; null once the service has none."),
    }),
  ])
  .meta({ id: 'GateSessionApproval' })
