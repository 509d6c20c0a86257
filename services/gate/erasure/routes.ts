import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { sourceOf } from '../../../infra/access/source.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import type { GateContext } from '../context.ts'
import {
  gateRoute,
  gateSessionIdOf,
  gateSessionParams,
  noStore,
  requireOwnOrigin,
} from '../requests.ts'
import { consentingPerson } from '../sessions.ts'
import { isReceiptToken } from './receipt.ts'

export function gateErasureRoutes(app: FastifyInstance, context: GateContext): void {
  const { keyring, limits, publicUrl, eraseSession, decideAs } = context
  endpoint(app, {
    ...gateRoute,
    route: 'POST /v1/gate/sessions/:gateSessionId/erase',
    auth: [noStore, requireOwnOrigin(publicUrl), ({ ip }) => limits.enforce('erase', sourceOf(ip))],
    operationId: 'eraseGateSession',
    summary: 'Erase the personal data of a signup',
    description:
      "Used by the receipt page, whose link a person gets after approving a signup. Permanently erases the agent's address and user agent, the account's name, and the session of the consent page, for this signup and all logins of the account. The account at the service is kept. Repeating the request has no effect. Ten requests per minute and IP address.",
    params: gateSessionParams,
    body: eraseBody,
    parameterSet: 'gate_session_erase',
    responses: { 200: single(erasedSchema) },
    errors: [403, 404, 429],
    async run(request) {
      const gateSessionId = gateSessionIdOf(request)
      const token = request.body.receipt_token
      if (!isReceiptToken(keyring, { token, gateSessionId }))
        throw new ApiError('gate.session_not_found')
      const decide = decideAs(consentingPerson, request)
      if (!(await eraseSession(decide, gateSessionId))) throw new ApiError('gate.session_not_found')
      return { data: { object: 'gate_erasure', gate_session_id: gateSessionId, erased: true } }
    },
  })
}

const eraseBody = z
  .strictObject({
    receipt_token: z.string().max(200).describe('Receipt token from the link, `gtrcpt_...`.'),
  })
  .meta({ id: 'EraseGateSessionRequest' })

const erasedSchema = z
  .strictObject({
    object: z.literal('gate_erasure'),
    gate_session_id: z.string().describe('Gate session, `gate_...`.'),
    erased: z.literal(true),
  })
  .meta({ id: 'GateErasure' })
