import { createHash, type KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { BodyKind } from '../../infra/collect-protocol/constants.ts'
import { associatedData } from '../../infra/collect-protocol/constants.ts'
import type { Keyring, MasterKey } from '../../infra/crypto/keyring.ts'
import { ApiError } from '../../infra/http/errors.ts'
import { agreeDocumentKeys, type DocumentKeys, sessionKeyPair } from './keys.ts'
import { issueNonce, readNonce } from './nonce.ts'
import { type DocumentFacts, type DocumentScope, openDocumentId, sessionLifetimeMs } from './sealed-ids.ts'

/** A body that was taken, for telling a repeat from a replay. */
export interface AcceptedBody {
  kind: BodyKind
  seq: number
  /** SHA-256 of the encrypted body, hex. */
  bodyHash: string
  /** The JSON that a repeat is answered with; undefined when answering failed after the body was stored. */
  answer: Promise<string> | undefined
  /** Makes the answer again, without storing the body again. */
  answerAgain: (() => Promise<string>) | undefined
}

/** What a node knows about a document while it is in use; everything but `last` and `issued` follows from its id. */
export interface DocumentState {
  scope: DocumentScope
  documentId: string
  documentIdHash: string
  facts: DocumentFacts
  master: MasterKey
  keys: DocumentKeys
  serverPublicKey: string
  nonceKey: KeyObject
  /** Associated data up to the sequence number. */
  aad: Record<BodyKind, string>
  last: AcceptedBody | undefined
  /** The nonce handed out last: when it comes back, its MAC need not be made once more. */
  issued: { nonce: Buffer; seq: number } | undefined
}

export type DocumentCache = LRUCache<string, DocumentState>

/** Losing an entry costs one key agreement; a replay it would have refused is then dropped by scoring. */
export function createDocumentCache(max: number): DocumentCache {
  return new LRUCache({ max })
}

interface DocumentSource {
  documentId: string
  scope: DocumentScope
  facts: DocumentFacts
  master: MasterKey
}

/** Undefined when the client's public key is a low-order point. */
export function createDocumentState(source: DocumentSource): DocumentState | undefined {
  const { documentId, scope, master } = source
  const address = { sessionId: scope.sessionId, documentId }
  const { privateKey, publicKey } = sessionKeyPair(master, scope.sessionId)
  const keys = agreeDocumentKeys(privateKey, { address, clientPublicKey: scope.clientPublicKey })
  if (!keys) return undefined
  const prefix = (kind: BodyKind) => associatedData(address, kind, 0).slice(0, -1)
  return {
    ...source,
    documentIdHash: createHash('sha256').update(documentId).digest('hex'),
    keys,
    serverPublicKey: publicKey,
    nonceKey: master.secretKey('collect-nonce'),
    aad: { batches: prefix('batches'), results: prefix('results') },
    last: undefined,
    issued: undefined,
  }
}

interface FindOptions {
  cache: DocumentCache
  keyring: Keyring
  now: number
}

/** The document that a body was posted to. Throws 410 unless it is the scope's own and its session still lasts. */
export function findDocument(
  documentId: string,
  scope: DocumentScope,
  { cache, keyring, now }: FindOptions,
): DocumentState {
  const known = cache.get(documentId)
  const state = known && sameScope(known.scope, scope) ? known : openState(documentId, scope, keyring)
  if (!state || now - state.facts.createdAt > sessionLifetimeMs) {
    throw new ApiError('session.invalid_or_expired', { details: { next_action: 'new_session' } })
  }
  if (state !== known) cache.set(documentId, state)
  return state
}

function openState(documentId: string, scope: DocumentScope, keyring: Keyring): DocumentState | undefined {
  const opened = openDocumentId(documentId, scope, keyring)
  return opened && createDocumentState({ documentId, scope, ...opened })
}

function sameScope(one: DocumentScope, other: DocumentScope): boolean {
  return (
    one.sessionId === other.sessionId &&
    one.clientPublicKey === other.clientPublicKey &&
    one.organizationId === other.organizationId &&
    one.environment === other.environment
  )
}

/** A new nonce for the body with this sequence number, base64url. */
export function handOutNonce(state: DocumentState, { seq, now }: { seq: number; now: number }): string {
  const nonce = issueNonce({ key: state.nonceKey, documentId: state.documentId }, { seq, now })
  state.issued = { nonce, seq }
  return nonce.toString('base64url')
}

/** The sequence number that a nonce of the document is for; undefined for a nonce that we did not issue. */
export function sequenceOf(state: DocumentState, nonce: Buffer): number | undefined {
  if (state.issued?.nonce.equals(nonce)) return state.issued.seq
  return readNonce({ key: state.nonceKey, documentId: state.documentId }, nonce)
}
