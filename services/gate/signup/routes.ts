import type { FastifyInstance } from 'fastify'
import { sourceOf } from '../../../infra/access/source.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import { fittingCheck } from '../../../infra/http/validation.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import { serviceOf } from '../registry/registered.ts'
import {
  gateRoute,
  gateSessionIdOf,
  gateSessionParams,
  noStore,
  polledSession,
  requesterOf,
  requireToken,
} from '../requests.ts'
import { agentOf, createParameterSet, foundSession, pendingSession } from '../sessions.ts'
import { findBundle } from '../vault.ts'
import { approvedJson, createdJson, unapprovedJson } from './answers.ts'
import { acknowledgeDelivery, openSignup } from './commands.ts'
import { consentRoutes } from './consent-routes.ts'
import { deliveryGone, requireDelivery } from './decide.ts'
import {
  ackBody,
  acknowledgementSchema,
  checkedFields,
  checkSignupFields,
  createdSessionSchema,
  createSessionBody,
  polledSessionSchema,
  signupMembers,
} from './schemas.ts'

export function signupRoutes(app: FastifyInstance, context: GateContext): void {
  createRoute(app, context)
  pollRoute(app, context)
  consentRoutes(app, context)
  ackRoute(app, context)
}

function createRoute(app: FastifyInstance, context: GateContext): void {
  const { limits, idempotency, depsOf, publicUrl, decideAs } = context
  endpoint(app, {
    ...gateRoute,
    route: 'POST /v1/gate/sessions',
    auth: [({ ip }) => limits.count('create_session', sourceOf(ip)), noStore],
    operationId: 'createGateSession',
    summary: 'Ask for an account at a service',
    description:
      'A person decides about it at `consent_url` within 15 minutes. What the service gives out is sealed to the public key in `delivery`, and picked up with the poll token. Five a minute for each IP address.',
    body: createSessionBody,
    parameterSet: createParameterSet,
    checkFitting: fittingCheck(signupMembers, checkSignupFields),
    idempotent: true,
    answers: { 201: single(createdSessionSchema) },
    errors: [404, 429],
    run(request, { reply, answer }) {
      const { service_id: serviceId, claim = null, ...body } = request.body
      const spec = { ...checkedFields(body), claim, ...requesterOf(request) }
      const scope = `gate:${sourceOf(request.ip)}`
      return idempotency.run({ request, reply, scope }, async (command) => {
        const deps = depsOf(command, decideAs({ type: 'agent', id: spec.delivery_key_id }, request))
        const { session, pollToken } = await openSignup(deps, { serviceId, spec })
        return answer({ data: createdJson(session, pollToken, publicUrl) })
      })
    },
  })
}

function pollRoute(app: FastifyInstance, context: GateContext): void {
  endpoint(app, {
    route: 'GET /v1/gate/sessions/:gateSessionId',
    auth: [noStore, requireToken('poll')],
    operationId: 'pollGateSession',
    tag: 'Gate',
    summary: 'Poll a signup',
    description:
      "Requires the session's poll token. An approved signup has its credentials here until they are acknowledged, for at most 24 hours. 30 requests a minute for each token.",
    params: gateSessionParams,
    answers: { 200: single(polledSessionSchema) },
    errors: [404, 410],
    async run(request) {
      return { data: await polledData(context, await polledSession(context, request, 'poll')) }
    },
  })
}

async function polledData(parts: GateContext, session: GateSessionRow) {
  if (session.status === 'rejected') return unapprovedJson(session)
  if (session.status !== 'approved') return unapprovedJson(pendingSession(session, parts.clock()))
  requireDelivery(session, parts.clock())
  const { pool, publicUrl, vault } = parts
  const bundle = await findBundle(vault, session)
  if (!bundle) throw deliveryGone()
  const service = await serviceOf(pool, { serviceId: session.service_id, publicUrl })
  return approvedJson(session, { bundle, service })
}

function ackRoute(app: FastifyInstance, context: GateContext): void {
  const { pool, idempotency, decideAs, depsOf } = context
  endpoint(app, {
    ...gateRoute,
    route: 'POST /v1/gate/sessions/:gateSessionId/ack',
    auth: [
      noStore,
      requireToken('poll'),
      async (request) => void (await polledSession(context, request, 'ack')),
    ],
    operationId: 'acknowledgeGateSessionDelivery',
    summary: 'Acknowledge the credentials, which are then deleted',
    description:
      "Requires the session's poll token. Once it has answered 200 nobody can read the credentials any more; a second acknowledgement is refused; a repetition with the same Idempotency-Key gets the first answer. 20 requests a minute for each token.",
    params: gateSessionParams,
    body: ackBody,
    parameterSet: 'gate_session_ack',
    idempotent: true,
    answers: { 200: single(acknowledgementSchema) },
    errors: [403, 404, 410],
    before: requireAckToken,
    run(request, { reply, answer }) {
      const gateSessionId = gateSessionIdOf(request)
      return idempotency.run({ request, reply, scope: gateSessionId }, async (command) => {
        const session = foundSession(await findGateSession(pool, gateSessionId))
        const deps = depsOf(command, decideAs(agentOf(session), request))
        await acknowledgeDelivery(deps, gateSessionId, request.body.ack_token)
        const status = 'acknowledged'
        return answer({
          data: { object: 'gate_session_delivery', gate_session_id: gateSessionId, status },
        })
      })
    },
  })
}

// A missing ack token is refused like a wrong one.
function requireAckToken({ body }: { body: unknown }): void {
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body)
  if (body === undefined || (isObject && !('ack_token' in body)))
    throw new ApiError('gate.delivery_ack_invalid')
}
