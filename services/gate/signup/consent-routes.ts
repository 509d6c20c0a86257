import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { sourceOf } from '../../../infra/access/source.ts'
import { isToken, type Token } from '../../../infra/crypto/tokens.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import { parsedJson } from '../../../infra/text.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateContext } from '../context.ts'
import { serviceOf } from '../registry/registered.ts'
import {
  gateSessionIdOf,
  gateSessionParams,
  isFromBrowser,
  noStore,
  ownOriginOnly,
  requesterNetwork,
} from '../requests.ts'
import { agentOf, consentingPerson } from '../sessions.ts'
import { cancelledJson, consentJson } from './answers.ts'
import { declineSession } from './commands.ts'
import { checkDeclinable, decidableSession } from './decide.ts'
import { cancelledSessionSchema, cancelQuery, consentSchema } from './schemas.ts'

export function consentRoutes(app: FastifyInstance, context: GateContext): void {
  consentRoute(app, context)
  cancelRoute(app, context)
}

function consentRoute(app: FastifyInstance, context: GateContext): void {
  const { limits, pool, pages, clock, publicUrl } = context
  endpoint(app, {
    route: 'GET /v1/gate/sessions/:gateSessionId/consent',
    auth: [noStore, ownOriginOnly(publicUrl), ({ ip }) => limits.count('consent', sourceOf(ip))],
    operationId: 'getGateSessionConsent',
    tag: 'Gate',
    summary: 'Read what a person is asked to approve',
    description:
      'For the consent page; other pages cannot read it in a browser. Each answer has another approve token; those before it stay good. Once it is resolved, the field `status` of the error says how: approved, declined, closed (its page was) or integrator_failed. 30 requests a minute for each IP address.',
    params: gateSessionParams,
    answers: { 200: single(consentSchema) },
    errors: [403, 404, 409, 410, 429],
    // A HEAD request must not keep a page open that is closing.
    settings: { exposeHeadRoute: false },
    async run(request) {
      const found = await findGateSession(pool, gateSessionIdOf(request))
      const session = decidableSession(found, clock())
      const service = await serviceOf(pool, { serviceId: session.service_id, publicUrl })
      const data = consentJson(session, {
        service,
        approveToken: await pages.open(session.id),
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
      auth: ownOriginOnly(context.publicUrl),
      operationId: 'cancelGateSession',
      tag: 'Gate',
      summary: 'Reject a signup or login that is pending',
      description:
        'Takes no body; one of any type is ignored. Rejecting again does nothing, with or without an Idempotency-Key. 60 a minute of sessions that are pending, for each IP address. With `closing=1`, as the consent page sends it when it is being closed, the session is rejected only if the page is not opened again within 3 seconds, as by a reload. The page sends its `approve_token` along, as JSON: one that was opened again is not closed by what it was before.',
      params: gateSessionParams,
      query: cancelQuery,
      answers: { 200: single(cancelledSessionSchema) },
      errors: [403, 404, 409, 410, 413, 415, 429],
      run: async (request) => ({ data: await cancel(context, request) }),
    })
  })
}

const closingBody = z.object({ approve_token: z.string() })

// The approve token of the page that is being closed.
function closingPage(body: unknown): Token<'gtapr'> | undefined {
  const token = closingBody.safeParse(parsedJson(String(body))).data?.approve_token
  return token !== undefined && isToken('gtapr', token) ? token : undefined
}

// Where nothing changes it answers without a decision, because anyone may send this, with invented ids. Only a change
// counts towards the limit, so that a repetition never fails for it.
async function cancel(
  context: GateContext,
  request: FastifyRequest<{ Querystring: z.output<typeof cancelQuery> }>,
) {
  const { pool, clock, limits } = context
  const session = checkDeclinable(await findGateSession(pool, gateSessionIdOf(request)), {
    now: clock(),
  })
  if (session.status === 'rejected') return cancelledJson(session, 'rejected')
  await limits.count('cancel', sourceOf(request.ip), session.id)
  if (request.query.closing === '1') {
    await context.pages.close(session.id, closingPage(request.body))
    return cancelledJson(session, 'pending')
  }
  const decide = context.decideAs(
    isFromBrowser(request) ? consentingPerson : agentOf(session),
    request,
  )
  await declineSession({ ...context, decide }, session.id)
  return cancelledJson(session, 'rejected')
}
