import type { FastifyInstance } from 'fastify'
import { sourceOf } from '../../../infra/access/source.ts'
import { ApiError } from '../../../infra/errors/errors.ts'
import { endpoint } from '../../../infra/http/endpoint.ts'
import { single } from '../../../infra/http/schemas.ts'
import { validMembersCheck } from '../../../infra/http/validation.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import { requireRegisteredService } from '../registry/registered-services.ts'
import {
  gateRoute,
  gateSessionIdOf,
  gateSessionParams,
  noStore,
  requesterOf,
  requireSignup,
  requireToken,
} from '../requests.ts'
import { agentOf, createParameterSet, requirePending, requireSession } from '../sessions.ts'
import { findBundle } from '../vault.ts'
import { acknowledgeDelivery, openSignup } from './commands.ts'
import { consentRoutes } from './consent-routes.ts'
import { deliveryGoneError, requireDelivery } from './decide.ts'
import { approvedSignupJson, createdSignupJson, unapprovedSignupJson } from './responses.ts'
import {
  ackBody,
  acknowledgementSchema,
  checkedSignupFields,
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
    auth: [({ ip }) => limits.enforce('create_session', sourceOf(ip)), noStore],
    operationId: 'createGateSession',
    summary: 'Create a signup',
    description:
      'Requests an account at a service. A person approves or declines it at `consent_url` within 15 minutes. The credentials are encrypted to the public key in `delivery` and fetched with the poll token. Five requests per minute and IP address.',
    body: createSessionBody,
    parameterSet: createParameterSet,
    checkValidMembers: validMembersCheck(signupMembers, checkSignupFields),
    idempotent: true,
    responses: { 201: single(createdSessionSchema) },
    errors: [404, 429],
    run(request, { reply, toResponse }) {
      const { service_id: serviceId, claim = null, ...body } = request.body
      const spec = { ...checkedSignupFields(body), claim, ...requesterOf(request) }
      const scope = `gate:${sourceOf(request.ip)}`
      return idempotency.run({ request, reply, scope }, async (command) => {
        const deps = depsOf(command, decideAs({ type: 'agent', id: spec.delivery_key_id }, request))
        const { session, pollToken } = await openSignup(deps, { serviceId, spec })
        return toResponse({ data: createdSignupJson(session, pollToken, publicUrl) })
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
      "Requires the session's poll token. After the approval, returns the encrypted credentials until they are acknowledged, for at most 24 hours. 30 requests per minute and token.",
    params: gateSessionParams,
    responses: { 200: single(polledSessionSchema) },
    errors: [404, 410],
    async run(request) {
      return { data: await polledData(context, await requireSignup(context, request, 'poll')) }
    },
  })
}

async function polledData(parts: GateContext, session: GateSessionRow) {
  if (session.status === 'rejected') return unapprovedSignupJson(session)
  if (session.status !== 'approved')
    return unapprovedSignupJson(requirePending(session, parts.clock()))
  requireDelivery(session, parts.clock())
  const { pool, publicUrl, vault } = parts
  const bundle = await findBundle(vault, session)
  if (!bundle) throw deliveryGoneError()
  const service = await requireRegisteredService(pool, { serviceId: session.service_id, publicUrl })
  return approvedSignupJson(session, { bundle, service })
}

function ackRoute(app: FastifyInstance, context: GateContext): void {
  const { pool, idempotency, decideAs, depsOf } = context
  endpoint(app, {
    ...gateRoute,
    route: 'POST /v1/gate/sessions/:gateSessionId/ack',
    auth: [
      noStore,
      requireToken('poll'),
      async (request) => void (await requireSignup(context, request, 'ack')),
    ],
    operationId: 'acknowledgeGateSessionDelivery',
    summary: 'Acknowledge the credentials',
    description:
      "Requires the session's poll token. Deletes the credentials, so store them first. A second acknowledgement is refused; a repeat with the same Idempotency-Key returns the first response. 20 requests per minute and token.",
    params: gateSessionParams,
    body: ackBody,
    parameterSet: 'gate_session_ack',
    idempotent: true,
    responses: { 200: single(acknowledgementSchema) },
    errors: [403, 404, 410],
    beforeValidation: requireAckToken,
    run(request, { reply, toResponse }) {
      const gateSessionId = gateSessionIdOf(request)
      return idempotency.run({ request, reply, scope: gateSessionId }, async (command) => {
        const session = requireSession(await findGateSession(pool, gateSessionId))
        const deps = depsOf(command, decideAs(agentOf(session), request))
        await acknowledgeDelivery(deps, gateSessionId, request.body.ack_token)
        const status = 'acknowledged'
        return toResponse({
          data: { object: 'gate_session_delivery', gate_session_id: gateSessionId, status },
        })
      })
    },
  })
}

// Throws 403 for a missing ack token, as for a wrong one.
function requireAckToken({ body }: { body: unknown }): void {
  const isObject = typeof body === 'object' && body !== null && !Array.isArray(body)
  if (body === undefined || (isObject && !('ack_token' in body)))
    throw new ApiError('gate.delivery_ack_invalid')
}
