import { createDecipheriv, createHmac, hash } from 'node:crypto'
import { ApiError, invalidField } from '../../infra/errors/errors.ts'
import { derivedId } from '../../infra/ids.ts'
import {
  associatedData,
  type BatchResponse,
  type BodyKind,
  decodeFrame,
  type Fingerprint,
  type Frame,
  fingerprintText,
  type ResultResponse,
  resultText,
} from '../../infra/wire/collect/protocol.ts'
import {
  type AcceptedBody,
  type DocumentCache,
  documentKeysOf,
  handOutNonce,
  type LastBody,
  maxSeq,
  type NonceContents,
  nonceContents,
  type ServerDocument,
} from './documents.ts'
import {
  type BodyRequest,
  type CollectDeps,
  type IncomingBody,
  ipAddressOf,
  metaOf,
  readBodyRequest,
  userAgentOf,
} from './requests.ts'
import { sealContinuity } from './sealed-ids.ts'

interface BatchOptions {
  deps: CollectDeps
  cache: DocumentCache
}

export function receiveBatch(request: BodyRequest, { deps, cache }: BatchOptions): Promise<string> {
  const now = deps.clock()
  const { state, incoming } = readBodyRequest(request, { deps, cache, kind: 'batches', now })
  return acceptBody(state, incoming, {
    now,
    store: (opened) => deps.log.append([batchRecord(request, { deps, state, opened })]),
    answer: (accepted) => JSON.stringify(acknowledge(state, accepted, deps)),
  })
}

function batchRecord(
  request: BodyRequest,
  { deps, state, opened }: { deps: CollectDeps; state: ServerDocument; opened: OpenedBody },
) {
  const eventId = derivedId('bat', state.documentIdHash, String(opened.seq), opened.bodyHash)
  const data = receivedBody({ request, state, opened, eventId })
  const meta = metaOf(state, { eventId, time: opened.receivedAt })
  return deps.codec.toRecord({ type: 'BatchReceived', data }, meta)
}

function acknowledge(state: ServerDocument, accepted: AcceptedBody, deps: CollectDeps): BatchResponse {
  const nonce = nextNonce(state, accepted)
  return {
    ack: true,
    nonce,
    seq: accepted.seq,
    ...(accepted.noBatchYet ? { fingerprint: fingerprintOf(state, { accepted, nonce, deps }) } : {}),
    next: { intervalMs: deps.batchIntervalMs ?? 2000 },
  }
}

function fingerprintOf(
  state: ServerDocument,
  { accepted, nonce, deps }: { accepted: AcceptedBody; nonce: string; deps: CollectDeps },
): Fingerprint {
  const { sessionId } = state.scope
  const timestamp = accepted.receivedAt
  const stateId = sealContinuity(state.facts.continuityId, state.scope, deps)
  const text = fingerprintText({ sessionId, stateId, timestamp }, { seq: accepted.seq, nonce })
  return {
    ready: true,
    timestamp,
    sessionId,
    state: { id: stateId },
    integrity: { responseHmac: responseHmac(state, text) },
  }
}

interface ResultOptions {
  deps: CollectDeps
  cache: DocumentCache
}

export function receiveResult(request: BodyRequest, { deps, cache }: ResultOptions): Promise<string> {
  const now = deps.clock()
  const { state, incoming } = readBodyRequest(request, { deps, cache, kind: 'results', now })
  return acceptBody(state, incoming, {
    now,
    store: async (opened) => {
      // What could not be handed off is not accepted: the client may use its nonce for another body.
      await deps.checkRecipients(state.scope)
      await deps.log.append([resultRecord(request, { deps, state, opened })])
    },
    answer: async (accepted) => JSON.stringify(await handOff(state, accepted, deps)),
  })
}

/** A retry of the same bytes, on any node, asks for the same decision. */
function idsOf({ documentIdHash }: ServerDocument, { seq, bodyHash }: AcceptedBody) {
  const eventId = derivedId('res', documentIdHash, String(seq), bodyHash)
  return { eventId, decisionId: derivedId('evt', eventId) }
}

function resultRecord(
  request: BodyRequest,
  { deps, state, opened }: { deps: CollectDeps; state: ServerDocument; opened: OpenedBody },
) {
  const { eventId, decisionId } = idsOf(state, opened)
  const data = { ...receivedBody({ request, state, opened, eventId }), decision_id: decisionId }
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
  state: ServerDocument
  opened: OpenedBody
  eventId: string
}

