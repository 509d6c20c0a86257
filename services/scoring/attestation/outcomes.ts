import { hash } from 'node:crypto'
import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import type { Cte } from '../../../infra/postgres/arrays.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import type { DocumentOpened, SessionAttestation, SessionOpened } from '../../../schemas/events.ts'
import { strongestAttestation } from '../session/attestation.ts'
import { readObservations } from '../session/observations.ts'
import {
  type Body,
  type DocumentState,
  isSessionEvent,
  type SessionEvent,
  type SessionState,
  withDocument,
} from '../session/state.ts'
import {
  type AttestationVerifier,
  deviceIdOf,
  isArrivalCounted,
  type ReceivedAttestation,
} from './devices.ts'
import { lockDevices, saveDevices } from './tables.ts'

interface AttestationOutcome {
  /** Hash of the sent attestation. */
  hash: string
  attestation: SessionAttestation
}

export interface AttestationOutcomes {
  /** By body key; see `bodyKeyOf`. */
  outcomes: ReadonlyMap<string, AttestationOutcome>
  /** Returns the writes of changed devices. */
  pendingWrites(): Cte[]
}

const noOutcomes: AttestationOutcomes = { outcomes: new Map(), pendingWrites: () => [] }

/**
 * Judges the attestations in the events, in order, and locks their devices. Runs no query if there are none or there is
 * no verifier.
 */
export async function judgeAttestations(
  tx: Tx,
  { events, states }: { events: RecordedEvent[]; states: Map<string, SessionState> },
  verifier: AttestationVerifier | undefined,
): Promise<AttestationOutcomes> {
  const received = verifier ? receivedIn(events.filter(isSessionEvent), states) : []
  if (!verifier || received.length === 0) return noOutcomes
  const devices = await lockDevices(tx, [...new Set(received.map(deviceIdOf))])
  const changed = new Set<string>()
  const outcomes = new Map<string, AttestationOutcome>()
  for (const { bodyKey, hash, ...arrival } of received) {
    const id = deviceIdOf(arrival)
    const stored = devices.get(id)
    const attestation = await verifier.judge({ ...arrival, apps: verifier.apps, stored })
    outcomes.set(bodyKey, { hash, attestation })
    if (!attestation.device || (stored && isArrivalCounted(stored, arrival))) continue
    const { organization_id, session_id } = arrival.session
    devices.set(id, { ...attestation.device, organization_id, session_id })
    changed.add(id)
  }
  const pendingWrites = () => saveDevices([...changed].flatMap((id) => devices.get(id) ?? []))
  return { outcomes, pendingWrites }
}

interface HashedAttestation extends ReceivedAttestation {
  bodyKey: string
  hash: string
}

const bodyKeyOf = ({ document_id_hash, seq, body_hash }: Body) =>
  `${document_id_hash} ${seq} ${body_hash}`

// A document with an invalid attestation stays invalid, which also limits how much work it can cause.
const isAlreadyJudged = (document: DocumentState | undefined, hash: string) =>
  document?.sent_attestation_hash === hash || document?.attestation?.status === 'invalid'

// Returns the attestations in bodies from apps, except repeated ones of the same document.
function receivedIn(
  events: SessionEvent[],
  states: Map<string, SessionState>,
): HashedAttestation[] {
  const openings = new Map<string, SessionOpened>()
  const documents = new Map<string, DocumentOpened>()
  const seen = new Set<string>()
  return events.flatMap((event) => {
    const { session_id } = event.data
    if (event.type === 'SessionOpened') openings.set(session_id, event.data)
    if (event.type === 'DocumentOpened') documents.set(event.data.document_id_hash, event.data)
    if (event.type !== 'BatchReceived' && event.type !== 'ResultRequested') return []
    const state = states.get(session_id)
    const platform = openings.get(session_id)?.platform ?? state?.platform ?? 'web'
    const sent = platform === 'web' ? undefined : readObservations(event.data.payload)?.attestation
    if (!sent) return []
    const { organization_id, environment, received_at: receivedAt, document_id_hash } = event.data
    const stored = state?.documents.find((document) => document.hash === document_id_hash)
    const sentHash = hash('sha256', JSON.stringify(sent), 'hex').slice(0, 32)
    const key = `${document_id_hash} ${sentHash}`
    if (isAlreadyJudged(stored, sentHash) || seen.has(key)) return []
    seen.add(key)
    const session = { session_id, organization_id, environment, platform }
    const document = documents.get(document_id_hash) ?? stored
    const bodyKey = bodyKeyOf(event.data)
    return [{ sent, session, document, receivedAt, bodyKey, hash: sentHash }]
  })
}

/** Returns a function that adds the outcome to a state to which the event with the attestation has been applied. */
export function createAttestationEnricher({ outcomes }: AttestationOutcomes) {
  return (state: SessionState, event: SessionEvent): SessionState => {
    if (event.type !== 'BatchReceived' && event.type !== 'ResultRequested') return state
    const outcome = outcomes.size > 0 ? outcomes.get(bodyKeyOf(event.data)) : undefined
    const document = state.documents.find(({ hash }) => hash === event.data.document_id_hash)
    if (!outcome || !document) return state
    const attestation = strongestAttestation(document.attestation, outcome.attestation)
    return {
      ...state,
      documents: withDocument(state.documents, {
        ...document,
        attestation,
        sent_attestation_hash: outcome.hash,
      }),
    }
  }
}
