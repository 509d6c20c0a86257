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
  /** See nonces.ts. */
  issued: { nonce: Buffer; contents: NonceContents } | undefined
}

export interface DocumentCache {
  documents: LRUCache<string, ServerDocument>
  serverKeys: ServerKeys
}

const maxDocuments = 20_000

/** Losing a document costs a key agreement, and storing a repeat once more. */
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
    last: undefined,
    issued: undefined,
  }
}

/** The document's keys, agreed when its first body comes, because that may come to another node, or never. */
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

/** Derives what keys a document's answers and chooses its questions, so that an old snapshot does not pass for new. */
export function challengesOf({ master, documentId, facts }: ChallengedDocument): Challenges {
  const bytes = createHmac('sha512', master.secretKey('collect-challenges'))
    .update(documentId)
    .digest()
  const challenge = challengeWithPart(bytes.subarray(0, 16), facts.part)
  const timingNonce = bytes.toString('base64url', 16, 32)
  return { challenge, timingNonce, canvasSeed: canvasSeedOf(challenge, facts.openedAt) }
}

/** The deployment's own questions, which a page answers with its next body. Apps are asked none. */
export function ownQuestionsOf(document: ServerDocument): EngineQuestion[] {
  const { facts, master } = document
  if (facts.platform !== 'web') return []
  const { challenge } = challengesOf(document)
  return bankNumbersOf(challenge, facts.openedAt).map((number) => bankQuestion(number, master))
}

type ReadKeys = Pick<DataKeys, 'ensure' | 'get'>

/** Whether the session may record something: its data key is in memory then. An erased session has none any more. */
export async function hasDataKey(sessionId: string, keys: ReadKeys): Promise<boolean> {
  await keys.ensure([sessionId])
  return Boolean(keys.get(sessionId))
}

/** Throws 410 for an erased session, as for one that has expired. */
export async function checkNotErased(sessionId: string, keys: ReadKeys): Promise<void> {
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

/** The document by its sealed id. Throws 410 where it is another scope's, or has ended. */
export function findDocument(
  documentId: string,
  scope: DocumentScope,
  { cache, keyring, now }: FindOptions,
): ServerDocument {
  const known = cache.documents.get(documentId)
  const state =
    known && isSameScope(known.scope, scope)
      ? known
      : openState(documentId, scope, { cache, keyring })
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

function isSameScope(one: DocumentScope, other: DocumentScope): boolean {
  return (
    one.sessionId === other.sessionId &&
    one.clientPublicKey === other.clientPublicKey &&
    one.organizationId === other.organizationId &&
    one.environment === other.environment
  )
}
