import { createHmac, hash, type KeyObject } from 'node:crypto'
import type { LRUCache } from 'lru-cache'
import { bankNumbersOf, bankQuestion, challengeWithPart } from '../../infra/challenges/bank.ts'
import { canvasSeedOf } from '../../infra/challenges/challenges.ts'
import type { Keyring, MasterKey } from '../../infra/crypto/keyring.ts'
import { ApiError } from '../../infra/errors/errors.ts'
import type { DataKeys } from '../../infra/event-store/data-keys.ts'
import { createLru } from '../../infra/lru.ts'
import {
  type BodyKind,
  type EngineQuestion,
  sessionLifetimeMs,
} from '../../infra/wire/collect/protocol.ts'
import {
  agreeDocumentKeys,
  createServerKeys,
  type DocumentKeys,
  type ServerKeyPair,
  type ServerKeys,
} from './keys.ts'
import type { NonceContents } from './nonces.ts'
import { type DocumentFacts, type DocumentScope, openDocumentId } from './sealed-ids.ts'

export interface AcceptedBody extends NonceContents {
  kind: BodyKind
  bodyHash: string
  /** Epoch milliseconds. */
  receivedAt: number
}

/** Last body of a document, to tell a repeat from a replay. Holds no request or payload, to keep the cache small. */
export interface LastBody extends AcceptedBody {
  /** JSON response for repeats; undefined if it could not be built after the body was stored. */
  response: Promise<string> | undefined
}

export interface ServerDocument {
  scope: DocumentScope
  documentId: string
  documentIdHash: string
  facts: DocumentFacts
  master: MasterKey
  serverKeys: ServerKeyPair
  nonceKey: KeyObject
  /** undefined before the first body. */
  keys: DocumentKeys | undefined
  lastBody: LastBody | undefined
  /** See nonces.ts. */
  lastNonce: { nonce: Buffer; contents: NonceContents } | undefined
}

export interface DocumentCache {
  documents: LRUCache<string, ServerDocument>
  serverKeys: ServerKeys
}

const maxDocuments = 20_000

/** Creates the cache of the process. A miss costs a key agreement, and a repeated body is stored again. */
export function createDocumentCache(): DocumentCache {
  return { documents: createLru(maxDocuments), serverKeys: createServerKeys() }
}

export function createDocumentState(
  source: Pick<ServerDocument, 'documentId' | 'scope' | 'facts' | 'master'>,
  { serverKeys }: DocumentCache,
): ServerDocument {
  return {
    ...source,
    documentIdHash: hash('sha256', source.documentId, 'hex'),
    serverKeys: serverKeys(source.master, source.facts.openedAt),
    nonceKey: source.master.secretKey('collect-nonce'),
    keys: undefined,
    lastBody: undefined,
    lastNonce: undefined,
  }
}

/** Returns the document's keys, derived on first use: the first body may arrive at another node, or never. */
export function documentKeysOf(state: ServerDocument): DocumentKeys {
  const { documentId, scope } = state
  const { sessionId, clientPublicKey } = scope
  state.keys ??= agreeDocumentKeys(state.serverKeys.privateKey, {
    address: { sessionId, documentId },
    clientPublicKey,
  })
  return state.keys
}

export interface Challenges {
  challenge: string
  timingNonce: string
  canvasSeed: string
}

type ChallengedDocument = Pick<ServerDocument, 'master' | 'documentId' | 'facts'>

/** Derives a document's challenges from its id, so that a snapshot recorded for another document fails them. */
export function challengesOf({ master, documentId, facts }: ChallengedDocument): Challenges {
  const bytes = createHmac('sha512', master.secretKey('collect-challenges'))
    .update(documentId)
    .digest()
  const challenge = challengeWithPart(bytes.subarray(0, 16), facts.bankPart)
  const timingNonce = bytes.toString('base64url', 16, 32)
  return { challenge, timingNonce, canvasSeed: canvasSeedOf(challenge, facts.openedAt) }
}

/** Returns private engine questions of the deployment, which a page answers in its next body. Apps get none. */
export function privateQuestionsOf(document: ServerDocument): EngineQuestion[] {
  const { facts, master } = document
  if (facts.platform !== 'web') return []
  const { challenge } = challengesOf(document)
  return bankNumbersOf(challenge, facts.openedAt).map((number) => bankQuestion(number, master))
}

type ReadKeys = Pick<DataKeys, 'ensure' | 'get'>

/** Loads the session's data key. Returns false if there is none, because the session was erased. */
export async function hasDataKey(sessionId: string, keys: ReadKeys): Promise<boolean> {
  await keys.ensure([sessionId])
  return Boolean(keys.get(sessionId))
}

/** Throws 410 if the session was erased, as if it had expired. */
export async function checkNotErased(sessionId: string, keys: ReadKeys): Promise<void> {
  if (!(await hasDataKey(sessionId, keys))) throw sessionEnded()
}

function sessionEnded(): ApiError {
  return new ApiError('session.invalid_or_expired', { details: { next_action: 'new_session' } })
}

interface FindOptions {
  cache: DocumentCache
  keyring: Keyring
  now: number
}

/** Returns the document of a sealed id. Throws 410 if it belongs to another scope or its session has expired. */
export function findDocument(
  documentId: string,
  scope: DocumentScope,
  { cache, keyring, now }: FindOptions,
): ServerDocument {
  const cached = cache.documents.get(documentId)
  const state =
    cached && isSameScope(cached.scope, scope)
      ? cached
      : unsealDocument(documentId, scope, { cache, keyring })
  if (!state || now - state.facts.createdAt > sessionLifetimeMs) throw sessionEnded()
  if (state !== cached) cache.documents.set(documentId, state)
  return state
}

function unsealDocument(
  documentId: string,
  scope: DocumentScope,
  { cache, keyring }: Omit<FindOptions, 'now'>,
): ServerDocument | undefined {
  const contents = openDocumentId(documentId, scope, keyring)
  return contents && createDocumentState({ documentId, scope, ...contents }, cache)
}

function isSameScope(a: DocumentScope, b: DocumentScope): boolean {
  return (
    a.sessionId === b.sessionId &&
    a.clientPublicKey === b.clientPublicKey &&
    a.organizationId === b.organizationId &&
    a.environment === b.environment
  )
}
