import type { FastifyInstance } from 'fastify'
import type { z } from 'zod'
import { sourceOf } from '../../../infra/access/source-budget.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import { noStore } from '../requests/no-store.ts'
import { requesterOf } from '../requests/requester.ts'
import { checkedRequest, parameterSet } from './checked-request.ts'
import type { SignupContext } from './context.ts'
import { createdSessionSchema, createSessionBody } from './schemas.ts'
import { openSession } from './session-commands.ts'
import { createdJson } from './shapes.ts'

/** A new signup, for anyone. */
export function createRoute(app: FastifyInstance, context: SignupContext): void {
  const { limits, idempotency, depsOf, pool, publicUrl } = context
  const schema = {
    operationId: 'createGateSession',
    summary: 'Ask for an account at a service',
    description:
      'A person decides about it at `consent_url` within 15 minutes. What the service gives out is sealed to the public key in `delivery`, and picked up with the poll token. Five a minute for each IP address.',
    tags: ['Gate'],
    body: createSessionBody,
    response: { 201: single(createdSessionSchema), ...errorResponses(400, 404, 409, 413, 415, 422, 429) },
  }
  const config = { bodyCode: 'gate.validation_failed', parameterSet, idempotent: true } as const
  app.post<Create>('/v1/gate/sessions', {
    schema,
    config,
    onRequest: [({ ip }) => limits.take('create_session', sourceOf(ip)), noStore],
    handler: (request, reply) => {
      const { service_id: serviceId, ...body } = request.body
      const spec = checkedRequest({ ...body, requester: requesterOf(request) })
      const scope = `gate:${sourceOf(request.ip)}`
      return idempotency.run({ request, reply, scope }, async (command) => {
        const { session, pollToken } = await openSession(
          { ...depsOf(command), pool, publicUrl },
          { serviceId, spec },
        )
        const data = createdJson(session, { pollToken, publicUrl })
        return { status: 201, body: { data, meta: { request_id: request.id } } }
      })
    },
  })
}

interface Create {
  Body: z.output<typeof createSessionBody>
}
