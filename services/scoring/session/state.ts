import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import type { EngineAnswer } from '../../../infra/wire/collect/protocol.ts'
import type {
  AgentLookedUp,
  BatchReceived,
  DocumentOpened,
  DocumentSignature,
  Environment,
  Platform,
  ResultRequested,
  SessionAttestation,
  SessionIdled,
  SessionOpened,
  Verdict,
  VisitorLink,
} from '../../../schemas/events.ts'
import type { Behavior, Observations, Snapshot } from '../../../schemas/observations.ts'
import {
  addBehavior,
  deviceChanged,
  identityChanged,
  mergeSnapshot,
  readObservations,
  trustedInputs,
} from './observed.ts'

export type SessionEvent =
  | { type: 'SessionOpened'; data: SessionOpened }
  | { type: 'DocumentOpened'; data: DocumentOpened }
  | { type: 'BatchReceived'; data: BatchReceived }
  | { type: 'ResultRequested'; data: ResultRequested }
  | { type: 'SessionIdled'; data: SessionIdled }
  | { type: 'AgentLookedUp'; data: AgentLookedUp }

/** All that scoring remembers about a session; plain JSON, at most some ten kilobytes. */
export interface SessionState {
  session_id: string
  organization_id: string
  environment: Environment
  platform: Platform
  /** The publishable key that opened it. Missing where the session's opening is not known. */
  key_id?: string
  /** Missing where the session's opening is not known. */
  sdk?: { name: string; version: string } | null
  created_at: number
  continuity_ids: string[]
  continuity_id: string | null
  /** Oldest first; the earliest of very many are forgotten. */
  documents: DocumentState[]
  snapshot: Snapshot | null
  snapshot_document: string | null
  behavior: Behavior | null
  /** The newest answers that came after a snapshot, with the hash of their document. */
  late_answers?: { document: string; answers: EngineAnswer[] }
  ip_address: string
  user_agent: string
  batches: number
  unreadable: number
  /** Second, different bodies for a sequence number that was already taken. */
  conflicts: number
  identity_changes: number
  /** It presents an id or a token that was issued to another device. */
  copied_id?: boolean
  /** What its address is called. Missing where nobody has looked, or DNS did not answer. */
  host_name?: HostOutcome
  /** Ids of events, so that one that comes again changes nothing. */
  looked_up?: string[]
  last_activity_at: number
  decisions: number
  /** The verdict of its newest decision, by the session's own observations. */
  verdict: Verdict | null
  final: boolean
  final_at: number | null
  /** Hash of the document that handed off last. */
  hand_off_document?: string
  visitor: VisitorLink | null
  visitor_sessions: number
}

const knownTypes = [
  'SessionOpened',
  'DocumentOpened',
  'BatchReceived',
  'ResultRequested',
  'SessionIdled',
  'AgentLookedUp',
]

export function isSessionEvent(event: RecordedEvent): event is RecordedEvent & SessionEvent {
  return knownTypes.includes(event.type)
}

/**
 * The state after one more event, or the same object when the event changes nothing (a redelivered body). A session
 * that was forgotten starts again from whatever event comes, since each names its organization and environment.
 */
export function evolve(known: SessionState | undefined, event: SessionEvent): SessionState {
  switch (event.type) {
    case 'SessionOpened':
      return known ?? opened(event.data)
    case 'DocumentOpened':
      return documentOpened(known ?? forgotten(event.data, event.data.opened_at), event.data)
    case 'BatchReceived':
    case 'ResultRequested':
      return received(known ?? forgotten(event.data, event.data.received_at), event.data)
    case 'SessionIdled':
      return known ?? forgotten(event.data, event.data.idled_at)
    case 'AgentLookedUp':
      return lookedUp(known ?? forgotten(event.data, event.data.looked_up_at), event.data)
  }
}

function opened(event: SessionOpened): SessionState {
  return {
    ...forgotten(event, event.opened_at),
    platform: event.platform,
    key_id: event.key_id,
    sdk: { name: event.sdk_name, version: event.sdk_version },
    continuity_ids: event.continuity_ids,
    continuity_id: event.continuity_id,
  }
}

