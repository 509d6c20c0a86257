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
  countTrustedInputs,
  hasDeviceChanged,
  hasIdentityChanged,
  mergeSnapshot,
  readObservations,
} from './observations.ts'

export type SessionEvent =
  | { type: 'SessionOpened'; data: SessionOpened }
  | { type: 'DocumentOpened'; data: DocumentOpened }
  | { type: 'BatchReceived'; data: BatchReceived }
  | { type: 'ResultRequested'; data: ResultRequested }
  | { type: 'SessionIdled'; data: SessionIdled }
  | { type: 'AgentLookedUp'; data: AgentLookedUp }

/** Everything that scoring stores about a session. Plain JSON, at most a few tens of kilobytes. */
export interface SessionState {
  session_id: string
  organization_id: string
  environment: Environment
  platform: Platform
  /** Publishable key that opened the session. Missing if the session's opening is not known. */
  key_id?: string
  /** Missing if the session's opening is not known. */
  sdk?: { name: string; version: string } | null
  created_at: number
  /** Ids that the client presented. */
  continuity_ids: string[]
  /** Id that the client got when the session opened. */
  continuity_id: string | null
  /** Oldest first, limited to the latest `maxDocuments`. */
  documents: DocumentState[]
  snapshot: Snapshot | null
  snapshot_document: string | null
  behavior: Behavior | null
  /** Latest answers that followed a snapshot, with the hash of their document. */
  late_answers?: { document: string; answers: EngineAnswer[] }
  ip_address: string
  user_agent: string
  /** Number of accepted bodies. */
  batches: number
  /** Number of bodies that could not be read. */
  unreadable: number
  /** Number of bodies that reused the sequence number of a different body. */
  conflicts: number
  identity_changes: number
  /** True if the client presented an id or token that was issued to another device. */
  copied_id?: boolean
  /** Host name of the session's address. Missing until a lookup succeeds. */
  host_name?: HostOutcome
  /** Ids of processed AgentLookedUp events, so that a redelivered one changes nothing. */
  looked_up?: string[]
  last_activity_at: number
  /** Number of decisions. */
  decisions: number
  /** Verdict of the latest decision, based on the session alone. */
  verdict: Verdict | null
  final: boolean
  final_at: number | null
  /** Hash of the document with the latest hand-off. */
  hand_off_document?: string
  visitor: VisitorLink | null
  visitor_sessions: number
}

const sessionEventTypes = [
  'SessionOpened',
  'DocumentOpened',
  'BatchReceived',
  'ResultRequested',
  'SessionIdled',
  'AgentLookedUp',
]

export function isSessionEvent(event: RecordedEvent): event is RecordedEvent & SessionEvent {
  return sessionEventTypes.includes(event.type)
}

/**
 * Returns the state after an event, or the same object if the event changes nothing (a redelivered body). A session
 * whose state was deleted restarts from any event, because each event has its organization and environment.
 */
export function evolve(state: SessionState | undefined, event: SessionEvent): SessionState {
  switch (event.type) {
    case 'SessionOpened':
      return state ?? openedState(event.data)
    case 'DocumentOpened':
      return openDocument(state ?? emptyState(event.data, event.data.opened_at), event.data)
    case 'BatchReceived':
    case 'ResultRequested':
      return receiveBody(state ?? emptyState(event.data, event.data.received_at), event.data)
    case 'SessionIdled':
      return state ?? emptyState(event.data, event.data.idled_at)
    case 'AgentLookedUp':
      return addLookup(state ?? emptyState(event.data, event.data.looked_up_at), event.data)
  }
}

function openedState(event: SessionOpened): SessionState {
  return {
    ...emptyState(event, event.opened_at),
    platform: event.platform,
    key_id: event.key_id,
    sdk: { name: event.sdk_name, version: event.sdk_version },
    continuity_ids: event.continuity_ids,
    continuity_id: event.continuity_id,
  }
}

