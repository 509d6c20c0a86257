import { sourceOf } from '../../../infra/access/source.ts'
import { agentOfUserAgent } from '../../../infra/agents/catalogue.ts'
import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import { isCanonicalPublicAddress, shortenedAddress } from '../../../infra/ip/network.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import { isInForce, isSignedBy } from '../../../infra/wire/web-bot-auth/keys.ts'
import type { DocumentOpened, SignedRequest } from '../../../schemas/events.ts'
import type { HostCheck } from '../session/identity.ts'
import {
  type HostOutcome,
  isSessionEvent,
  type SessionEvent,
  type SessionState,
  type SignatureOutcome,
} from '../session/state.ts'
import type { LookupRequest, WaitingSession } from './lookup-queue.ts'
import { lastAttemptAt, lookupRetryMs } from './lookups.ts'
import { type LookupSubject, readLookups, recordNonces, type StoredLookup } from './tables.ts'

/** Signatures to verify and addresses to look up. */
export interface PendingLookups {
  signatures: { session: WaitingSession; documentHash: string; signed: SignedRequest }[]
  hosts: { session: WaitingSession; ip: string }[]
}

/**
 * Returns the pending lookups of opened documents, and of sessions that waited for a lookup. A host name is needed only
 * if the catalogue lists host names for the claimed agent.
 */
export function pendingLookups(
  events: RecordedEvent[],
  states: Map<string, SessionState>,
): PendingLookups {
  const relevant = events.filter(isSessionEvent).filter(canResolveIdentity)
  const lookedUp = relevant.flatMap((event) =>
    event.type === 'AgentLookedUp' ? (states.get(event.data.session_id) ?? []) : [],
  )
  const opened = relevant.flatMap((event) => (event.type === 'DocumentOpened' ? [event.data] : []))
  return {
    signatures: [...opened.flatMap(pendingSignatureOf), ...lookedUp.flatMap(pendingSignatures)],
    hosts: [...opened, ...lookedUp].flatMap(hostFor),
  }
}

const canResolveIdentity = ({ type }: SessionEvent) =>
  type === 'DocumentOpened' || type === 'AgentLookedUp'

function pendingSignatureOf({ document_id_hash: hash, signature, ...session }: DocumentOpened) {
  const signed = signature?.signed
  return signed ? [{ session: waitingSession(session), documentHash: hash, signed }] : []
}

function pendingSignatures({ documents, ...session }: SessionState): PendingLookups['signatures'] {
  return documents.flatMap(({ hash, signature, signature_outcome: outcome }) => {
    const signed = signature?.signed
    const isPending = (outcome?.status ?? 'unknown_key') === 'unknown_key'
    if (!signed || !isPending) return []
    return [{ session: waitingSession(session), documentHash: hash, signed }]
  })
}

type SessionAddress = Omit<WaitingSession, 'source'> &
  Pick<SessionState, 'ip_address' | 'user_agent'> &
  Pick<Partial<SessionState>, 'host_name'>

function hostFor({ user_agent, host_name, ...session }: SessionAddress): PendingLookups['hosts'] {
  const { ip_address: ip } = session
  const publishesNames = agentOfUserAgent(user_agent)?.reverse_dns !== undefined
  // A shortened address may belong to somebody else.
  const isFullAddress = isCanonicalPublicAddress(ip) && shortenedAddress(ip) !== ip
  if (!publishesNames || !isFullAddress || host_name?.ip === ip) return []
  return [{ session: waitingSession(session), ip }]
}

function waitingSession(session: Omit<SessionAddress, 'user_agent'>): WaitingSession {
  const { session_id, organization_id, environment, ip_address } = session
  return { session_id, organization_id, environment, source: sourceOf(ip_address) }
}

export interface LookupOutcomes {
  /** By document hash. */
  signatures: Map<string, SignatureOutcome>
  /** By IP address. */
  hosts: Map<string, HostOutcome>
  /** Lookups that have no result yet. */
  requests: LookupRequest[]
}

/**
 * Resolves lookups from stored results, and records the nonces of valid signatures. Runs no query if none is pending.
 */
