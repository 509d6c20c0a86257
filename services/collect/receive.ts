import { createDecipheriv, createHmac, hash } from 'node:crypto'
import { type Budget, rateLimitError } from '../../infra/access/budget.ts'
import type { PublishablePrincipal } from '../../infra/access/principal.ts'
import { ApiError, invalidField, unavailable } from '../../infra/errors/errors.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { derivedId } from '../../infra/ids.ts'
import { withTimeout } from '../../infra/timing.ts'
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
  sessionLifetimeMs,
} from '../../infra/wire/collect/protocol.ts'
import { randomRetrySeconds } from './admission.ts'
import { appendClaimed, type Claim, isSameBody } from './claims.ts'
import {
  type AcceptedBody,
  checkNotErased,
  type DocumentCache,
  documentKeysOf,
  findDocument,
  type LastBody,
  privateQuestionsOf,
  type ServerDocument,
} from './documents.ts'
import { issueNonce, maxSeq, type NonceContents, nonceContents } from './nonces.ts'
import {
  type BodyRequest,
  type CollectDeps,
  checkPlatform,
  ipAddressOf,
  metaOf,
  readBodyHeaders,
  userAgentOf,
} from './requests.ts'
import { sealContinuityId } from './sealed-ids.ts'

/*
 * Receives the encrypted bodies of documents (page loads and app launches): batches of observations, and hand-offs,
 * which return the sealed token with the decision. The number of each body is claimed, see claims.ts.
 */

export interface ReceiveOptions {
  deps: CollectDeps
  cache: DocumentCache
  /** Charged per document. */
  handOffBudget: Pick<Budget, 'spend'>
}

// A page needs one token for each form that it sends.
const handOffIntervalSeconds = 5
export const handOffRate = { perSecond: 1 / handOffIntervalSeconds, burst: 10 }

// Leaves the rest of the timeout for the network and for late timers of a busy process.
const usableTimeout = 0.8

/**
 * Receives a hand-off. Throws 503 shortly before the timeout, which counts from the arrival of the request. The work
 * then continues, so that a retry with the same bytes gets its result.
 */
export async function receiveHandOff(
  request: BodyRequest,
  options: ReceiveOptions,
  { elapsedTime }: { elapsedTime: number },
): Promise<string> {
  const { handOffTimeoutMs: timeoutMs = 2000, random } = options.deps
  const timeoutError = () =>
    unavailable(new Error(`no hand-off within ${timeoutMs} ms`), randomRetrySeconds(random))
  const work = receiveBody(request, 'results', options)
  return withTimeout(work, Math.max(0, timeoutMs * usableTimeout - elapsedTime), timeoutError)
}

/**
 * Receives the next body of a document and returns the JSON response. A repeat of the last body gets the same response.
 * Throws 409 for an older body, and for a different body with a number that is taken.
 */
export async function receiveBody(
  request: BodyRequest,
  kind: BodyKind,
  options: ReceiveOptions,
): Promise<string> {
  const { deps, cache } = options
  const now = deps.clock()
  const principal = deps.auth.publishable(request)

  // 1. Find the document.
  const { organizationId, environment } = principal
  const { clientPublicKey, seq: headerSeq } = readBodyHeaders(request, kind)
  const { sessionId, documentId } = request.params
  const scope = { organizationId, environment, sessionId, clientPublicKey }
  const document = findDocument(documentId, scope, { cache, keyring: deps.keyring, now })
  checkPlatform(principal, document.facts.platform)

  // 2. Check the sequence. The nonce holds the body's number.
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  const frame = readFrame(bytes)
  const { seq, noBatchYet } = checkSequence(document, frame, headerSeq)
  const body = { kind, seq, noBatchYet, bodyHash: hash('sha256', bytes, 'hex'), receivedAt: now }
  if (document.lastBody && seq <= document.lastBody.seq)
    return repeatResponse(document, document.lastBody, body, deps)

  // 3. Decrypt the body. From here on, repeats of the same bytes wait for this response.
  const payload = decrypt(document, frame, body)
  const lastBody: LastBody = { ...body, response: undefined }
  const previous = document.lastBody
  const storeAndRespond = async () => {
    try {
      // 4. Check limits and erasure. A body that is rejected here does not use up its number.
      await checkAcceptable(document, kind, options)
      // 5. Claim the number and append the event.
      lastBody.receivedAt = await claimAndAppend(document, lastBody, {
        payload,
        request,
        principal,
        deps,
      })
    } catch (error) {
      if (document.lastBody === lastBody) document.lastBody = previous
      throw error
    }
    // 6. Respond.
    return responseTo(document, lastBody, deps)
  }
  document.lastBody = lastBody
  return rememberResponse(lastBody, storeAndRespond())
}