/** The state of a session of which no event was read. */
export function forgotten(
  event: Pick<SessionOpened, 'session_id' | 'organization_id' | 'environment'>,
  at: number,
): SessionState {
  return {
    session_id: event.session_id,
    organization_id: event.organization_id,
    environment: event.environment,
    platform: 'web',
    created_at: at,
    continuity_ids: [],
    continuity_id: null,
    documents: [],
    snapshot: null,
    snapshot_document: null,
    behavior: null,
    ip_address: '',
    user_agent: '',
    batches: 0,
    unreadable: 0,
    conflicts: 0,
    identity_changes: 0,
    last_activity_at: at,
    decisions: 0,
    verdict: null,
    final: false,
    final_at: null,
    visitor: null,
    visitor_sessions: 0,
  }
}

function documentOpened(state: SessionState, event: DocumentOpened): SessionState {
  const document = openedDocument(event)
  const documents = withDocument(state.documents, document)
  return { ...state, documents, ip_address: document.ip_address, user_agent: event.user_agent }
}

function lookedUp(state: SessionState, { event_id }: AgentLookedUp): SessionState {
  const { looked_up = [] } = state
  return looked_up.includes(event_id) ? state : { ...state, looked_up: [...looked_up, event_id] }
}

function received(state: SessionState, event: BatchReceived | ResultRequested): SessionState {
  const document = documentOf(state, event)
  const accepted = addBody(document, event)
  if (accepted === 'repeated') return state
  if (accepted === 'conflicting') return { ...state, conflicts: state.conflicts + 1 }
  // Later questions are in the answer to a first batch, and a hand-off asks for the verdict.
  if (document.last_seq > 0 || 'decision_id' in event) accepted.is_answered = true
  const next: SessionState = {
    ...state,
    documents: withDocument(state.documents, accepted),
    batches: state.batches + 1,
    last_activity_at: Math.max(state.last_activity_at, event.received_at),
    ip_address: event.ip_address,
    user_agent: event.user_agent,
  }
  const observations = readObservations(event.payload)
  if (!observations) return { ...next, unreadable: next.unreadable + 1 }
  return observed(next, observations, accepted)
}

function documentOf(state: SessionState, event: BatchReceived | ResultRequested): DocumentState {
  return (
    state.documents.find((document) => document.hash === event.document_id_hash) ??
    unknownDocument(event)
  )
}

function observed(
  state: SessionState,
  observations: Observations,
  document: DocumentState,
): SessionState {
  const { snapshot, behavior, engine_answers: answers, binding = null } = observations
  const inputs = (document.inputs ?? 0) + (behavior ? trustedInputs(behavior) : 0)
  const next = {
    ...state,
    documents: withDocument(state.documents, { ...document, inputs, binding }),
  }
  if (snapshot) {
    next.snapshot = mergeSnapshot(state.snapshot, snapshot)
    next.snapshot_document = document.hash
    if (identityChanged(state.snapshot, snapshot)) next.identity_changes += 1
    if (deviceChanged(state.snapshot, snapshot)) next.copied_id = true
  }
  if (
    answers &&
    (next.late_answers?.document !== next.snapshot_document ||
      document.hash === next.snapshot_document)
  )
    next.late_answers = { document: document.hash, answers }
  if (behavior) next.behavior = addBehavior(state.behavior, behavior)
  return next
}

/** What became of the signature of a request. `valid` is by a key of the agent's directory. */
export interface SignatureOutcome {
  status: 'valid' | 'invalid' | 'unknown_key' | 'absent'
  /** Why it does not count. */
  reason: string | null
  keyId: string | null
  /** Epoch milliseconds: when the directory was fetched. */
  fetchedAt: number | null
}

export interface HostOutcome {
  ip: string
  /** The name that leads back to the address; null = there is none. */
  host: string | null
  /** Epoch milliseconds. */
  fetchedAt: number
}

