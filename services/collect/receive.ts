import { createDecipheriv, createHmac, hash } from 'node:crypto'
import { type Budget, overBudget } from '../../infra/access/budget.ts'
import type { PublishablePrincipal } from '../../infra/access/principal.ts'
import { ApiError, invalidField, unavailable } from '../../infra/errors/errors.ts'
import type { DomainEvent } from '../../infra/event-store/event.ts'
import { derivedId } from '../../infra/ids.ts'
import { within } from '../../infra/timing.ts'
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
import { retrySeconds } from './admission.ts'
import { appendClaimed, type Claim, isHeldBy } from './claims.ts'
import {
  type AcceptedBody,
  checkNotErased,
  type DocumentCache,
  documentKeysOf,
  findDocument,
  type LastBody,
  ownQuestionsOf,
  type ServerDocument,
} from './documents.ts'
import { handOutNonce, maxSeq, type NonceContents, nonceContents } from './nonces.ts'
import {
  type BodyRequest,
  type CollectDeps,
  checkPlatform,
  ipAddressOf,
  metaOf,
  readBodyHeaders,
  userAgentOf,
} from './requests.ts'
import { sealContinuity } from './sealed-ids.ts'

export interface ReceiveOptions {
  deps: CollectDeps
  cache: DocumentCache
  /** By document. */
  handOffs: Pick<Budget, 'spend'>
}

// A token stands for a visit. A page needs one for each form that it sends.
const handOffPauseSeconds = 5
export const handOffsOfDocument = { perSecond: 1 / handOffPauseSeconds, burst: 10 }

// Leaves time for the way back, and for timers that a busy process is late with.
const answerShare = 0.8

/**
 * Receives a hand-off. Throws 503 in time, counted from when the request came; the work then goes on, and the same
 * bytes get its answer.
 */
export async function receiveResult(
  request: BodyRequest,
  options: ReceiveOptions,
  { elapsedTime }: { elapsedTime: number },
): Promise<string> {
  const { handOffTimeoutMs: ms = 2000, random } = options.deps
  const late = () => unavailable(new Error(`no hand-off within ${ms} ms`), retrySeconds(random))
  const work = receiveBody(request, 'results', options)
  return within(work, Math.max(0, ms * answerShare - elapsedTime), late)
}

/**
 * Receives the next body of a document, and returns the JSON answer. The last body again is answered as before; an
 * older one, or another body under a number that is taken, is refused with 409.
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

  // 2. Check the sequence: the nonce says which number the body has.
  const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0)
  const frame = readFrame(bytes)
  const { seq, noBatchYet } = checkSequence(document, frame, headerSeq)
  const body = { kind, seq, noBatchYet, bodyHash: hash('sha256', bytes, 'hex'), receivedAt: now }
  if (document.last && seq <= document.last.seq)
    return repeatAnswer(document, document.last, body, deps)

  // 3. Decrypt it. From here on the same bytes wait for this answer.
  const payload = decrypt(document, frame, body)
  const accepted: LastBody = { ...body, answer: undefined }
  const previous = document.last
  const take = async () => {
    try {
      // 4. Check that it can be taken now. A body that is refused here has used no number.
      await checkTakes(document, kind, options)
      // 5. Claim the number and append the event.
      accepted.receivedAt = await store(document, { accepted, payload, request, principal, deps })
    } catch (error) {
      if (document.last === accepted) document.last = previous
      throw error
    }
    // 6. Answer.
    return answerOf(document, accepted, deps)
  }
  document.last = accepted
  return rememberAnswer(accepted, take())
}

// A failure is not kept, so that a repeat asks again.
async function rememberAnswer(accepted: LastBody, answer: Promise<string>): Promise<string> {
  accepted.answer = answer
  try {
    return await answer
  } catch (error) {
    if (accepted.answer === answer) accepted.answer = undefined
    throw error
  }
}

async function repeatAnswer(
  document: ServerDocument,
  last: LastBody,
  { kind, seq, bodyHash }: AcceptedBody,
  deps: CollectDeps,
): Promise<string> {
  if (seq !== last.seq || kind !== last.kind || bodyHash !== last.bodyHash)
    throw sequenceMismatch(last.seq + 1, seq)
  const claim = claimOf(document, last)
  const [answer, newest] = await Promise.all([
    rememberAnswer(last, last.answer ?? answerOf(document, last, deps)),
    deps.claims.claim(claim),
  ])
  // Another process may have taken bodies since.
  checkHeld(newest, claim)
  return answer
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

/** Raw-deflated JSON as the client says; not looked into here. */
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

async function checkTakes(
  { documentIdHash, scope }: ServerDocument,
  kind: BodyKind,
  { deps, handOffs }: ReceiveOptions,
): Promise<void> {
  if (kind === 'results') {
    if (!handOffs.spend(documentIdHash)) throw tooManyHandOffs()
    await deps.checkRecipients(scope)
  }
  await checkNotErased(scope.sessionId, deps.dataKeys)
}

const tooManyHandOffs = () =>
  overBudget(handOffPauseSeconds, {
    message: 'This document hands off more often than pages need to.',
  })

