import type { EventMeta } from '../../infra/event-store/codec.ts'
import type { OpenedBody } from './accept.ts'
import type { BodyRequest } from './body-request.ts'
import { ipAddressOf, userAgentOf } from './client-facts.ts'
import type { DocumentState } from './documents.ts'

export interface ReceivedBody {
  request: BodyRequest
  state: DocumentState
  opened: OpenedBody
  eventId: string
}

/** What the events of a batch and of a results body have in common. */
export function receivedBody({ request, state, opened, eventId }: ReceivedBody) {
  const { scope, documentIdHash } = state
  return {
    session_id: scope.sessionId,
    organization_id: scope.organizationId,
    environment: scope.environment,
    event_id: eventId,
    document_id_hash: documentIdHash,
    seq: opened.seq,
    received_at: opened.receivedAt,
    ip_address: ipAddressOf(request),
    user_agent: userAgentOf(request),
    body_hash: opened.bodyHash,
    payload: opened.payload,
  }
}

/** Record headers of an event about a document. */
export function metaOf(
  { scope }: DocumentState,
  { eventId, time }: { eventId: string; time: number },
): EventMeta {
  return { eventId, time, organizationId: scope.organizationId, environment: scope.environment }
}
