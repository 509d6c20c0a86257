import type { FastifyRequest } from 'fastify'
import type { DomainEvent, EventMeta } from '../../infra/event-store/codec.ts'
import { derivedId } from '../../infra/ids.ts'
import { metaOf } from './body-events.ts'
import type { Challenges } from './challenges.ts'
import {
  acceptLanguageOf,
  clientHintsOf,
  headerOrderOf,
  ipAddressOf,
  signatureAgentOf,
  userAgentOf,
} from './client-facts.ts'
import type { DocumentState } from './documents.ts'
import type { OpenBody } from './open-body.ts'
import { noPage } from './page-address.ts'
import type { OpeningSession } from './sessions.ts'

interface Opened {
  request: FastifyRequest<{ Body: OpenBody }>
  session: OpeningSession
  state: DocumentState
  challenges: Challenges
  keyId: string
}

interface MarkedEvent {
  event: DomainEvent
  meta: EventMeta
}

export function sessionOpened({ request, session, state, keyId }: Opened): MarkedEvent {
  const { scope, facts } = state
  const data = {
    session_id: scope.sessionId,
    organization_id: scope.organizationId,
    environment: scope.environment,
    opened_at: facts.openedAt,
    key_id: keyId,
    platform: facts.platform,
    sdk_name: request.body.sdk.name,
    sdk_version: request.body.sdk.version,
    continuity_ids: session.presented,
    continuity_id: facts.continuityId,
  }
  const eventId = derivedId('opn', scope.sessionId)
  return { event: { type: 'SessionOpened', data }, meta: metaOf(state, { eventId, time: facts.openedAt }) }
}

export function documentOpened({ request, session, state, challenges }: Opened): MarkedEvent {
  const { scope, facts, documentIdHash } = state
  const { page } = request.body
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
    ip_address: ipAddressOf(request),
    accept_language: acceptLanguageOf(request),
    client_hints: clientHintsOf(request),
    header_order: headerOrderOf(request),
    signature_agent: signatureAgentOf(request),
    challenge: challenges.challenge,
    timing_nonce: challenges.timingNonce,
    canvas_seed: challenges.canvasSeed,
  }
  const eventId = derivedId('doc', documentIdHash)
  return { event: { type: 'DocumentOpened', data }, meta: metaOf(state, { eventId, time: facts.openedAt }) }
}