export async function resolveLookups(
  tx: Pick<Tx, 'query'>,
  { signatures, hosts }: PendingLookups,
  now: number,
): Promise<LookupOutcomes> {
  const outcomes: LookupOutcomes = { signatures: new Map(), hosts: new Map(), requests: [] }
  const subjects = [
    ...signatures.map(({ signed }) => signed.directory),
    ...hosts.map(({ ip }) => ip),
  ]
  if (subjects.length === 0) return outcomes
  const lookups = await readLookups(tx, [...new Set(subjects)], now)
  for (const { session, ip } of hosts) {
    const lookup = lookups.get(ip)
    if (lookup && 'host' in lookup.result) {
      outcomes.hosts.set(ip, { ip, host: lookup.result.host, fetchedAt: lookup.fetched_at })
    } else outcomes.requests.push({ session, ...dueOf(ip, lookup, now) })
  }
  const verified = signatures.map((signature) => ({
    ...signature,
    ...verifyWithDirectory(signature.signed, lookups.get(signature.signed.directory), now),
  }))
  const valid = verified.filter(({ outcome }) => outcome.status === 'valid')
  const nonces = valid.map(({ signed: { nonce_hash, request_hash } }) => ({
    nonce_hash,
    request_hash,
    ends_at: now + nonceLifetimeMs,
  }))
  const firstRequests = await recordNonces(tx, nonces)
  for (const { session, documentHash, signed, outcome, needsFetch } of verified) {
    const isReplayed =
      outcome.status === 'valid' && firstRequests.get(signed.nonce_hash) !== signed.request_hash
    const replayed: SignatureOutcome = { ...outcome, status: 'invalid', reason: 'replayed' }
    outcomes.signatures.set(documentHash, isReplayed ? replayed : outcome)
    if (needsFetch)
      outcomes.requests.push({
        session,
        ...dueOf(signed.directory, lookups.get(signed.directory), now),
      })
  }
  return outcomes
}

// Delays the retry of a lookup that failed or lacked the key.
function dueOf(subject: LookupSubject, lookup: StoredLookup | undefined, now: number) {
  return { subject, dueAt: lookup ? Math.max(now, lastAttemptAt(lookup) + lookupRetryMs) : now }
}

interface Verification {
  outcome: SignatureOutcome
  /** True if fetching the directory again may reveal the key. */
  needsFetch: boolean
}

/** Verifies a signature with the directory's keys, if they were fetched. Doesn't check for replays. */
export function verifyWithDirectory(
  { key_id: keyId, bases, bytes }: Pick<SignedRequest, 'key_id' | 'bases' | 'bytes'>,
  lookup: StoredLookup | undefined,
  now: number,
): Verification {
  const fetchedAt = lookup?.fetched_at ?? null
  const keys = lookup && 'keys' in lookup.result ? lookup.result.keys : undefined
  const unknown = (reason: string, needsFetch: boolean): Verification => ({
    outcome: { status: 'unknown_key', reason, keyId, fetchedAt },
    needsFetch,
  })
  if (!keys) return unknown('directory', true)
  const key = Object.hasOwn(keys, keyId) ? keys[keyId] : undefined
  // The agent may have rotated its keys since the fetch.
  if (!key || !isInForce(key, now)) return unknown('key', now - (fetchedAt ?? 0) >= lookupRetryMs)
  const signature = Buffer.from(bytes, 'base64')
  const isValid = bases.some((base) => isSignedBy(key.x, { base, bytes: signature }))
  const outcome: SignatureOutcome = isValid
    ? { status: 'valid', reason: null, keyId, fetchedAt }
    : { status: 'invalid', reason: 'signature', keyId, fetchedAt }
  return { outcome, needsFetch: false }
}

// Longer than the lifetime of any signature, so that replays are detected even if scoring lags.
const nonceLifetimeMs = 48 * 60 * 60 * 1000

/** Returns a function that adds the outcomes to a session's state after a document opens or a lookup completes. */
export function createLookupEnricher({ signatures, hosts }: LookupOutcomes) {
  return (state: SessionState, event: SessionEvent): SessionState => {
    if (!canResolveIdentity(event) || signatures.size + hosts.size === 0) return state
    const host = hosts.get(state.ip_address)
    const documents = state.documents.map((document) => {
      const outcome = signatures.get(document.hash)
      return outcome ? { ...document, signature_outcome: outcome } : document
    })
    return { ...state, documents, ...(host && { host_name: host }) }
  }
}

/** Returns the outcome of the document's signature, or null if its request had no Web Bot Auth header. */
export function signatureOutcomeOf({
  signature,
  signature_outcome: outcome,
}: Pick<
  SessionState['documents'][number],
  'signature' | 'signature_outcome'
>): SignatureOutcome | null {
  if (!signature) return null
  if (outcome) return outcome
  const { status, reason, signed } = signature
  if (status !== 'signed') return { status, reason, keyId: null, fetchedAt: null }
  return {
    status: 'unknown_key',
    reason: 'directory',
    keyId: signed?.key_id ?? null,
    fetchedAt: null,
  }
}

/** Returns the verified host name of the session's address, or null if there is no lookup result yet. */
export function hostCheckOf({
  host_name,
  ip_address,
}: Pick<SessionState, 'host_name' | 'ip_address'>): HostCheck | null {
  return host_name?.ip === ip_address
    ? { host: host_name.host, fetchedAt: host_name.fetchedAt }
    : null
}
