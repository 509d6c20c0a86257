import { createDecipheriv, hash } from 'node:crypto'
import { ApiError, invalidField } from '../../infra/errors/errors.ts'
import {
  associatedData,
  type BodyKind,
  decodeFrame,
  type Frame,
  sessionLifetimeMs,
} from '../../infra/wire/collect/protocol.ts'
import { type Claim, isHeldBy } from './claims.ts'
import {
  type AcceptedBody,
  documentKeysOf,
  type LastBody,
  type ServerDocument,
} from './documents.ts'
import { type NonceContents, nonceContents } from './nonces.ts'
import type { IncomingBody } from './requests.ts'

/** A body whose order and tag are right, and whose number no other body has. */
export interface OpenedBody extends AcceptedBody {
  /** Raw-deflated JSON as the client says; not looked into here. */
  payload: Buffer
}

export interface AcceptOptions {
  now: number
  /** The body that has the number, over all processes: this one, or another. */
  claim: (claim: Claim) => Promise<Claim>
  /** Rejects where no body can be taken now, before this one takes its number. */
  check?: () => Promise<void>
  /** Claims the number and stores the body, unless the number is another's. Returns what `claim` does. */
  store: (claim: Claim, opened: OpenedBody) => Promise<Claim>
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
  if (last && seq <= last.seq) return repeated(state, { last, kind, seq, bodyHash, options })
  const payload = decrypt(state, frame, { kind, seq })
  return accept(
    state,
    { kind, seq, noBatchYet, bodyHash, payload, receivedAt: options.now },
    options,
  )
}

function accept(
  state: ServerDocument,
  opened: OpenedBody,
  options: AcceptOptions,
): Promise<string> {
  const previous = state.last
  const { payload, ...body } = opened
  const accepted: LastBody = { ...body, answer: undefined }
  accepted.answer = take().then(
    () => options.answer(accepted),
    (error) => {
      // Not acknowledged, so the same bytes may come again.
      if (state.last === accepted) state.last = previous
      throw error
    },
  )
  state.last = accepted

  async function take(): Promise<void> {
    await options.check?.()
    // A repeat to a process that does not remember the first one: what follows from its time is the same again.
    accepted.receivedAt = await claimNumber(state, accepted, (mine) =>
      options.store(mine, { ...accepted, payload }),
    )
  }
  return settled(accepted, accepted.answer)
}

// When the body was first received. Throws 409 where another body has the number, or a later number is taken.
async function claimNumber(
  { documentIdHash, facts }: ServerDocument,
  { seq, bodyHash, receivedAt }: AcceptedBody,
  claim: AcceptOptions['claim'],
): Promise<number> {
  const expiresAt = facts.createdAt + sessionLifetimeMs
  const mine = { documentIdHash, expiresAt, seq, bodyHash, receivedAt }
  const newest = await claim(mine)
  if (!isHeldBy(newest, mine)) throw sequenceMismatch(newest.seq + 1, seq)
  return newest.receivedAt
}

// The answer; a failure is not kept, so that a repeat asks again.
async function settled(accepted: LastBody, answer: Promise<string>): Promise<string> {
  try {
    return await answer
  } catch (error) {
    if (accepted.answer === answer) accepted.answer = undefined
    throw error
  }
}

interface Repeat {
  last: LastBody
  kind: BodyKind
  seq: number
  bodyHash: string
  options: AcceptOptions
}

async function repeated(
  state: ServerDocument,
  { last, kind, seq, bodyHash, options }: Repeat,
): Promise<string> {
  if (seq !== last.seq || kind !== last.kind || bodyHash !== last.bodyHash)
    throw sequenceMismatch(last.seq + 1, seq)
  last.answer ??= Promise.resolve(options.answer(last))
  // Another process may have taken bodies since.
  const [answer] = await Promise.all([
    settled(last, last.answer),
    claimNumber(state, last, options.claim),
  ])
  return answer
}

function readFrame(body: Buffer): Frame {
  const frame = decodeFrame(body)
  if (typeof frame === 'string') throw invalidField({ name: 'body', issue: frame })
  return frame
}

function checkSequence(
  state: ServerDocument,
  { nonce }: Frame,
  { headerSeq }: IncomingBody,
): NonceContents {
  const bytes = Buffer.from(nonce.buffer, nonce.byteOffset, nonce.byteLength)
  const contents = nonceContents(state, bytes)
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
