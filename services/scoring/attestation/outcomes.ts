import { hash } from 'node:crypto'
import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import type { Part } from '../../../infra/postgres/arrays.ts'
import type { Tx } from '../../../infra/postgres/pool.ts'
import type { DocumentOpened, SessionAttestation, SessionOpened } from '../../../schemas/events.ts'
import { strongest } from '../session/attestation.ts'
import { readObservations } from '../session/observed.ts'
import {
  type Body,
  type DocumentState,
  isSessionEvent,
  type SessionEvent,
  type SessionState,
  withDocument,
} from '../session/state.ts'
import { type Attesting, deviceIdOf, type SentBy, wasCounted } from './devices.ts'
import { lockDevices, saveDevices } from './tables.ts'

interface Outcome {
  /** Of what was sent. */
  hash: string
  found: SessionAttestation
}

export interface AttestationOutcomes {
  /** By body; see `nameOf`. */
  outcomes: ReadonlyMap<string, Outcome>
  /** Writes what is then known of the devices. */
  save(): Part[]
}

const nothing: AttestationOutcomes = { outcomes: new Map(), save: () => [] }

/**
 * What the attestations in the events are worth, in their order. Costs no statement where there is none, and nothing where
 * no app may attest itself.
 */
export async function attestationsOf(
  tx: Tx,
  { events, known }: { events: RecordedEvent[]; known: Map<string, SessionState> },
  attesting: Attesting | undefined,
): Promise<AttestationOutcomes> {
  const sent = attesting ? sentIn(events.filter(isSessionEvent), known) : []
  if (!attesting || sent.length === 0) return nothing
  const devices = await lockDevices(tx, [...new Set(sent.map(deviceIdOf))])
  const changed = new Set<string>()
  const outcomes = new Map<string, Outcome>()
  for (const { body, hash, ...by } of sent) {
    const id = deviceIdOf(by)
    const before = devices.get(id)
    const found = await attesting.judge({ ...by, apps: attesting.apps, known: before })
    outcomes.set(body, { hash, found })
    if (!found.device || (before && wasCounted(before, by))) continue
    const { organization_id, session_id } = by.session
    devices.set(id, { ...found.device, organization_id, session_id })
    changed.add(id)
  }
  return { outcomes, save: () => saveDevices([...changed].flatMap((id) => devices.get(id) ?? [])) }
}

interface Sent extends SentBy {
  body: string
  hash: string
}

const nameOf = ({ document_id_hash, seq, body_hash }: Body) =>
  `${document_id_hash} ${seq} ${body_hash}`

// What is invalid stays so, which also bounds what a document can cost.
const isDone = (document: DocumentState | undefined, own: string) =>
  document?.attested === own || document?.attestation?.status === 'invalid'

// Only bodies of apps are read for it, and what a document has sent before is not looked at again.
function sentIn(events: SessionEvent[], known: Map<string, SessionState>): Sent[] {
  const openings = new Map<string, SessionOpened>()
  const documents = new Map<string, DocumentOpened>()
  const taken = new Set<string>()
  return events.flatMap((event) => {
    const { session_id } = event.data
    if (event.type === 'SessionOpened') openings.set(session_id, event.data)
    if (event.type === 'DocumentOpened') documents.set(event.data.document_id_hash, event.data)
    if (event.type !== 'BatchReceived' && event.type !== 'ResultRequested') return []
    const state = known.get(session_id)
    const platform = openings.get(session_id)?.platform ?? state?.platform ?? 'web'
    const sent = platform === 'web' ? undefined : readObservations(event.data.payload)?.attestation
    if (!sent) return []
    const { organization_id, environment, received_at: receivedAt, document_id_hash } = event.data
    const before = state?.documents.find(({ hash }) => hash === document_id_hash)
    const own = hash('sha256', JSON.stringify(sent), 'hex').slice(0, 32)
    const name = `${document_id_hash} ${own}`
    if (isDone(before, own) || taken.has(name)) return []
    taken.add(name)
    const session = { session_id, organization_id, environment, platform }
    const document = documents.get(document_id_hash) ?? before
    return [{ sent, session, document, receivedAt, body: nameOf(event.data), hash: own }]
  })
}

/** The state with what was found. It comes with the body that has the attestation, and stays as it is afterwards. */
export function withAttestations({ outcomes }: AttestationOutcomes) {
  return (state: SessionState, event: SessionEvent): SessionState => {
    if (event.type !== 'BatchReceived' && event.type !== 'ResultRequested') return state
    const outcome = outcomes.size > 0 ? outcomes.get(nameOf(event.data)) : undefined
    const document = state.documents.find(({ hash }) => hash === event.data.document_id_hash)
    if (!outcome || !document) return state
    const attestation = strongest(document.attestation, outcome.found)
    return {
      ...state,
      documents: withDocument(state.documents, {
        ...document,
        attestation,
        attested: outcome.hash,
      }),
    }
  }
}
