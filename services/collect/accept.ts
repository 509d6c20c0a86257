import { createDecipheriv, createHmac, hash } from 'node:crypto'
import { ApiError, invalidField } from '../../infra/errors/errors.ts'
import { associatedData, type BodyKind } from '../../infra/wire/collect/constants.ts'
import { decodeFrame, type Frame } from '../../infra/wire/collect/frame.ts'
import {
  type AcceptedBody,
  claimOf,
  type DocumentState,
  handOutNonce,
  keysOf,
  type TakenBody,
} from './documents.ts'
import { maxSeq, type NonceClaim } from './nonce.ts'

export interface IncomingBody {
  kind: BodyKind
  body: Buffer
  /** X-Batch-Seq; a results body has none. */
  claimedSeq: number | undefined
}

/** A body whose order and tag are right. */
export interface OpenedBody extends TakenBody {
  /** Raw-deflated JSON as the client says; not looked into here. */
  payload: Buffer
}

interface AcceptOptions {
  now: number
  /** Stores the body; the bytes are acknowledged only after this resolves. */
  store: (opened: OpenedBody) => Promise<unknown>
  /** Makes the JSON answer once the body is stored, and again for a repeat where that failed. */
  answer: (taken: TakenBody) => Promise<string> | string
}

/**
 * Takes the next body of a document: its nonce names the sequence number. The last body again is answered as
 * before; anything older, or another body under a number already taken, is refused.
 */
export function acceptBody(
  state: DocumentState,
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
  return take(state, { kind, seq, noBatchYet, bodyHash, payload, receivedAt: options.now }, options)
}

function take(state: DocumentState, opened: OpenedBody, { store, answer }: AcceptOptions): Promise<string> {
  const previous = state.last
  const { kind, seq, noBatchYet, bodyHash, receivedAt } = opened
  const accepted: AcceptedBody = { kind, seq, noBatchYet, bodyHash, receivedAt, answer: undefined }
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
async function settled(accepted: AcceptedBody, answer: Promise<string>): Promise<string> {
  try {
    return await answer
  } catch (error) {
    if (accepted.answer === answer) accepted.answer = undefined
    throw error
  }
}

function repeated(
  last: AcceptedBody,
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

function checkSequence(state: DocumentState, { nonce }: Frame, { claimedSeq }: IncomingBody): NonceClaim {
  const bytes = Buffer.from(nonce.buffer, nonce.byteOffset, nonce.byteLength)
  const claim = claimOf(state, bytes)
  if (!claim) throw sessionReset()
  if (claimedSeq !== undefined && claimedSeq !== claim.seq) throw sequenceMismatch(claim.seq, claimedSeq)
  return claim
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

function decrypt(state: DocumentState, frame: Frame, { kind, seq }: { kind: BodyKind; seq: number }): Buffer {
  const address = { sessionId: state.scope.sessionId, documentId: state.documentId }
  const decipher = createDecipheriv('aes-256-gcm', keysOf(state).clientToServer, frame.iv)
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

/** The nonce for the body after this one. */
export function nextNonce(state: DocumentState, { kind, seq, noBatchYet, receivedAt }: TakenBody): string {
  const claim = { seq: Math.min(seq + 1, maxSeq), noBatchYet: noBatchYet && kind !== 'batches' }
  return handOutNonce(state, { claim, now: receivedAt })
}

/** HMAC over a response text, by the document's server-to-client key, base64url. */
export function responseHmac(state: DocumentState, text: string): string {
  return createHmac('sha256', keysOf(state).serverToClient).update(text).digest('base64url')
}
