import { derivedId } from '../../../infra/ids.ts'
import type {
  AttestedDevice,
  Environment,
  Platform,
  SessionAttestation,
} from '../../../schemas/events.ts'
import type { SentAttestation } from '../../../schemas/observations.ts'
import type { DocumentState } from '../session/state.ts'
import type { AttestedApps } from './apps.ts'
import type { StoredDevice } from './tables.ts'

/** An attestation, and the session and document that it must be bound to. */
export interface ReceivedAttestation {
  sent: SentAttestation
  session: {
    session_id: string
    organization_id: string
    environment: Environment
    platform: Platform
  }
  /** undefined = no event about the opening of the document has been scored. */
  document: Pick<DocumentState, 'challenge' | 'client_public_key' | 'opened_at'> | undefined
  /** Epoch milliseconds. */
  receivedAt: number
}

export interface AttestationEvidence extends ReceivedAttestation {
  apps: AttestedApps
  /** The device before this attestation. */
  stored: StoredDevice | undefined
}

/** Judges an attestation. Pure, never throws. The implementation and its libraries load only if apps are configured. */
export type JudgeAttestation = (evidence: AttestationEvidence) => Promise<SessionAttestation>

export interface AttestationVerifier {
  apps: AttestedApps
  judge: JudgeAttestation
}

export interface VerifiedAttestation {
  appId: string
  /** Set for App Attest only. */
  publicKey: string | null
  /** 0 for Play Integrity. */
  counter: number
}

/** Returns the id of an app installation on a device. */
export function deviceIdOf({
  sent,
  session,
}: Pick<ReceivedAttestation, 'sent' | 'session'>): string {
  const { organization_id, environment, platform } = session
  return derivedId('dev', organization_id, environment, platform, sent.key_id)
}

type Arrival = Pick<AttestationEvidence, 'session' | 'receivedAt'>

/**
 * Returns true if the device's counts already include this attestation or a later one. Partitions are scored in any
 * order, and after the loss of a database all records are scored again.
 */
export function isArrivalCounted(stored: StoredDevice, { session, receivedAt }: Arrival): boolean {
  const isSame = stored.session_id === session.session_id && stored.last_seen_at === receivedAt
  return isSame || receivedAt < stored.last_seen_at
}

/** Returns true if the key cannot have used this counter before. */
export function isPlausibleCounter(
  counter: number,
  { stored, ...arrival }: Arrival & { stored: StoredDevice },
): boolean {
  if (!isArrivalCounted(stored, arrival)) return counter > stored.counter
  return counter < stored.counter || stored.session_id === arrival.session.session_id
}

/** Returns the device with the attestation counted. */
export function countedDevice(
  { publicKey, counter }: VerifiedAttestation,
  { stored, ...received }: AttestationEvidence,
): AttestedDevice {
  const { receivedAt, session } = received
  const id = deviceIdOf(received)
  if (!stored)
    return {
      id,
      public_key: publicKey,
      counter,
      seen_count: 1,
      first_seen_at: receivedAt,
      last_seen_at: receivedAt,
    }
  const { organization_id: _, session_id: lastSessionId, ...device } = stored
  if (isArrivalCounted(stored, received)) return device
  const seen_count = device.seen_count + (lastSessionId === session.session_id ? 0 : 1)
  return { ...device, public_key: publicKey, counter, last_seen_at: receivedAt, seen_count }
}