// A failure is not remembered, so that a repeat tries again.
async function rememberResponse(lastBody: LastBody, response: Promise<string>): Promise<string> {
  lastBody.response = response
  try {
    return await response
  } catch (error) {
    if (lastBody.response === response) lastBody.response = undefined
    throw error
  }
}

async function repeatResponse(
  document: ServerDocument,
  lastBody: LastBody,
  { kind, seq, bodyHash }: AcceptedBody,
  deps: CollectDeps,
): Promise<string> {
  if (seq !== lastBody.seq || kind !== lastBody.kind || bodyHash !== lastBody.bodyHash)
    throw sequenceMismatch(lastBody.seq + 1, seq)
  const claim = claimOf(document, lastBody)
  const [response, newest] = await Promise.all([
    rememberResponse(lastBody, lastBody.response ?? responseTo(document, lastBody, deps)),
    deps.claims.claim(claim),
  ])
  // Another process may have accepted a later body.
  checkClaim(newest, claim)
  return response
}

function readFrame(body: Buffer): Frame {
  const frame = decodeFrame(body)
  if (typeof frame === 'string') throw invalidField({ name: 'body', issue: frame })
  return frame
}

function checkSequence(
  document: ServerDocument,
  { nonce }: Frame,
  headerSeq: number | undefined,
): NonceContents {
  const bytes = Buffer.from(nonce.buffer, nonce.byteOffset, nonce.byteLength)
  const contents = nonceContents(document, bytes)
  if (!contents) throw sessionReset()
  if (headerSeq !== undefined && headerSeq !== contents.seq)
    throw sequenceMismatch(contents.seq, headerSeq)
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
  return new ApiError('transport.session_reset_required', {
    details: { next_action: 'new_session' },
  })
}

