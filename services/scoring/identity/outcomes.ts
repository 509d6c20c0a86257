import { sourceOf } from '../../../infra/access/source.ts'
import { namedAgent } from '../../../infra/agents/catalogue.ts'
import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import { isPublicAddressInFull, shortenedAddress } from '../../../infra/ip/network.ts'
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
import { retryMs, triedAt } from './lookups.ts'
import { type LookedUp, type LookupSubject, readLookups, takeNonces } from './tables.ts'
import type { LookupRequest, WaitingSession } from './waiting.ts'

/** A signature without an outcome by its key, and an address without a name. */
export interface Pending {
  signatures: { session: WaitingSession; documentHash: string; signed: SignedRequest }[]
  hosts: { session: WaitingSession; ip: string }[]
}

/**
 * What is pending of sessions whose documents were opened, or for which something was looked up. Host names are of
 * addresses whose agent has some by the catalogue.
 */
export function pendingOf(events: RecordedEvent[], known: Map<string, SessionState>): Pending {
  const relevant = events.filter(isSessionEvent).filter(mayBring)
  const lookedUp = relevant.flatMap((event) =>
    event.type === 'AgentLookedUp' ? (known.get(event.data.session_id) ?? []) : [],
  )
  const opened = relevant.flatMap((event) => (event.type === 'DocumentOpened' ? [event.data] : []))
  return {
    signatures: [...opened.flatMap(signatureIn), ...lookedUp.flatMap(signaturesOf)],
    hosts: [...opened, ...lookedUp].flatMap(hostIn),
  }
}

const mayBring = ({ type }: SessionEvent) => type === 'DocumentOpened' || type === 'AgentLookedUp'

function signatureIn({ document_id_hash: documentHash, signature, ...session }: DocumentOpened) {
  const signed = signature?.signed
  return signed ? [{ session: waiting(session), documentHash, signed }] : []
}

function signaturesOf({ documents, ...session }: SessionState): Pending['signatures'] {
  return documents.flatMap(({ hash, signature, signature_outcome: outcome }) => {
    const signed = signature?.signed
    const isPending = (outcome?.status ?? 'unknown_key') === 'unknown_key'
    return signed && isPending ? [{ session: waiting(session), documentHash: hash, signed }] : []
  })
}

type Visit = Omit<WaitingSession, 'source'> &
  Pick<SessionState, 'ip_address' | 'user_agent'> &
  Pick<Partial<SessionState>, 'host_name'>

function hostIn({ user_agent, host_name, ...session }: Visit): Pending['hosts'] {
  const { ip_address: ip } = session
  const hasNames = namedAgent(user_agent)?.reverse_dns !== undefined
  // A shortened address is another one.
  const isWhole = isPublicAddressInFull(ip) && shortenedAddress(ip) !== ip
  return hasNames && isWhole && host_name?.ip !== ip ? [{ session: waiting(session), ip }] : []
}

const waiting = ({
  session_id,
  organization_id,
  environment,
  ip_address,
}: Omit<Visit, 'user_agent'>) => ({
  session_id,
  organization_id,
  environment,
  source: sourceOf(ip_address),
})

export interface Outcomes {
  /** By hash of the document. */
  signatures: Map<string, SignatureOutcome>
  hosts: Map<string, HostOutcome>
  /** What there is no answer to yet. */
  requests: LookupRequest[]
}