export interface DocumentState {
  hash: string
  opened_at: number
  url: string
  referrer: string | null
  user_agent: string
  ip_address: string
  accept_language: string | null
  client_hints: Record<string, string>
  header_order: string[]
  signature_agent: string | null
  ja4: string | null
  http2_fingerprint: string | null
  /** Missing where the request had no header of Web Bot Auth. */
  signature?: DocumentSignature
  /** By its key, once that is known. */
  signature_outcome?: SignatureOutcome
  /** Of a document of an app. */
  client_public_key?: string | null
  /** The worst of what it sent. */
  attestation?: SessionAttestation
  /** Hash of what was sent, so that the same counts once. */
  attested?: string
  challenge: string
  timing_nonce: string
  /** Seed of the drawing. Missing where the document's opening is not known. */
  canvas_seed?: string
  last_seq: number
  /** Start of the body hash by sequence number, for the newest ones. */
  bodies: Record<string, string>
  /** A body came after its first batch, and with it whatever the client answers to later questions. */
  is_answered?: boolean
  /** Trusted input that it reported. */
  inputs?: number
  /** See `Observations.binding`: of the document's newest hand-off. */
  binding?: string | null
}

const maxDocuments = 16
// Order is enforced by the nonce, so a repeat is of one of the last few bodies.
const maxBodies = 32

export type Body = Pick<BatchReceived | ResultRequested, 'document_id_hash' | 'seq' | 'body_hash'>

function openedDocument(event: DocumentOpened): DocumentState {
  return {
    hash: event.document_id_hash,
    opened_at: event.opened_at,
    url: withoutNul(event.url),
    referrer: event.referrer === null ? null : withoutNul(event.referrer),
    user_agent: event.user_agent,
    ip_address: event.ip_address,
    accept_language: event.accept_language,
    client_hints: event.client_hints,
    header_order: event.header_order,
    signature_agent: event.signature_agent,
    ja4: event.ja4,
    http2_fingerprint: event.http2_fingerprint,
    ...(event.signature && { signature: event.signature }),
    ...(event.client_public_key !== null && { client_public_key: event.client_public_key }),
    challenge: event.challenge,
    timing_nonce: event.timing_nonce,
    canvas_seed: event.canvas_seed,
    last_seq: 0,
    bodies: {},
  }
}

function unknownDocument(event: BatchReceived | ResultRequested): DocumentState {
  return {
    hash: event.document_id_hash,
    opened_at: event.received_at,
    url: '',
    referrer: null,
    user_agent: event.user_agent,
    ip_address: event.ip_address,
    accept_language: null,
    client_hints: {},
    header_order: [],
    signature_agent: null,
    ja4: null,
    http2_fingerprint: null,
    challenge: '',
    timing_nonce: '',
    last_seq: 0,
    bodies: {},
  }
}

// The document with the body counted; the first body of a sequence number is the one that counts.
function addBody(document: DocumentState, body: Body): DocumentState | 'repeated' | 'conflicting' {
  const hash = body.body_hash.slice(0, 16)
  const taken = document.bodies[body.seq]
  if (taken !== undefined) return taken === hash ? 'repeated' : 'conflicting'
  if (body.seq <= document.last_seq - maxBodies) return 'repeated'
  const bodies: Record<string, string> = { ...document.bodies, [body.seq]: hash }
  const newest = Object.entries(bodies).slice(-maxBodies)
  const last_seq = Math.max(document.last_seq, body.seq)
  return { ...document, last_seq, bodies: Object.fromEntries(newest) }
}

export function withDocument(documents: DocumentState[], document: DocumentState): DocumentState[] {
  const known = documents.some(({ hash }) => hash === document.hash)
  if (known)
    return documents.map((one) => (one.hash === document.hash ? keepBodies(one, document) : one))
  return [...documents, document].slice(-maxDocuments)
}

// A redelivered opening must not make counted bodies count again.
function keepBodies(known: DocumentState, next: DocumentState): DocumentState {
  return next.last_seq < known.last_seq ? known : next
}

// Postgres cannot store U+0000, and a client's text may have one.
function withoutNul(text: string): string {
  return text.replaceAll('\0', '')
}
