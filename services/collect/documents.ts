import { createHmac, hash, type KeyObject, timingSafeEqual } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { Keyring, MasterKey } from '../../infra/crypto/keyring.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import type { DataKeys } from '../../infra/event-store/data-keys.ts'
import { type BodyKind, nonceBytes, sessionLifetimeMs } from '../../infra/wire/collect/protocol.ts'
import {
  agreeDocumentKeys,
  createServerKeys,
  type DocumentKeys,
  type ServerKeyPair,
  type ServerKeys,
} from './keys.ts'
import { type DocumentFacts, type DocumentScope, openDocumentId } from './sealed-ids.ts'

export interface AcceptedBody extends NonceContents {
  kind: BodyKind
  bodyHash: string
  /** Epoch milliseconds. */
  receivedAt: number
}

/**
 * A body that was accepted, for telling a repeat from a replay. It holds neither request nor payload: documents are
 * remembered long after both.
 */
export interface LastBody extends AcceptedBody {
  /** The JSON that a repeat is answered with; undefined when answering failed after the body was stored. */
  answer: Promise<string> | undefined
}

export interface ServerDocument {
  scope: DocumentScope
  documentId: string
  documentIdHash: string
  facts: DocumentFacts
  master: MasterKey
  serverKeys: ServerKeyPair
  nonceKey: KeyObject
  keys: DocumentKeys | undefined
  last: LastBody | undefined
  /** The nonce handed out last: when it comes back, its MAC need not be made once more. */
  issued: { nonce: Buffer; contents: NonceContents } | undefined
}

export interface DocumentCache {
  documents: LRUCache<string, ServerDocument>
  serverKeys: ServerKeys
}

/** Keeps up to `max` documents. Losing one costs a key agreement, and storing a repeat once more. */
export function createDocumentCache(max: number): DocumentCache {
  return { documents: new LRUCache({ max }), serverKeys: createServerKeys() }
}

interface DocumentSource {
  documentId: string
  scope: DocumentScope
  facts: DocumentFacts
  master: MasterKey
}

export function createDocumentState(source: DocumentSource, { serverKeys }: DocumentCache): ServerDocument {
  return {
    ...source,
    documentIdHash: hash('sha256', source.documentId, 'hex'),
    serverKeys: serverKeys(source.master, source.facts.openedAt),
    nonceKey: source.master.secretKey('collect-nonce'),
    keys: undefined,
    last: undefined,
    issued: undefined,
  }
}

/**
 * The document's keys, agreed when its first body comes: it may come to another node, or never. Throws 410 for a
 * client key of low order, which no document of ours has.
 */
export function documentKeysOf(state: ServerDocument): DocumentKeys {
  const { documentId, scope } = state
  const address = { sessionId: scope.sessionId, documentId }
  state.keys ??= agreeDocumentKeys(state.serverKeys.privateKey, {
    address,
    clientPublicKey: scope.clientPublicKey,
  })
  if (!state.keys) throw documentEnded()
  return state.keys
}

type ItsKey = Pick<DataKeys, 'ensure' | 'get'>

// Whether the session may record something: its data key is in memory then. An erased one has none any more.
export async function hasDataKey(sessionId: string, keys: ItsKey): Promise<boolean> {
  await keys.ensure([sessionId])
  return Boolean(keys.get(sessionId))
}

// Throws 410 for an erased session, as for one that has expired.
export async function checkNotErased(sessionId: string, keys: ItsKey): Promise<void> {
  if (!(await hasDataKey(sessionId, keys))) throw documentEnded()
}

function documentEnded(): ApiError {
  return new ApiError('session.invalid_or_expired', { details: { next_action: 'new_session' } })
}

interface FindOptions {
  cache: DocumentCache
  keyring: Keyring
  now: number
}

export function findDocument(
  documentId: string,
  scope: DocumentScope,
  { cache, keyring, now }: FindOptions,
): ServerDocument {
  const known = cache.documents.get(documentId)
  const state =
    known && sameScope(known.scope, scope) ? known : openState(documentId, scope, { cache, keyring })
  if (!state || now - state.facts.createdAt > sessionLifetimeMs) throw documentEnded()
  if (state !== known) cache.documents.set(documentId, state)
  return state
}

function openState(
  documentId: string,
  scope: DocumentScope,
  { cache, keyring }: Omit<FindOptions, 'now'>,
): ServerDocument | undefined {
  const opened = openDocumentId(documentId, scope, keyring)
  return opened && createDocumentState({ documentId, scope, ...opened }, cache)
}

function sameScope(one: DocumentScope, other: DocumentScope): boolean {
  return (
    one.sessionId === other.sessionId &&
    one.clientPublicKey === other.clientPublicKey &&
    one.organizationId === other.organizationId &&
    one.environment === other.environment
  )
}

export function handOutNonce(
  state: ServerDocument,
  { contents, now }: { contents: NonceContents; now: number },
): string {
  const nonce = issueNonce({ key: state.nonceKey, documentId: state.documentId }, { ...contents, now })
  state.issued = { nonce, contents }
  return nonce.toString('base64url')
}

/** What a nonce of the document says; undefined for a nonce that we did not issue. */
export function nonceContents(state: ServerDocument, nonce: Buffer): NonceContents | undefined {
  if (state.issued?.nonce.equals(nonce)) return state.issued.contents
  return readNonce({ key: state.nonceKey, documentId: state.documentId }, nonce)
}

// Layout: seq u32 | issued at u48 | MAC 16, big-endian. The MAC covers the document id, so a nonce says without
// any state on the server which body of which document may come next. The time's top bit, which no time of ours
// has, says that no batch of the document was accepted yet.
const seqBytes = 4
const contentBytes = seqBytes + 6
const macBytes = nonceBytes - contentBytes
const noBatchYetBit = 2 ** 47
/** Events carry the number as a signed 32-bit integer. */
export const maxSeq = 0x7fff_ffff

export interface NonceContents {
  seq: number
  /** No batch of the document was accepted before it: the first one's answer carries the fingerprint. */
  noBatchYet: boolean
}

interface NonceScope {
  key: KeyObject
  documentId: string
}

export function issueNonce(
  { key, documentId }: NonceScope,
  { seq, noBatchYet, now }: NonceContents & { now: number },
): Buffer {
  // Not from Node's pool: the newest nonce is kept with its document and would keep 8 KiB of pool alive.
  const nonce = Buffer.allocUnsafeSlow(nonceBytes)
  nonce.writeUInt32BE(seq, 0)
  nonce.writeUIntBE(noBatchYet ? now + noBatchYetBit : now, seqBytes, 6)
  mac(key, documentId, nonce).copy(nonce, contentBytes, 0, macBytes)
  return nonce
}

export function readNonce({ key, documentId }: NonceScope, nonce: Buffer): NonceContents | undefined {
  if (nonce.length !== nonceBytes) return undefined
  const expected = mac(key, documentId, nonce).subarray(0, macBytes)
  if (!timingSafeEqual(expected, nonce.subarray(contentBytes))) return undefined
  return { seq: nonce.readUInt32BE(0), noBatchYet: nonce.readUIntBE(seqBytes, 6) >= noBatchYetBit }
}

function mac(key: KeyObject, documentId: string, nonce: Buffer): Buffer {
  const contents = nonce.toString('latin1', 0, contentBytes)
  return createHmac('sha256', key)
    .update(documentId + contents, 'latin1')
    .digest()
}
