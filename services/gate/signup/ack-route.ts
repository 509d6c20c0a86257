import type { FastifyInstance, preValidationHookHandler } from 'fastify'
import type { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import { requireToken } from '../requests/bearer.ts'
import { noStore } from '../requests/no-store.ts'
import { type GateSessionPath, gateSessionIdOf, gateSessionParams } from '../requests/session-path.ts'
import type { SignupContext } from './context.ts'
import { polledSession } from './polled-session.ts'
import { ackBody, acknowledgementSchema } from './schemas.ts'
import { acknowledgeDelivery } from './session-commands.ts'

/** The end of a delivery by whoever has read it. */
export function ackRoute(app: FastifyInstance, context: SignupContext): void {
  const { idempotency } = context
  const schema = {
    operationId: 'acknowledgeGateSessionDelivery',
    summary: 'Acknowledge the credentials, which are then deleted',
    description:
      "Requires the session's poll token. Once it has answered 200 nobody can read the credentials any more; a second acknowledgement is refused; a repetition with the same Idempotency-Key gets the first answer. 20 requests a minute for each token.",
    tags: ['Gate'],
    params: gateSessionParams,
    body: ackBody,
    response: {
      200: single(acknowledgementSchema),
      ...errorResponses(400, 401, 403, 404, 409, 410, 413, 415, 422, 429),
    },
  }
  const parameterSet = 'gate_session_ack'
  const config = { bodyCode: 'gate.validation_failed', parameterSet, idempotent: true } as const
  app.post<Ack>('/v1/gate/sessions/:gateSessionId/ack', {
    schema,
    config,
    onRequest: [
      noStore,
      requireToken('poll'),
      async (request) => {
        await polledSession(context, { request, limit: 'ack' })
      },
    ],
    preValidation: requireAckToken,
    handler: (request, reply) => {
      const gateSessionId = gateSessionIdOf(request)
      return idempotency.run({ request, reply, scope: gateSessionId }, async ({ random }) => {
        await acknowledgeDelivery({ ...context, random }, { gateSessionId, ackToken: request.body.ack_token })
        const data = {
          object: 'gate_session_delivery',
          gate_session_id: gateSessionId,
          status: 'acknowledged',
        }
        return { status: 200, body: { data, meta: { request_id: request.id } } }
      })
    },
  })
}

interface Ack extends GateSessionPath {
  Body: z.output<typeof ackBody>
}

/** Without an ack token a request is refused as one with a wrong one is. */
const requireAckToken: preValidationHookHandler = ({ body }, _reply, done) => {
  const lacks = body === undefined || (isObject(body) && !('ack_token' in body))
  done(lacks ? new ApiError('gate.delivery_ack_invalid') : undefined)
}

const isObject = (body: unknown): body is object =>
  typeof body === 'object' && body !== null && !Array.isArray(body)
