import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { z } from 'zod'
import { isToken, type Token } from '../../../infra/crypto/tokens.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import type { GateSessionId } from '../../../infra/ids.ts'
import { findGateSession } from '../../../projections/gate/session-queries.ts'
import { ownOriginOnly } from '../own-origin.ts'
import { type GateSessionPath, gateSessionIdOf, gateSessionParams } from '../session-path.ts'
import { foundSession } from '../session-state.ts'
import type { SignupContext } from './context.ts'
import { checkDeclinable } from './reject-session.ts'
import { cancelledSessionSchema, cancelQuery } from './schemas.ts'
import { declineSession } from './session-commands.ts'
import { cancelledJson } from './shapes.ts'

const schema = {
  operationId: 'cancelGateSession',
  summary: 'Reject a signup or login that is pending',
  description:
    'Takes no body; one of any type is ignored. Rejecting again does nothing. With `closing=1`, as the consent page sends it when it is being closed, the session is rejected only if the page is not opened again within 3 seconds, as by a reload. The page sends its `approve_token` along, as JSON: one that was opened again is not closed by what it was before.',
  tags: ['Gate'],
  params: gateSessionParams,
  querystring: cancelQuery,
  response: { 200: single(cancelledSessionSchema), ...errorResponses(403, 404, 409, 410, 413, 415) },
}

/** The end of a session by the person who was to decide, or by whoever asked for it. */
export function cancelRoute(app: FastifyInstance, context: SignupContext): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) =>
      done(null, closingPage(body)),
    )
    scope.post<Cancel>('/v1/gate/sessions/:gateSessionId/cancel', {
      schema,
      config: { idempotent: true },
      onRequest: ownOriginOnly(context.publicUrl),
      handler: (request, reply) => {
        const gateSessionId = gateSessionIdOf(request)
        const asked = { request, reply, gateSessionId }
        return request.query.closing === '1' ? closePage(context, asked) : decline(context, asked)
      },
    })
  })
}

interface Cancel extends GateSessionPath {
  Body: Token<'gtapr'> | undefined
  Querystring: z.output<typeof cancelQuery>
}

interface Asked {
  request: FastifyRequest<Cancel>
  reply: FastifyReply
  gateSessionId: GateSessionId
}

/** Which page is being closed, by its approve token; undefined for all other bodies. */
function closingPage(body: string | Buffer): Token<'gtapr'> | undefined {
  try {
    const token: unknown = JSON.parse(String(body)).approve_token
    return typeof token === 'string' && isToken('gtapr', token) ? token : undefined
  } catch {
    return undefined
  }
}

/**
 * Notes that the page is being closed. A beacon has no headers of its own, so none is looked at. One of a page that
 * was opened again since, as by a reload, comes too late to mean anything.
 */
async function closePage({ pool, pages, clock }: SignupContext, { request, gateSessionId }: Asked) {
  const session = checkDeclinable(await findGateSession(pool, gateSessionId), { now: clock() })
  const isPending = session.status === 'pending'
  if (isPending) await pages.close(gateSessionId, request.body)
  return {
    data: cancelledJson(session, isPending ? 'pending' : 'rejected'),
    meta: { request_id: request.id },
  }
}

function decline(
  { pool, decide, clock, idempotency }: SignupContext,
  { request, reply, gateSessionId }: Asked,
) {
  return idempotency.run({ request, reply, scope: gateSessionId }, async () => {
    await declineSession({ decide, clock }, gateSessionId)
    const session = foundSession(await findGateSession(pool, gateSessionId))
    const data = cancelledJson(session, 'rejected')
    return { status: 200, body: { data, meta: { request_id: request.id } } }
  })
}
