import type { FastifyInstance } from 'fastify'
import { sourceOf } from '../../../infra/access/source-budget.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import { serviceOf } from '../registry/registered.ts'
import { noStore } from '../requests/no-store.ts'
import { ownOriginOnly } from '../requests/own-origin.ts'
import { type GateSessionPath, gateSessionIdOf, gateSessionParams } from '../requests/session-path.ts'
import type { SignupContext } from './context.ts'
import { decidableSession } from './decidable.ts'
import { consentSchema } from './schemas.ts'
import { consentJson } from './shapes.ts'

/** What a person decides about, with a new approve token; of signups and logins. */
export function consentRoute(app: FastifyInstance, context: SignupContext): void {
  const { limits, pool, pages, clock, publicUrl } = context
  const schema = {
    operationId: 'getGateSessionConsent',
    summary: 'Read what a person is asked to approve',
    description:
      'For the consent page; other pages cannot read it in a browser. Each answer has a new approve token, and those before it are void. Once it is resolved, the field `status` of the error says how: approved, declined, closed (its page was) or integrator_failed. 30 requests a minute for each IP address.',
    tags: ['Gate'],
    params: gateSessionParams,
    response: { 200: single(consentSchema), ...errorResponses(403, 404, 409, 410, 429) },
  }
  app.get<GateSessionPath>('/v1/gate/sessions/:gateSessionId/consent', {
    schema,
    // Asking for the headers alone must not void the token of an open page.
    exposeHeadRoute: false,
    onRequest: [noStore, ownOriginOnly(publicUrl), ({ ip }) => limits.take('consent', sourceOf(ip))],
    handler: async (request) => {
      const found = await findGateSession(pool, gateSessionIdOf(request))
      const session = decidableSession(found, clock())
      const service = await serviceOf(pool, { serviceId: session.service_id, publicUrl })
      const data = consentJson(session, { service, approveToken: await pages.open(session.id) })
      return { data, meta: { request_id: request.id } }
    },
  })
}