/** Takes the nonces of valid signatures. Costs no statement where nothing is pending. */
export async function outcomesOf(
  tx: Pick<Tx, 'query'>,
  { signatures, hosts }: Pending,
  now: number,
): Promise<Outcomes> {
  const outcomes: Outcomes = { signatures: new Map(), hosts: new Map(), requests: [] }
  const subjects = [
    ...signatures.map(({ signed }) => signed.directory),
    ...hosts.map(({ ip }) => ip),
  ]
  if (subjects.length === 0) return outcomes
  const found = await readLookups(tx, [...new Set(subjects)], now)
  for (const { session, ip } of hosts) {
    const known = found.get(ip)
    if (known && 'host' in known.result) {
      outcomes.hosts.set(ip, { ip, host: known.result.host, fetchedAt: known.fetched_at })
    } else outcomes.requests.push({ session, ...dueOf(ip, known, now) })
  }
  const byKey = signatures.map((one) => ({
    ...one,
    ...judge(one.signed, found.get(one.signed.directory), now),
  }))
  const valid = byKey.filter(({ outcome }) => outcome.status === 'valid')
  const nonces = valid.map(({ signed: { nonce_hash, request_hash } }) => ({
    nonce_hash,
    request_hash,
    ends_at: now + nonceMs,
  }))
  const taken = await takeNonces(tx, nonces)
  for (const { session, documentHash, signed, outcome, isWaiting } of byKey) {
    const isReplayed =
      outcome.status === 'valid' && taken.get(signed.nonce_hash) !== signed.request_hash
    const replayed: SignatureOutcome = { ...outcome, status: 'invalid', reason: 'replayed' }
    outcomes.signatures.set(documentHash, isReplayed ? replayed : outcome)
    if (isWaiting)
      outcomes.requests.push({
        session,
        ...dueOf(signed.directory, found.get(signed.directory), now),
      })
  }
  return outcomes
}

// What failed, or lacked the key, is not fetched again at once.
function dueOf(subject: LookupSubject, known: LookedUp | undefined, now: number) {
  return { subject, dueAt: known ? Math.max(now, triedAt(known) + retryMs) : now }
}

interface ByKey {
  outcome: SignatureOutcome
  isWaiting: boolean
}

type Signed = Pick<SignedRequest, 'key_id' | 'bases' | 'bytes'>

/** What the directory's keys, as far as they are known, say of a signature. Whether it was used before is not asked. */
export function judge(signed: Signed, known: LookedUp | undefined, now: number): ByKey {
  const { key_id: keyId, bases, bytes } = signed
  const fetchedAt = known?.fetched_at ?? null
  const keys = known && 'keys' in known.result ? known.result.keys : undefined
  const unknown = (reason: string, isWaiting: boolean): ByKey => ({
    outcome: { status: 'unknown_key', reason, keyId, fetchedAt },
    isWaiting,
  })
  if (!keys) return unknown('directory', true)
  const key = Object.hasOwn(keys, keyId) ? keys[keyId] : undefined
  // The agent may have changed its keys since.
  if (!key || !isInForce(key, now)) return unknown('key', now - (fetchedAt ?? 0) >= retryMs)
  const signature = Buffer.from(bytes, 'base64')
  const isValid = bases.some((base) => isSignedBy(key.x, { base, bytes: signature }))
  const outcome: SignatureOutcome = isValid
    ? { status: 'valid', reason: null, keyId, fetchedAt }
    : { status: 'invalid', reason: 'signature', keyId, fetchedAt }
  return { outcome, isWaiting: false }
}

// Longer than any signature is good for, so that one is still known whose session is scored late.
const nonceMs = 48 * 60 * 60 * 1000

/** The state with what was found. Outcomes come with an opening or a look-up, and stay as they are afterwards. */
export function withOutcomes({ signatures, hosts }: Outcomes) {
  return (state: SessionState, event: SessionEvent): SessionState => {
    if (!mayBring(event) || signatures.size + hosts.size === 0) return state
    const host = hosts.get(state.ip_address)
    const documents = state.documents.map((document) => {
      const outcome = signatures.get(document.hash)
      return outcome ? { ...document, signature_outcome: outcome } : document
    })
    return { ...state, documents, ...(host && { host_name: host }) }
  }
}

/** The outcome of the document's signature; null where it had no header of Web Bot Auth. */
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

/** The host name of the session's address, whoever it is that has it; null = there is no answer. */
export function hostCheckOf({
  host_name,
  ip_address,
}: Pick<SessionState, 'host_name' | 'ip_address'>): HostCheck | null {
  return host_name?.ip === ip_address
    ? { host: host_name.host, fetchedAt: host_name.fetchedAt }
    : null
}
