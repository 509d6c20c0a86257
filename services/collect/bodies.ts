import { createHmac } from 'node:crypto'
import { type Budget, overBudget } from '../../infra/access/budget.ts'
import { unavailable } from '../../infra/errors/errors.ts'
import { derivedId } from '../../infra/ids.ts'
import type { NewRecord } from '../../infra/log/port.ts'
import { within } from '../../infra/timing.ts'
import {
  type BatchResponse,
  type Fingerprint,
  fingerprintText,
  type ResultResponse,
  resultText,
} from '../../infra/wire/collect/protocol.ts'
import { type AcceptOptions, acceptBody, type OpenedBody } from './accept.ts'
import { retrySeconds } from './admission.ts'
import { appendClaimed } from './claims.ts'
import {
  type AcceptedBody,
  checkNotErased,
  type DocumentCache,
  documentKeysOf,
  ownQuestionsOf,
  type ServerDocument,
} from './documents.ts'
import { handOutNonce, maxSeq } from './nonces.ts'
import {
  type BodyRequest,
  type CollectDeps,
  ipAddressOf,
  metaOf,
  readBodyRequest,
  userAgentOf,
} from './requests.ts'
import { sealContinuity } from './sealed-ids.ts'

export function receiveBatch(
  request: BodyRequest,
  { deps, cache }: { deps: CollectDeps; cache: DocumentCache },
): Promise<string> {
  const now = deps.clock()
  const { state, incoming } = readBodyRequest(request, { deps, cache, kind: 'batches', now })
  return acceptBody(state, incoming, {
    now,
    check: () => checkNotErased(state.scope.sessionId, deps.dataKeys),
    claim: deps.claims.claim,
    store: storeBy(request, deps, (opened) => batchRecord(request, { deps, state, opened })),
    answer: (accepted) => JSON.stringify(acknowledge(state, accepted, deps)),
  })
}

function storeBy(
  request: BodyRequest,
  deps: CollectDeps,
  recordOf: (opened: OpenedBody) => NewRecord,
): AcceptOptions['store'] {
  return (claim, opened) => {
    if (opened.seq === 1) deps.countDocument?.(deps.auth.publishable(request).keyId, 'used')
    return appendClaimed(deps, {
      claim,
      recordAt: (receivedAt) => recordOf({ ...opened, receivedAt }),
    })
  }
}

function batchRecord(
  request: BodyRequest,
  { deps, state, opened }: { deps: CollectDeps; state: ServerDocument; opened: OpenedBody },
) {
  const eventId = derivedId('bat', state.documentIdHash, String(opened.seq), opened.bodyHash)
  if (opened.seq === 1)
    deps.admission.begun.awaits(state.scope.sessionId, derivedId('evt', eventId))
  const data = receivedBody({ request, deps, state, opened, eventId })
  const meta = metaOf(state, { eventId, time: opened.receivedAt })
  return deps.codec.toRecord({ type: 'BatchReceived', data }, meta)
}

function acknowledge(
  state: ServerDocument,
  accepted: AcceptedBody,
  deps: CollectDeps,
): BatchResponse {
  const nonce = nextNonce(state, accepted)
  return {
    ack: true,
    nonce,
    seq: accepted.seq,
    ...(accepted.noBatchYet && {
      fingerprint: fingerprintOf(state, { accepted, nonce, deps }),
      engineQuestions: ownQuestionsOf(state),
    }),
    next: { intervalMs: deps.batchIntervalMs ?? 2000 },
  }
}

function fingerprintOf(
  state: ServerDocument,
  { accepted, nonce, deps }: { accepted: AcceptedBody; nonce: string; deps: CollectDeps },
): Fingerprint {
  const { sessionId } = state.scope
  const timestamp = accepted.receivedAt
  // A repeat gets the same text from a process that does not remember the first answer.
  const random = (size: number) => ofDocument(state, size)
  const stateId = sealContinuity(state.facts.continuityId, state.scope, {
    keyring: deps.keyring,
    random,
  })
  const text = fingerprintText({ sessionId, stateId, timestamp }, { seq: accepted.seq, nonce })
  return {
    ready: true,
    timestamp,
    sessionId,
    state: { id: stateId },
    integrity: { responseHmac: responseHmac(state, text) },
  }
}

// The same bytes each time: they seal nothing but the document's one continuity id.
function ofDocument({ master, documentId }: ServerDocument, size: number): Buffer {
  const digest = createHmac('sha256', master.secretKey('collect-fingerprint'))
    .update(documentId)
    .digest()
  return digest.subarray(0, size)
}