/** Returns the state of a session before any of its events. */
export function emptyState(
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

function openDocument(state: SessionState, event: DocumentOpened): SessionState {
  const document = openedDocument(event)
  const documents = withDocument(state.documents, document)
  return { ...state, documents, ip_address: document.ip_address, user_agent: event.user_agent }
}

function addLookup(state: SessionState, { event_id }: AgentLookedUp): SessionState {
  const { looked_up = [] } = state
  return looked_up.includes(event_id) ? state : { ...state, looked_up: [...looked_up, event_id] }
}

function receiveBody(state: SessionState, event: BatchReceived | ResultRequested): SessionState {
  const document = documentFor(state, event)
  const accepted = addBody(document, event)
  if (accepted === 'repeated') return state
  if (accepted === 'conflicting') return { ...state, conflicts: state.conflicts + 1 }
  // The response to the first batch asks the bank questions. After the next body or a hand-off, absent
  // answers count as missing.
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
  return addObservations(next, observations, accepted)
}

function documentFor(state: SessionState, event: BatchReceived | ResultRequested): DocumentState {
  return (
    state.documents.find((document) => document.hash === event.document_id_hash) ??
    unknownDocument(event)
  )
}

function addObservations(
  state: SessionState,
  observations: Observations,
  document: DocumentState,
): SessionState {
  const { snapshot, behavior, engine_answers: answers, binding = null } = observations
  const inputs = (document.inputs ?? 0) + (behavior ? countTrustedInputs(behavior) : 0)
  const next = {
    ...state,
    documents: withDocument(state.documents, { ...document, inputs, binding }),
  }
  if (snapshot) {
    next.snapshot = mergeSnapshot(state.snapshot, snapshot)
    next.snapshot_document = document.hash
    if (hasIdentityChanged(state.snapshot, snapshot)) next.identity_changes += 1
    if (hasDeviceChanged(state.snapshot, snapshot)) next.copied_id = true
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

/** Result of verifying a request's signature. `valid` means by a key in the agent's directory. */
export interface SignatureOutcome {
  status: 'valid' | 'invalid' | 'unknown_key' | 'absent'
  /** null if the signature is valid. */
  reason: string | null
  keyId: string | null
  /** Time when the directory was fetched, epoch milliseconds. */
  fetchedAt: number | null
}

export interface HostOutcome {
  ip: string
  /** Host name that resolves back to the address; null = there is none. */
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
  /** Missing if the request had no Web Bot Auth header. */
  signature?: DocumentSignature
  /** Missing until the signature was verified. */
  signature_outcome?: SignatureOutcome
  /** Only for documents of an app. */
  client_public_key?: string | null
  /** The attestation that counts; see `strongestAttestation`. */
  attestation?: SessionAttestation
  /** Hash of the last attestation sent, so that a repeated one counts once. */
  sent_attestation_hash?: string
  challenge: string
  timing_nonce: string
  /** Seed of the canvas drawing. Missing if the document's opening is not known. */
  canvas_seed?: string
  last_seq: number
  /** Prefix of the body hash by sequence number, for the latest bodies. */
  bodies: Record<string, string>
  /** True if a body followed the first batch, and should have answered the bank questions. */
  is_answered?: boolean
  /** Number of trusted input events. */
  inputs?: number
  /** `Observations.binding` of the document's latest hand-off. */
  binding?: string | null
}

const maxDocuments = 16
// The nonce enforces the order of bodies, so only the last few can be repeated.
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

// Returns the document with the body added. Only the first body of each sequence number counts.
function addBody(document: DocumentState, body: Body): DocumentState | 'repeated' | 'conflicting' {
  const hash = body.body_hash.slice(0, 16)
  const firstHash = document.bodies[body.seq]
  if (firstHash !== undefined) return firstHash === hash ? 'repeated' : 'conflicting'
  if (body.seq <= document.last_seq - maxBodies) return 'repeated'
  const bodies: Record<string, string> = { ...document.bodies, [body.seq]: hash }
  const latest = Object.entries(bodies).slice(-maxBodies)
  const last_seq = Math.max(document.last_seq, body.seq)
  return { ...document, last_seq, bodies: Object.fromEntries(latest) }
}

export function withDocument(documents: DocumentState[], document: DocumentState): DocumentState[] {
  if (!documents.some(({ hash }) => hash === document.hash))
    return [...documents, document].slice(-maxDocuments)
  return documents.map((old) => (old.hash === document.hash ? newerOf(old, document) : old))
}

// Ignores a redelivered opening, which would reset the bodies.
function newerOf(previous: DocumentState, next: DocumentState): DocumentState {
  return next.last_seq < previous.last_seq ? previous : next
}

// Postgres can't store U+0000, and a client's text may contain one.
function withoutNul(text: string): string {
  return text.replaceAll('\0', '')
}
