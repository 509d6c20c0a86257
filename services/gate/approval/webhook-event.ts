import { deliveryAlgorithm } from '../../../infra/wire/delivery-envelope.ts'
import { type DirectEvent, directType } from '../../../infra/wire/webhooks/direct-call.ts'
import { deliveryOf } from './credentials.ts'
import type { StartedSession } from './finish-approval.ts'

interface Receiver {
  organizationId: string
  endpointId: string
}

/** What the service is told of an approved signup: contract/openapi.json, GateApprovedWebhookPayload. */
export function approvalEvent(
  session: StartedSession,
  { organizationId, endpointId }: Receiver,
): DirectEvent {
  const { id, service_id, gate_account_id, account_name, metadata, verdict, risk_score } = session
  const delivery = { version: 1, algorithm: deliveryAlgorithm, ...deliveryOf(session) }
  return {
    type: directType,
    organizationId,
    environment: session.environment,
    endpointId,
    subject: { type: 'gate_session', id },
    createdAt: session.approval_started_at,
    data: {
      service_id,
      gate_session_id: id,
      gate_account_id,
      account_name,
      metadata: metadata === null ? null : JSON.parse(metadata),
      // 0 to 1 here, as in the golden vector; a session's risk_score is 0 to 100.
      foil: { verdict, score: risk_score / 100 },
      delivery,
    },
  }
}
