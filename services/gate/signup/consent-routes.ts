import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { sourceOf } from '../../../infra/access/source.ts'
import { isToken, type Token } from '../../../infra/crypto/tokens.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import { parseJsonOrUndefined } from '../../../infra/text.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateContext } from '../context.ts'
import { requireRegisteredService } from '../registry/registered-services.ts'
import {
  gateSessionIdOf,
  gateSessionParams,
  isFromBrowser,
  noStore,
  requesterNetwork,
  requireOwnOrigin,
} from '../requests.ts'
import { agentOf, consentingPerson } from '../sessions.ts'
import { declineSession } from './commands.ts'
import { requireDecidable, requireDeclinable } from './decide.ts'
import { cancelledSessionJson, consentJson } from './responses.ts'
import { cancelledSessionSchema, cancelQuery, consentSchema } from './schemas.ts'

export function consentRoutes(app: FastifyInstance, context: GateContext): void {
  consentRoute(app, context)
  cancelRoute(app, context)
}

function consentRoute(app: FastifyInstance, context: GateContext): void {
  const { limits, pool, pages, clock, publicUrl } = context
  endpoint(app, {
    route: 'GET /v1/gate/sessions/:gateSessionId/consent',
    auth: [
      noStore,
      requireOwnOrigin(publicUrl),
      ({ ip }) => limits.enforce('consent', sourceOf(ip)),
    ],
    operationId: 'getGateSessionConsent',
    tag: 'Gate',
    summary: 'Retrieve consent data',
    description:
      "Used by the consent page; other pages can't read it in a browser. Returns the data that a person is asked to approve, with a new approve token; earlier tokens stay valid. Once the session is resolved, the field `status` of the error says how: approved, declined, closed (the page was closed), claim_failed or integrator_failed. 30 requests per minute and IP address.",
    params: gateSessionParams,
    responses: { 200: single(consentSchema) },
    errors: [403, 404, 409, 410, 429],
    // A HEAD request would mark a closing page as open.
    settings: { exposeHeadRoute: false },
    async run(request) {
      const row = await findGateSession(pool, gateSessionIdOf(request))
      const session = requireDecidable(row, clock())
      const serviceId = session.service_id
      const service = await requireRegisteredService(pool, { serviceId, publicUrl })
      const data = consentJson(session, {
        service,
        approveToken: await pages.issueApproveToken(session.id),
        network: requesterNetwork(context, session.requested_ip, request.ip),
      })
      return { data }
    },
  })
}

function cancelRoute(app: FastifyInstance, context: GateContext): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) =>
      done(null, body),
    )
    endpoint(scope, {
      route: 'POST /v1/gate/sessions/:gateSessionId/cancel',
      auth: requireOwnOrigin(context.publicUrl),
      operationId: 'cancelGateSession',
      tag: 'Gate',
      summary: 'Reject a pending signup or login',
      description:
        'Rejecting again has no effect, with or without an Idempotency-Key. 60 rejections of pending sessions per minute and IP address. The consent page sends `closing=1` when it is being closed: the session is then rejected only if the page is not opened again within 3 seconds, for example by a reload. With it, the page sends its `approve_token` as JSON, so that a late request of a closed page does not close the reopened one. Any other body is ignored.',
      params: gateSessionParams,
      query: cancelQuery,
      responses: { 200: single(cancelledSessionSchema) },
      errors: [403, 404, 409, 410, 413, 415, 429],
      run: async (request) => ({ data: await cancel(context, request) }),
    })
  })
}

const closingBody = z.object({ approve_token: z.string() })

// Returns the approve token that the closing page sends; undefined if the body has none.
function closingPageToken(body: unknown): Token<'gtapr'> | undefined {
  const token = closingBody.safeParse(parseJsonOrUndefined(String(body))).data?.approve_token
  return token !== undefined && isToken('gtapr', token) ? token : undefined
}

// Anyone can send this request with made-up ids, so return early if nothing would change. Only changes count towards
// the rate limit, so that a repeated request never fails with 429.
async function cancel(
  context: GateContext,
  request: FastifyRequest<{ Querystring: z.output<typeof cancelQuery> }>,
) {
  const { pool, clock, limits } = context
  const session = requireDeclinable(await findGateSession(pool, gateSessionIdOf(request)), {
    now: clock(),
  })
  if (session.status === 'rejected') return cancelledSessionJson(session, 'rejected')
  await limits.enforce('cancel', sourceOf(request.ip), session.id)
  if (request.query.closing === '1') {
    await context.pages.markClosed(session.id, closingPageToken(request.body))
    return cancelledSessionJson(session, 'pending')
  }
  const decide = context.decideAs(
    isFromBrowser(request) ? consentingPerson : agentOf(session),
    request,
  )
  await declineSession({ ...context, decide }, session.id)
  return cancelledSessionJson(session, 'rejected')
}
