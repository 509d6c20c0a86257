import type { FastifyInstance, preValidationHookHandler } from 'fastify'
import type { z } from 'zod'
import { sourceOf } from '../../../infra/access/source.ts'
import { ApiError, unavailable } from '../../../infra/errors/errors.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import { fittingCheck } from '../../../infra/http/validation.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import type { GateContext } from '../context.ts'
import { serviceOf } from '../registry/registered.ts'
import {
  type GateSessionPath,
  gateSessionIdOf,
  gateSessionParams,
  noStore,
  requesterOf,
  requireToken,
} from '../requests.ts'
import { agentOf, createParameterSet, foundSession, pendingSession } from '../sessions.ts'
import { type DeliveryBundle, findBundle } from '../vault.ts'
import { approvedJson, createdJson, unapprovedJson } from './answers.ts'
import { acknowledgeDelivery, openSignup } from './commands.ts'
import { consentRoutes } from './consent-routes.ts'
import { requireDelivery } from './decide.ts'
import { polledSession } from './polled-session.ts'
import {
  ackBody,
  acknowledgementSchema,
  checkedRequest,
  checkSignupFields,
  createdSessionSchema,
  createSessionBody,
  polledSessionSchema,
  signupMembers,
} from './schemas.ts'

type SignupContext = Pick<
  GateContext,
  | 'publicUrl'
  | 'pool'
  | 'decideAs'
  | 'keyring'
  | 'clock'
  | 'logger'
  | 'limits'
  | 'vault'
  | 'approvals'
  | 'pages'
  | 'idempotency'
  | 'network'
  | 'depsOf'
>

export function signupRoutes(app: FastifyInstance, context: SignupContext): void {
  createRoute(app, context)
  pollRoute(app, context)
  consentRoutes(app, context)
  ackRoute(app, context)
}

export function createRoute(app: FastifyInstance, context: SignupContext): void {
  const { limits, idempotency, depsOf, pool, publicUrl, decideAs } = context
  const schema = {
    operationId: 'createGateSession',
    summary: 'Ask for an account at a service',
    description:
      'A person decides about it at `consent_url` within 15 minutes. What the service gives out is sealed to the public key in `delivery`, and picked up with the poll token. Five a minute for each IP address.',
    tags: ['Gate'],
    body: createSessionBody,
    response: { 201: single(createdSessionSchema), ...errorResponses(400, 404, 409, 413, 415, 422, 429) },
  }
  const config = {
    bodyCode: 'gate.validation_failed',
    parameterSet: createParameterSet,
    idempotent: true,
    checkFitting: fittingCheck(signupMembers, checkSignupFields),
  } as const
  app.post<Create>('/v1/gate/sessions', {
    schema,
    config,
    onRequest: [({ ip }) => limits.count('create_session', sourceOf(ip)), noStore],
    handler: (request, reply) => {
      const { service_id: serviceId, claim, ...body } = request.body
      const spec = checkedRequest({
        ...body,
        requester: requesterOf(request),
        claim: claim ?? null,
      })
      const scope = `gate:${sourceOf(request.ip)}`
      return idempotency.run({ request, reply, scope }, async (command) => {
        const decide = decideAs({ type: 'agent', id: spec.delivery_key_id }, request)
        const deps = { ...depsOf(command, decide), pool, publicUrl }
        const { session, pollToken } = await openSignup(deps, { serviceId, spec })
        const data = createdJson(session, { pollToken, publicUrl })
        return { status: 201, body: { data, meta: { request_id: request.id } } }
      })
    },
  })
}

interface Create {
  Body: z.output<typeof createSessionBody>
}

function pollRoute(app: FastifyInstance, context: SignupContext): void {
  const schema = {
    operationId: 'pollGateSession',
    summary: 'Poll a signup',
    description:
      "Requires the session's poll token. An approved signup has its credentials here until they are acknowledged, for at most 24 hours. 30 requests a minute for each token.",
    tags: ['Gate'],
    params: gateSessionParams,
    response: { 200: single(polledSessionSchema), ...errorResponses(401, 404, 410, 429) },
  }
  app.get<GateSessionPath>('/v1/gate/sessions/:gateSessionId', {
    schema,
    onRequest: [noStore, requireToken('poll')],
    handler: async (request) => {
      const data = await polledData(context, await polledSession(context, { request, limit: 'poll' }))
      return { data, meta: { request_id: request.id } }
    },
  })
}

async function polledData(parts: SignupContext, session: GateSessionRow) {
  if (session.status === 'rejected') return unapprovedJson(session)
  if (session.status !== 'approved') return unapprovedJson(pendingSession(session, parts.clock()))
  const { pool, publicUrl } = parts
  const bundle = await deliveredBundle(parts, session)
  const service = await serviceOf(pool, { serviceId: session.service_id, publicUrl })
  return approvedJson(session, { bundle, service })
}

// How long a poll waits where the service has to be asked again. Then the agent polls again.
const patienceMs = 4000

// ApiError: 410 once the delivery has ended, 503 while the service is asked for what a crash of Postgres has lost.
async function deliveredBundle(
  { pool, vault, clock, approvals }: SignupContext,
  session: GateSessionRow,
): Promise<DeliveryBundle> {
  requireDelivery(session, clock())
  const bundle = await findBundle(vault, session)
  if (bundle) return bundle
  await approvals.redeliver(session.id, patienceMs)
  const current = foundSession(await findGateSession(pool, session.id))
  // Acknowledged meanwhile, its key was deleted.
  requireDelivery(current, clock())
  const again = await findBundle(vault, current)
  if (!again) throw unavailable(new Error(`the service is asked for the credentials of ${session.id} again`))
  return again
}

function ackRoute(app: FastifyInstance, context: SignupContext): void {
  const { pool, idempotency, decideAs } = context
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
        const session = foundSession(await findGateSession(pool, gateSessionId))
        const decide = decideAs(agentOf(session), request)
        await acknowledgeDelivery(
          { ...context, decide, random },
          { gateSessionId, ackToken: request.body.ack_token },
        )
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

// A missing ack token is refused like a wrong one.
const requireAckToken: preValidationHookHandler = ({ body }, _reply, done) => {
  const lacks = body === undefined || (isObject(body) && !('ack_token' in body))
  done(lacks ? new ApiError('gate.delivery_ack_invalid') : undefined)
}

const isObject = (body: unknown): body is object =>
  typeof body === 'object' && body !== null && !Array.isArray(body)
