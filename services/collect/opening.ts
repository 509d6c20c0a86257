import type { FastifyRequest } from 'fastify'
import type { PublishablePrincipal } from '../../infra/access/principal.ts'
import type { EventMeta, TrafficEvent } from '../../infra/event-store/event.ts'
import { derivedId } from '../../infra/ids.ts'
import type { Challenges, ServerDocument } from './documents.ts'
import {
  acceptLanguageOf,
  type CollectDeps,
  clientHintsOf,
  headerOrderOf,
  ipAddressOf,
  metaOf,
  userAgentOf,
} from './requests.ts'
import { noPage, type OpenBody } from './schemas.ts'
import type { ResumeFacts } from './sealed-ids.ts'
import { agentHostOf, documentSignature } from './signature.ts'

export interface OpeningSession extends ResumeFacts {
  resumed: boolean
  /** Continuity ids that the client presented, most trusted first. */
  presentedIds: string[]
}

export interface Opening {
  request: FastifyRequest<{ Body: OpenBody }>
  session: OpeningSession
  state: ServerDocument
  challenges: Challenges
  principal: PublishablePrincipal
  signatures: CollectDeps['signatures']
}

export interface EventRecord {
  event: TrafficEvent
  meta: EventMeta
}

export function sessionRecord({ request, session, state, principal }: Opening): EventRecord {
  const { scope, facts } = state
  const data = {
    session_id: scope.sessionId,
    organization_id: scope.organizationId,
    environment: scope.environment,
    opened_at: facts.openedAt,
    key_id: principal.keyId,
    platform: facts.platform,
    sdk_name: request.body.sdk.name,
    sdk_version: request.body.sdk.version,
    continuity_ids: session.presentedIds,
    continuity_id: facts.continuityId,
  }
  const eventId = derivedId('opn', scope.sessionId)
  return {
    event: { type: 'SessionOpened', data },
    meta: metaOf(state, { eventId, time: facts.openedAt }),
  }
}

export function documentRecord({
  request,
  session,
  state,
  challenges,
  principal,
  signatures,
}: Opening): EventRecord {
  const { scope, facts, documentIdHash } = state
  const { page } = request.body
  const signature = documentSignature(request, { ...signatures, now: facts.openedAt })
  const data = {
    session_id: scope.sessionId,
    organization_id: scope.organizationId,
    environment: scope.environment,
    document_id_hash: documentIdHash,
    opened_at: facts.openedAt,
    resumed: session.resumed,
    url: page?.url ?? noPage,
    referrer: page?.referrer ?? null,
    user_agent: userAgentOf(request),
    ip_address: ipAddressOf(request, principal),
    accept_language: acceptLanguageOf(request),
    client_hints: clientHintsOf(request),
    header_order: headerOrderOf(request),
    ja4: request.handshake.ja4,
    http2_fingerprint: request.handshake.http2,
    signature_agent: agentHostOf(request, signature),
    signature,
    challenge: challenges.challenge,
    timing_nonce: challenges.timingNonce,
    canvas_seed: challenges.canvasSeed,
    client_public_key: facts.platform === 'web' ? null : scope.clientPublicKey,
  }
  const eventId = derivedId('doc', documentIdHash)
  return {
    event: { type: 'DocumentOpened', data },
    meta: metaOf(state, { eventId, time: facts.openedAt }),
  }
}
