/**
 * Sizes, labels and paths of the collect protocol (docs/collect-protocol.md), the same for server and clients.
 * A change to any of these needs a new frame version: deployed clients would no longer be understood.
 */
export const frameVersion = 1
export const ivBytes = 12
export const tagBytes = 16
export const keyBytes = 32

/** Largest encrypted body that the server takes, in bytes. */
export const maxBodyBytes = 1024 * 1024
/** Largest observation JSON after inflating, in bytes; more is recorded as unreadable. */
export const maxObservationBytes = 512 * 1024
/** Largest deflated observations, in bytes; more is recorded as unreadable. An honest snapshot has some 3 KiB. */
export const maxDeflatedBytes = 128 * 1024

/** HKDF-SHA256 info of the key of each direction. */
export const keyLabels = {
  clientToServer: 'tidegate collect v2 client-to-server',
  serverToClient: 'tidegate collect v2 server-to-client',
} as const

export const sharedPostVersion = 1

export const sessionsPath = '/v2/collect/sessions'

export const headerNames = { clientKey: 'X-Client-Key', batchSeq: 'X-Batch-Seq' } as const

/** What an encrypted body asks for; also the last segment of its path. */
export type BodyKind = 'batches' | 'results'

export interface DocumentAddress {
  sessionId: string
  documentId: string
}

/** The path that a body is posted to, as it is authenticated: without the prefix a reverse proxy may add. */
export function bodyPath({ sessionId, documentId }: DocumentAddress, kind: BodyKind): string {
  return `${sessionsPath}/${sessionId}/documents/${documentId}/${kind}`
}

/** Additional authenticated data of a body: method, path and sequence number, one a line. */
export function associatedData(address: DocumentAddress, kind: BodyKind, seq: number): string {
  return `POST\n${bodyPath(address, kind)}\n${seq}`
}

/** What is hashed by SHA-256 into the HKDF salt of a document's keys. */
export function saltInput({ sessionId, documentId }: DocumentAddress): string {
  return sessionId + documentId
}

export interface FingerprintAnswer {
  sessionId: string
  stateId: string
  timestamp: number
}

/** The text under `fingerprint.integrity.responseHmac`; `nonce` is the answer's, `seq` the batch's. */
export function fingerprintText(
  { sessionId, stateId, timestamp }: FingerprintAnswer,
  { seq, nonce }: { seq: number; nonce: string },
): string {
  return `fingerprint\n${seq}\n${nonce}\n${sessionId}\n${timestamp}\n${stateId}`
}

export interface ResultAnswer {
  sessionId: string
  sealedToken: string
}

/** The text under a result's `integrity.responseHmac`; `nonce` is the answer's, `seq` the request's. */
export function resultText(
  { sessionId, sealedToken }: ResultAnswer,
  { seq, nonce }: { seq: number; nonce: string },
): string {
  return `result\n${seq}\n${nonce}\n${sessionId}\n${sealedToken}`
}