function receivedBody({ request, state, opened, eventId }: ReceivedBody) {
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

/** A body whose order and tag are right. */
interface OpenedBody extends AcceptedBody {
  /** Raw-deflated JSON as the client says; not looked into here. */
  payload: Buffer
}

interface AcceptOptions {
  now: number
  store: (opened: OpenedBody) => Promise<unknown>
  /** Makes the JSON answer once the body is stored, and again for a repeat where that failed. */
  answer: (accepted: AcceptedBody) => Promise<string> | string
}

/**
 * Accepts the next body of a document: its nonce names the sequence number. The last body again is answered as
 * before; anything older, or another body under a number already used, is refused.
 */
export function acceptBody(
  state: ServerDocument,
  incoming: IncomingBody,
  options: AcceptOptions,
): Promise<string> {
  const frame = readFrame(incoming.body)
  const { seq, noBatchYet } = checkSequence(state, frame, incoming)
  const { kind } = incoming
  const bodyHash = hash('sha256', incoming.body, 'hex')
  const { last } = state
  if (last && seq <= last.seq) return repeated(last, { kind, seq, bodyHash }, options)
  const payload = decrypt(state, frame, { kind, seq })
  return accept(state, { kind, seq, noBatchYet, bodyHash, payload, receivedAt: options.now }, options)
}

function accept(
  state: ServerDocument,
  opened: OpenedBody,
  { store, answer }: AcceptOptions,
): Promise<string> {
  const previous = state.last
  const { kind, seq, noBatchYet, bodyHash, receivedAt } = opened
  const accepted: LastBody = { kind, seq, noBatchYet, bodyHash, receivedAt, answer: undefined }
  accepted.answer = store(opened).then(
    () => answer(accepted),
    (error) => {
      // Not acknowledged, so the same bytes may come again.
      if (state.last === accepted) state.last = previous
      throw error
    },
  )
  state.last = accepted
  return settled(accepted, accepted.answer)
}

/** The answer; a failure is not kept, so that a repeat asks again. */
async function settled(accepted: LastBody, answer: Promise<string>): Promise<string> {
  try {
    return await answer
  } catch (error) {
    if (accepted.answer === answer) accepted.answer = undefined
    throw error
  }
}

function repeated(
  last: LastBody,
  body: { kind: BodyKind; seq: number; bodyHash: string },
  { answer }: AcceptOptions,
): Promise<string> {
  if (body.seq !== last.seq || body.kind !== last.kind || body.bodyHash !== last.bodyHash)
    throw sequenceMismatch(last.seq + 1, body.seq)
  last.answer ??= Promise.resolve(answer(last))
  return settled(last, last.answer)
}

function readFrame(body: Buffer): Frame {
  const frame = decodeFrame(body)
  if (typeof frame === 'string') throw invalidField({ name: 'body', issue: frame })
  return frame
}

function checkSequence(state: ServerDocument, { nonce }: Frame, { headerSeq }: IncomingBody): NonceContents {
  const bytes = Buffer.from(nonce.buffer, nonce.byteOffset, nonce.byteLength)
  const contents = nonceContents(state, bytes)
  if (!contents) throw sessionReset()
  if (headerSeq !== undefined && headerSeq !== contents.seq) throw sequenceMismatch(contents.seq, headerSeq)
  return contents
}

function sequenceMismatch(expected: number, received: number): ApiError {
  const field = {
    name: 'X-Batch-Seq',
    issue: 'sequence_mismatch',
    expected: String(expected),
    received: String(received),
  }
  return new ApiError('session.sequence_mismatch', {
    details: { fields: [field], next_action: 'new_session' },
  })
}

function sessionReset(): ApiError {
  return new ApiError('transport.session_reset_required', { details: { next_action: 'new_session' } })
}

function decrypt(
  state: ServerDocument,
  frame: Frame,
  { kind, seq }: { kind: BodyKind; seq: number },
): Buffer {
  const address = { sessionId: state.scope.sessionId, documentId: state.documentId }
  const decipher = createDecipheriv('aes-256-gcm', documentKeysOf(state).clientToServer, frame.iv)
  decipher.setAAD(Buffer.from(associatedData(address, kind, seq)))
  decipher.setAuthTag(frame.tag)
  const plaintext = decipher.update(frame.ciphertext)
  try {
    decipher.final()
    return plaintext
  } catch {
    throw sessionReset()
  }
}

function nextNonce(state: ServerDocument, { kind, seq, noBatchYet, receivedAt }: AcceptedBody): string {
  const contents = { seq: Math.min(seq + 1, maxSeq), noBatchYet: noBatchYet && kind !== 'batches' }
  return handOutNonce(state, { contents, now: receivedAt })
}

export function responseHmac(state: ServerDocument, text: string): string {
  return createHmac('sha256', documentKeysOf(state).serverToClient).update(text).digest('base64url')
}