// Each hand-off makes a token that stands for a visit. A page needs one for each form that is sent; who asks for more
// is making tokens.
const handOffPauseSeconds = 5
export const handOffsOfDocument = { perSecond: 1 / handOffPauseSeconds, burst: 10 }

export interface ResultOptions {
  deps: CollectDeps
  cache: DocumentCache
  /** By document. */
  handOffs: Pick<Budget, 'spend'>
}

// What is left of the time for the way back, and for timers that a busy process is late with.
const answerShare = 0.8

/**
 * Says 503 in time, from when the request came. What is under way then goes on, and the same bytes come back for its
 * answer.
 */
export async function receiveResult(
  request: BodyRequest,
  options: ResultOptions,
  { elapsedTime }: { elapsedTime: number },
): Promise<string> {
  const { handOffTimeoutMs: ms = 2000, random } = options.deps
  const late = () => unavailable(new Error(`no hand-off within ${ms} ms`), retrySeconds(random))
  return within(takeResult(request, options), Math.max(0, ms * answerShare - elapsedTime), late)
}

function takeResult(
  request: BodyRequest,
  { deps, cache, handOffs }: ResultOptions,
): Promise<string> {
  const now = deps.clock()
  const { state, incoming } = readBodyRequest(request, { deps, cache, kind: 'results', now })
  return acceptBody(state, incoming, {
    now,
    // What could not be handed off is not accepted: the client may use its nonce for another body.
    check: async () => {
      if (!handOffs.spend(state.documentIdHash)) throw tooManyHandOffs()
      await deps.checkRecipients(state.scope)
      await checkNotErased(state.scope.sessionId, deps.dataKeys)
    },
    claim: deps.claims.claim,
    store: storeBy(request, deps, (opened) => resultRecord(request, { deps, state, opened })),
    answer: async (accepted) => JSON.stringify(await handOff(state, accepted, deps)),
  })
}

const tooManyHandOffs = () =>
  overBudget(handOffPauseSeconds, {
    message: 'This document hands off more often than pages need to.',
  })

// A retry of the same bytes, on any node, asks for the same decision.
function idsOf({ documentIdHash }: ServerDocument, { seq, bodyHash }: AcceptedBody) {
  const eventId = derivedId('res', documentIdHash, String(seq), bodyHash)
  return { eventId, decisionId: derivedId('evt', eventId) }
}

function resultRecord(
  request: BodyRequest,
  { deps, state, opened }: { deps: CollectDeps; state: ServerDocument; opened: OpenedBody },
) {
  const { eventId, decisionId } = idsOf(state, opened)
  if (opened.seq === 1) deps.admission.begun.awaits(state.scope.sessionId, decisionId)
  const data = {
    ...receivedBody({ request, deps, state, opened, eventId }),
    decision_id: decisionId,
  }
  const meta = metaOf(state, { eventId, time: opened.receivedAt })
  return deps.codec.toRecord({ type: 'ResultRequested', data }, meta)
}

async function handOff(
  state: ServerDocument,
  accepted: AcceptedBody,
  deps: CollectDeps,
): Promise<ResultResponse> {
  const { sessionId, organizationId, environment } = state.scope
  const { decisionId } = idsOf(state, accepted)
  const sealedToken = await deps.sealResult({ decisionId, sessionId, organizationId, environment })
  const nonce = nextNonce(state, accepted)
  const text = resultText({ sessionId, sealedToken }, { seq: accepted.seq, nonce })
  return { sessionId, sealedToken, nonce, integrity: { responseHmac: responseHmac(state, text) } }
}

interface ReceivedBody {
  request: BodyRequest
  deps: CollectDeps
  state: ServerDocument
  opened: OpenedBody
  eventId: string
}

function receivedBody({ request, deps, state, opened, eventId }: ReceivedBody) {
  const { scope, documentIdHash } = state
  return {
    session_id: scope.sessionId,
    organization_id: scope.organizationId,
    environment: scope.environment,
    event_id: eventId,
    document_id_hash: documentIdHash,
    seq: opened.seq,
    received_at: opened.receivedAt,
    ip_address: ipAddressOf(request, deps.auth.publishable(request)),
    user_agent: userAgentOf(request),
    body_hash: opened.bodyHash,
    payload: opened.payload,
  }
}

function nextNonce(
  state: ServerDocument,
  { kind, seq, noBatchYet, receivedAt }: AcceptedBody,
): string {
  const contents = { seq: Math.min(seq + 1, maxSeq), noBatchYet: noBatchYet && kind !== 'batches' }
  return handOutNonce(state, { contents, now: receivedAt })
}

function responseHmac(state: ServerDocument, text: string): string {
  return createHmac('sha256', documentKeysOf(state).serverToClient).update(text).digest('base64url')
}