interface Storing {
  accepted: AcceptedBody
  payload: Buffer
  request: BodyRequest
  principal: PublishablePrincipal
  deps: CollectDeps
}

/**
 * Returns when the body was first received, which is earlier where another process took the same bytes. Throws 409
 * where another body has the number, or a later number is taken.
 */
async function store(
  document: ServerDocument,
  { accepted, payload, request, principal, deps }: Storing,
): Promise<number> {
  const { sessionId, organizationId, environment } = document.scope
  const { eventId, decisionId } = idsOf(document, accepted)
  if (accepted.seq === 1) {
    deps.countDocument?.(principal.keyId, 'used')
    deps.admission.begun.awaits(sessionId, decisionId)
  }
  const recordAt = (receivedAt: number) => {
    const data = {
      session_id: sessionId,
      organization_id: organizationId,
      environment,
      event_id: eventId,
      document_id_hash: document.documentIdHash,
      seq: accepted.seq,
      received_at: receivedAt,
      ip_address: ipAddressOf(request, principal),
      user_agent: userAgentOf(request),
      body_hash: accepted.bodyHash,
      payload,
    }
    const event: DomainEvent =
      accepted.kind === 'batches'
        ? { type: 'BatchReceived', data }
        : { type: 'ResultRequested', data: { ...data, decision_id: decisionId } }
    return deps.codec.toRecord(event, metaOf(document, { eventId, time: receivedAt }))
  }
  const claim = claimOf(document, accepted)
  const newest = await appendClaimed(deps, { claim, recordAt })
  checkHeld(newest, claim)
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

function checkHeld(newest: Claim, claim: Claim): void {
  if (!isHeldBy(newest, claim)) throw sequenceMismatch(newest.seq + 1, claim.seq)
}

const idPrefixes = { batches: 'bat', results: 'res' } as const

/** The same for the same bytes, whichever process gets them, so that a retry asks for the same decision. */
function idsOf({ documentIdHash }: ServerDocument, { kind, seq, bodyHash }: AcceptedBody) {
  const eventId = derivedId(idPrefixes[kind], documentIdHash, String(seq), bodyHash)
  return { eventId, decisionId: derivedId('evt', eventId) }
}

async function answerOf(
  document: ServerDocument,
  accepted: AcceptedBody,
  deps: CollectDeps,
): Promise<string> {
  const answer =
    accepted.kind === 'batches'
      ? acknowledge(document, accepted, deps)
      : await handOff(document, accepted, deps)
  return JSON.stringify(answer)
}

function acknowledge(
  document: ServerDocument,
  accepted: AcceptedBody,
  deps: CollectDeps,
): BatchResponse {
  const nonce = nextNonce(document, accepted)
  return {
    ack: true,
    nonce,
    seq: accepted.seq,
    ...(accepted.noBatchYet && {
      fingerprint: fingerprintOf(document, { accepted, nonce, deps }),
      engineQuestions: ownQuestionsOf(document),
    }),
    next: { intervalMs: deps.batchIntervalMs ?? 2000 },
  }
}

function fingerprintOf(
  document: ServerDocument,
  { accepted, nonce, deps }: { accepted: AcceptedBody; nonce: string; deps: CollectDeps },
): Fingerprint {
  const { scope, facts } = document
  const { sessionId } = scope
  const timestamp = accepted.receivedAt
  // A repeat gets the same text from a process that does not remember the first answer.
  const random = (size: number) => documentBytes(document, size)
  const stateId = sealContinuity(facts.continuityId, scope, { keyring: deps.keyring, random })
  const text = fingerprintText({ sessionId, stateId, timestamp }, { seq: accepted.seq, nonce })
  return {
    ready: true,
    timestamp,
    sessionId,
    state: { id: stateId },
    integrity: { responseHmac: responseHmac(document, text) },
  }
}

// The same bytes each time: they seal only the document's one continuity id.
function documentBytes({ master, documentId }: ServerDocument, size: number): Buffer {
  const digest = createHmac('sha256', master.secretKey('collect-fingerprint'))
    .update(documentId)
    .digest()
  return digest.subarray(0, size)
}

async function handOff(
  document: ServerDocument,
  accepted: AcceptedBody,
  deps: CollectDeps,
): Promise<ResultResponse> {
  const { sessionId, organizationId, environment } = document.scope
  const { decisionId } = idsOf(document, accepted)
  const sealedToken = await deps.sealResult({ decisionId, sessionId, organizationId, environment })
  const nonce = nextNonce(document, accepted)
  const text = resultText({ sessionId, sealedToken }, { seq: accepted.seq, nonce })
  const responseHmacText = responseHmac(document, text)
  return { sessionId, sealedToken, nonce, integrity: { responseHmac: responseHmacText } }
}

function nextNonce(
  document: ServerDocument,
  { kind, seq, noBatchYet, receivedAt }: AcceptedBody,
): string {
  const contents = { seq: Math.min(seq + 1, maxSeq), noBatchYet: noBatchYet && kind !== 'batches' }
  return handOutNonce(document, { contents, now: receivedAt })
}

function responseHmac(document: ServerDocument, text: string): string {
  return createHmac('sha256', documentKeysOf(document).serverToClient)
    .update(text)
    .digest('base64url')
}
