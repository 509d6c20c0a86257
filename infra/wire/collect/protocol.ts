// Sizes, labels and paths of the collect protocol (docs/reference/collect-protocol.md), shared by server and clients. A
// change to any of them needs a new frame version, or deployed clients break.

export type {
  BatchResponse,
  CanvasChallenge,
  CanvasOp,
  EngineQuestion,
  Fingerprint,
  OpenResponse,
  ResultResponse,
} from './responses.ts'

const frameVersion = 1
export const ivBytes = 12
export const tagBytes = 16
export const keyBytes = 32

/** Length of the server's nonces; clients treat them as opaque. */
export const nonceBytes = 26
/** Time from a session's creation until its documents and resume tokens expire. */
export const sessionLifetimeMs = 24 * 60 * 60 * 1000
/** Largest observation JSON after inflating, in bytes; more is recorded as unreadable. */
export const maxObservationBytes = 512 * 1024
/** Largest deflated observations, in bytes. A real snapshot has about 3 KiB. */
export const maxDeflatedBytes = 128 * 1024
/** Largest body, in bytes: deflated observations in their frame. */
export const maxBodyBytes = maxDeflatedBytes + 2 + nonceBytes + ivBytes + tagBytes

export const keyLabels = {
  clientToServer: 'tidegate collect v2 client-to-server',
  serverToClient: 'tidegate collect v2 server-to-client',
} as const

export const sharedPostVersion = 1

export const sessionsPath = '/v2/collect/sessions'

export const headerNames = { clientKey: 'X-Client-Key', batchSeq: 'X-Batch-Seq' } as const

export type BodyKind = 'batches' | 'results'

export interface DocumentAddress {
  sessionId: string
  documentId: string
}

/** Returns the path of a body as it is authenticated, without a prefix that a reverse proxy may add. */
export function bodyPath({ sessionId, documentId }: DocumentAddress, kind: BodyKind): string {
  return `${sessionsPath}/${sessionId}/documents/${documentId}/${kind}`
}

/** Returns the additional authenticated data (AAD) of a body: method, path and sequence number, one per line. */
export function associatedData(address: DocumentAddress, kind: BodyKind, seq: number): string {
  return `POST\n${bodyPath(address, kind)}\n${seq}`
}

/** Returns the text whose SHA-256 is the HKDF salt of a document's keys. */
export function saltInput({ sessionId, documentId }: DocumentAddress): string {
  return sessionId + documentId
}

/**
 * Returns the text that a fingerprint's `integrity.responseHmac` covers. `seq` is that of the request, `nonce` that of
 * the response.
 */
export function fingerprintText(
  { sessionId, stateId, timestamp }: { sessionId: string; stateId: string; timestamp: number },
  { seq, nonce }: { seq: number; nonce: string },
): string {
  return `fingerprint\n${seq}\n${nonce}\n${sessionId}\n${timestamp}\n${stateId}`
}

/** Like `fingerprintText`, for a result. */
export function resultText(
  { sessionId, sealedToken }: { sessionId: string; sealedToken: string },
  { seq, nonce }: { seq: number; nonce: string },
): string {
  return `result\n${seq}\n${nonce}\n${sessionId}\n${sealedToken}`
}

/** Values of the open response from which the key of the answers' MAC is derived. */
export interface AnswerKey {
  challenge: string
  timingNonce: string
}

export interface Answers {
  canvas: string | number | null
  engine: readonly EngineAnswer[]
}

export const answerKeyText = ({ challenge, timingNonce }: AnswerKey) =>
  `${challenge}\n${timingNonce}`

/** Returns the text that the answers' MAC covers (section 7). Its key is `answerKeyText`, both in UTF-8. */
export function answerText({ canvas, engine }: Answers): string {
  return ['answers', canvas ?? '', ...engine.map(({ id, answer }) => `${id} ${answer}`)].join('\n')
}

export interface Frame {
  nonce: Uint8Array
  iv: Uint8Array
  ciphertext: Uint8Array
  tag: Uint8Array
}

// Layout: version 1 | nonce length 1 | nonce | iv 12 | ciphertext | tag 16.
const headerBytes = 2

export function encodeFrame({ nonce, iv, ciphertext, tag }: Frame): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(headerBytes + nonce.length + ivBytes + ciphertext.length + tagBytes)
  frame[0] = frameVersion
  frame[1] = nonce.length
  frame.set(nonce, headerBytes)
  frame.set(iv, headerBytes + nonce.length)
  frame.set(ciphertext, headerBytes + nonce.length + ivBytes)
  frame.set(tag, frame.length - tagBytes)
  return frame
}

/** Returns the parts as views into `bytes`, or the problem with the frame. */
export function decodeFrame<T extends Uint8Array>(
  bytes: T,
): Frame | 'unknown_version' | 'too_short' {
  const nonceEnd = headerBytes + (bytes[1] ?? 0)
  const ivEnd = nonceEnd + ivBytes
  if (bytes.length > 0 && bytes[0] !== frameVersion) return 'unknown_version'
  if (bytes.length < ivEnd + tagBytes) return 'too_short'
  return {
    nonce: bytes.subarray(headerBytes, nonceEnd),
    iv: bytes.subarray(nonceEnd, ivEnd),
    ciphertext: bytes.subarray(ivEnd, bytes.length - tagBytes),
    tag: bytes.subarray(bytes.length - tagBytes),
  }
}

export type ClientPlatform = 'web' | 'ios' | 'android'

export interface SdkInfo {
  name: string
  version: string
  platform: ClientPlatform
}

export interface PageInfo {
  url: string
  referrer?: string | null | undefined
}

export interface OpenRequest {
  clientPublicKey: string
  resumeToken?: string
  /** `fingerprint.state.id` of an earlier session in the same continuity scope. */
  continuity?: string
  sdk: SdkInfo
  page?: PageInfo
}

export interface EngineAnswer {
  id: number
  answer: string
}

/** Byte type of browsers and Node. The functions below use nothing else, so one client runs in both. */
export type Bytes = Uint8Array<ArrayBuffer>

const encoder = new TextEncoder()

export function utf8(text: string): Bytes {
  return encoder.encode(text)
}

/** Encodes base64url without padding (RFC 4648, section 5). Avoids `replaceAll`, which browsers before 2020 lack. */
export function toBase64Url(bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary).replace(/\+/g, '-').replace(/\//g, '_').replace(/=/g, '')
}

/** Decodes base64url. Throws for other characters. */
export function fromBase64Url(text: string): Bytes {
  const binary = atob(text.replace(/-/g, '+').replace(/_/g, '/'))
  return Uint8Array.from(binary, (character) => character.charCodeAt(0))
}

export function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false
  let difference = 0
  for (let i = 0; i < left.length; i++) difference |= (left[i] ?? 0) ^ (right[i] ?? 0)
  return difference === 0
}
