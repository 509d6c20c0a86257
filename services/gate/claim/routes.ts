import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { invalidField } from '../../../infra/errors/errors.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import { gateRoute, gateSessionParams, noStore, requireSignup, requireToken } from '../requests.ts'
import { agentOf, phaseOf, requireSession } from '../sessions.ts'
import { parseClaimCode } from './code.ts'
import { claimSignup } from './commands.ts'

const parameterSet = 'gate_session_claim'

export function claimRoutes(app: FastifyInstance, context: GateContext): void {
  const { pool, idempotency, decideAs, approvals } = context
  endpoint(app, {
    ...gateRoute,
    route: 'POST /v1/gate/sessions/:gateSessionId/claim',
    auth: [noStore, requireToken('poll')],
    operationId: 'claimGateSession',
    summary: 'Claim a signup',
    description:
      'Requires the session\'s poll token. Sends the code that the consent page showed after the approval, for a signup with `claim: "supported"` whose poll returns `claim: "waiting"`. With the right code, the service is asked for the account; sending it again has no effect. The fifth wrong code rejects the signup. 20 requests per minute and token.',
    params: gateSessionParams,
    body: claimBody,
    parameterSet,
    idempotent: true,
    responses: { 200: single(claimedSchema) },
    errors: [403, 404, 410],
    async run(request, { reply, toResponse }) {
      const session = await requireSignup(context, request, 'claim')
      const code = checkedCode(request.body.code)
      return idempotency.run({ request, reply, scope: session.id }, async () => {
        const decide = decideAs(agentOf(session), request)
        await claimSignup({ ...context, decide }, session, code)
        approvals.startIfIdle(session.id)
        const claimed = requireSession(await findGateSession(pool, session.id))
        return toResponse({ data: claimedJson(claimed) })
      })
    },
  })
}

function checkedCode(text: string): string {
  const code = parseClaimCode(text)
  if (code !== undefined) return code
  const field = {
    name: 'code',
    issue: 'invalid',
    expected: 'six digits, as the consent page shows them',
  }
  throw invalidField(field, { parameter_set: parameterSet }, 'gate.validation_failed')
}

function claimedJson(session: GateSessionRow): z.input<typeof claimedSchema> {
  const { id, status } = session
  const progress = phaseOf(session) === 'in_progress' ? { approval: 'in_progress' as const } : {}
  return { object: 'gate_session', id, status, ...progress }
}

const claimBody = z
  .strictObject({
    code: z.string().max(40).describe('Six digits. Spaces and hyphens are ignored.'),
  })
  .meta({ id: 'ClaimGateSessionRequest' })

const claimedSchema = z
  .strictObject({
    object: z.literal('gate_session'),
    id: z.string().describe('Gate session, `gate_...`.'),
    status: z.enum(['pending', 'approved', 'rejected', 'expired']),
    approval: z
      .literal('in_progress')
      .optional()
      .describe('Present while the service is being asked for the account.'),
  })
  .meta({ id: 'GateSessionClaim' })