/** Returns the decrypted payload, which clients send as raw-deflated JSON. It is not parsed here. */
function decrypt(
  document: ServerDocument,
  frame: Frame,
  { kind, seq }: Pick<AcceptedBody, 'kind' | 'seq'>,
): Buffer {
  const address = { sessionId: document.scope.sessionId, documentId: document.documentId }
  const key = documentKeysOf(document).clientToServer
  const decipher = createDecipheriv('aes-256-gcm', key, frame.iv)
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

/** Throws 429 above the hand-off budget, 409 if no secret key could open the token, 410 for an erased session. */
async function checkAcceptable(
  { documentIdHash, scope }: ServerDocument,
  kind: BodyKind,
  { deps, handOffBudget }: ReceiveOptions,
): Promise<void> {
  if (kind === 'results') {
    if (!handOffBudget.spend(documentIdHash)) throw tooManyHandOffs()
    await deps.requireRecipients(scope)
  }
  await checkNotErased(scope.sessionId, deps.dataKeys)
}

const tooManyHandOffs = () =>
  rateLimitError(handOffIntervalSeconds, {
    message: 'This document hands off more often than pages need to.',
  })

interface ClaimParts {
  payload: Buffer
  request: BodyRequest
  principal: PublishablePrincipal
  deps: CollectDeps
}

/**
 * Claims the number of the body and appends its event. Returns when the body was first received, which is earlier if
 * another process accepted the same bytes. Throws 409 if another body has claimed the number or a higher one.
 */
async function claimAndAppend(
  document: ServerDocument,
  body: AcceptedBody,
  { payload, request, principal, deps }: ClaimParts,
): Promise<number> {
  const { sessionId, organizationId, environment } = document.scope
  const { eventId, decisionId } = idsOf(document, body)
  if (body.seq === 1) {
    deps.countDocument?.(principal.keyId, 'used')
    deps.admission.pendingSessions.expectDecision(sessionId, decisionId)
  }
  const recordAt = (receivedAt: number) => {
    const data = {
      session_id: sessionId,
      organization_id: organizationId,
      environment,
      event_id: eventId,
      document_id_hash: document.documentIdHash,
      seq: body.seq,
      received_at: receivedAt,
      ip_address: ipAddressOf(request, principal),
      user_agent: userAgentOf(request),
      body_hash: body.bodyHash,
      payload,
    }
    const event: DomainEvent =
      body.kind === 'batches'
        ? { type: 'BatchReceived', data }
        : { type: 'ResultRequested', data: { ...data, decision_id: decisionId } }
    return deps.codec.toRecord(event, metaOf(document, { eventId, time: receivedAt }))
  }
  const claim = claimOf(document, body)
  const newest = await appendClaimed(deps, { claim, recordAt })
  checkClaim(newest, claim)
  return newest.receivedAt
}

const claimOf = (
  { documentIdHash, facts }: ServerDocument,
  { seq, bodyHash, receivedAt }: AcceptedBody,
): Claim => ({
  documentIdHash,
  expiresAt: facts.createdAt + sessionLifetimeMs,
  seq,
  bodyHash,
  receivedAt,
})

function checkClaim(newest: Claim, claim: Claim): void {
  if (!isSameBody(newest, claim)) throw sequenceMismatch(newest.seq + 1, claim.seq)
}

const idPrefixes = { batches: 'bat', results: 'res' } as const

/** Derives the ids from the bytes, so that a retry at any process asks for the same decision. */
function idsOf({ documentIdHash }: ServerDocument, { kind, seq, bodyHash }: AcceptedBody) {
  const eventId = derivedId(idPrefixes[kind], documentIdHash, String(seq), bodyHash)
  return { eventId, decisionId: derivedId('evt', eventId) }
}

async function responseTo(
  document: ServerDocument,
  body: AcceptedBody,
  deps: CollectDeps,
): Promise<string> {
  const response =
    body.kind === 'batches'
      ? batchResponse(document, body, deps)
      : await handOffResponse(document, body, deps)
  return JSON.stringify(response)
}

function batchResponse(
  document: ServerDocument,
  body: AcceptedBody,
  deps: CollectDeps,
): BatchResponse {
  const nonce = nextNonce(document, body)
  return {
    ack: true,
    nonce,
    seq: body.seq,
    ...(body.noBatchYet && {
      fingerprint: fingerprintOf(document, { body, nonce, deps }),
      engineQuestions: privateQuestionsOf(document),
    }),
    next: { intervalMs: deps.batchIntervalMs ?? 2000 },
  }
}

function fingerprintOf(
  document: ServerDocument,
  { body, nonce, deps }: { body: AcceptedBody; nonce: string; deps: CollectDeps },
): Fingerprint {
  const { scope, facts } = document
  const { sessionId } = scope
  const timestamp = body.receivedAt
  // Deterministic, so that a repeat gets the same text from any process.
  const random = (size: number) => deterministicBytes(document, size)
  const stateId = sealContinuityId(facts.continuityId, scope, { keyring: deps.keyring, random })
  const text = fingerprintText({ sessionId, stateId, timestamp }, { seq: body.seq, nonce })
  return {
    ready: true,
    timestamp,
    sessionId,
    state: { id: stateId },
    integrity: { responseHmac: responseHmac(document, text) },
  }
}

// Replaces random bytes when sealing. Safe, because they seal only one text: the document's continuity id.
function deterministicBytes({ master, documentId }: ServerDocument, size: number): Buffer {
  const digest = createHmac('sha256', master.secretKey('collect-fingerprint'))
    .update(documentId)
    .digest()
  return digest.subarray(0, size)
}

async function handOffResponse(
  document: ServerDocument,
  body: AcceptedBody,
  deps: CollectDeps,
): Promise<ResultResponse> {
  const { sessionId, organizationId, environment } = document.scope
  const { decisionId } = idsOf(document, body)
  const sealedToken = await deps.sealResult({ decisionId, sessionId, organizationId, environment })
  const nonce = nextNonce(document, body)
  const text = resultText({ sessionId, sealedToken }, { seq: body.seq, nonce })
  const integrity = { responseHmac: responseHmac(document, text) }
  return { sessionId, sealedToken, nonce, integrity }
}

function nextNonce(
  document: ServerDocument,
  { kind, seq, noBatchYet, receivedAt }: AcceptedBody,
): string {
  const contents = { seq: Math.min(seq + 1, maxSeq), noBatchYet: noBatchYet && kind !== 'batches' }
  return issueNonce(document, { contents, now: receivedAt })
}

function responseHmac(document: ServerDocument, text: string): string {
  return createHmac('sha256', documentKeysOf(document).serverToClient)
    .update(text)
    .digest('base64url')
}
