import { createHmac, hash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { MasterKey } from '../../infra/crypto/keyring.ts'
import type { DomainEvent, EventMeta } from '../../infra/event-store/codec.ts'
import { derivedId } from '../../infra/ids.ts'
import type { CanvasChallenge, CanvasOp } from '../../infra/wire/collect/protocol.ts'
import type { ServerDocument } from './documents.ts'
import {
  acceptLanguageOf,
  clientHintsOf,
  headerOrderOf,
  ipAddressOf,
  metaOf,
  signatureAgentOf,
  userAgentOf,
} from './requests.ts'
import { noPage, type OpenBody } from './schemas.ts'
import type { ResumeFacts } from './sealed-ids.ts'

export interface OpeningSession extends ResumeFacts {
  resumed: boolean
  /** What the client presented, strongest first. */
  presented: string[]
}

interface Opened {
  request: FastifyRequest<{ Body: OpenBody }>
  session: OpeningSession
  state: ServerDocument
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

export interface Challenges {
  challenge: string
  timingNonce: string
  canvasSeed: string
}

/** What the client has to give back or draw with its snapshot, so that an old snapshot does not pass for new. */
export function challengesOf(master: MasterKey, documentId: string): Challenges {
  const bytes = createHmac('sha512', master.secretKey('collect-challenges')).update(documentId).digest()
  const value = (index: number) => bytes.toString('base64url', index * 16, (index + 1) * 16)
  return { challenge: value(0), timingNonce: value(1), canvasSeed: value(2) }
}

const width = 120
const height = 40

export function canvasChallengeOf(seed: string): CanvasChallenge {
  const bytes = hash('sha256', seed, 'buffer')
  const at = (index: number, range: number) => (bytes[index] ?? 0) % range
  const color = (index: number) => `#${bytes.toString('hex', index, index + 3)}`
  const ops: CanvasOp[] = [
    { op: 'rect', x: at(0, 60), y: at(1, 20), width: 20 + at(2, 40), height: 8 + at(3, 12), color: color(4) },
    {
      op: 'arc',
      x: 20 + at(7, 80),
      y: 10 + at(8, 20),
      radius: 5 + at(9, 12),
      start: at(10, 64) / 10,
      end: at(11, 64) / 10,
      color: color(12),
    },
    {
      op: 'text',
      x: at(15, 40),
      y: 14 + at(16, 20),
      size: 10 + at(17, 10),
      text: seed.slice(0, 8),
      color: color(18),
    },
    {
      op: 'rect',
      x: 60 + at(21, 40),
      y: at(22, 30),
      width: 4 + at(23, 16),
      height: 4 + at(24, 8),
      color: color(25),
    },
  ]
  return { ops, width, height }
}
