import type { FastifyInstance } from 'fastify'
import { ApiError } from '../../../infra/errors/errors.ts'
import { errorResponses, single } from '../../../infra/http/schemas.ts'
import type { GateSessionRow } from '../../../projections/gate/tables.ts'
import { type DeliveryBundle, openBundle } from '../approval/bundle.ts'
import { serviceOf } from '../registry/registered.ts'
import { requireToken } from '../requests/bearer.ts'
import { noStore } from '../requests/no-store.ts'
import { type GateSessionPath, gateSessionParams } from '../requests/session-path.ts'
import { pendingSession } from '../session-state.ts'
import { isWaiting } from './acknowledge-delivery.ts'
import type { SignupContext } from './context.ts'
import { polledSession } from './polled-session.ts'
import { polledSessionSchema } from './schemas.ts'
import { approvedJson, unapprovedJson } from './shapes.ts'

/** How a signup stands, and its credentials once there are any. */
export function pollRoute(app: FastifyInstance, context: SignupContext): void {
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
  const bundle = await bundleOf(parts, session)
  const service = await serviceOf(pool, { serviceId: session.service_id, publicUrl })
  return approvedJson(session, { bundle, service })
}

/** 410 once the delivery has ended, of which the deletion of its key is the last trace. */
async function bundleOf(
  { vault, clock }: Pick<SignupContext, 'vault' | 'clock'>,
  session: GateSessionRow,
): Promise<DeliveryBundle> {
  const { id: gateSessionId, delivery_sealed: sealed } = session
  const dataKey = isWaiting(session, clock()) ? await vault.find(gateSessionId) : undefined
  const bundle = sealed && dataKey && openBundle(sealed, { dataKey, gateSessionId })
  if (!bundle) throw new ApiError('gate.delivery_consumed')
  return bundle
}
