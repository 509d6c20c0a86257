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
import type { KnownDevice } from './tables.ts'

/** An attestation, and what it has to be of. */
export interface SentBy {
  sent: SentAttestation
  session: {
    session_id: string
    organization_id: string
    environment: Environment
    platform: Platform
  }
  /** undefined = its opening is not known. */
  document: Pick<DocumentState, 'challenge' | 'client_public_key' | 'opened_at'> | undefined
  /** Epoch milliseconds. */
  receivedAt: number
}

export interface AttestationEvidence extends SentBy {
  apps: AttestedApps
  known: KnownDevice | undefined
}

/** A function of what it is given, which throws nothing. Its libraries are loaded only where there are apps. */
export type Judge = (evidence: AttestationEvidence) => Promise<SessionAttestation>

export interface Attesting {
  apps: AttestedApps
  judge: Judge
}

/** No more than the one that counts: an app's id, and of App Attest its key and counter. */
export interface Verified {
  appId: string
  publicKey: string | null
  counter: number
}

/** The id of an app on a device, where that is genuine. */
export function deviceIdOf({ sent, session }: Pick<SentBy, 'sent' | 'session'>): string {
  const { organization_id, environment, platform } = session
  return derivedId('dev', organization_id, environment, platform, sent.key_id)
}

type Arrival = Pick<AttestationEvidence, 'session' | 'receivedAt'>

/**
 * Whether the device was counted as of then or later: partitions are scored in any order, and all of them again where a
 * database was lost.
 */
export function wasCounted(known: KnownDevice, { session, receivedAt }: Arrival): boolean {
  const isSame = known.session_id === session.session_id && known.last_seen_at === receivedAt
  return isSame || receivedAt < known.last_seen_at
}

/** Whether a counter is none that the key has had. */
export function isInOrder(
  counter: number,
  { known, ...arrival }: Arrival & { known: KnownDevice },
): boolean {
  if (!wasCounted(known, arrival)) return counter > known.counter
  return counter < known.counter || known.session_id === arrival.session.session_id
}

/** The device with the attestation counted. */
export function counted(
  { publicKey, counter }: Verified,
  { known, ...by }: AttestationEvidence,
): AttestedDevice {
  const { receivedAt, session } = by
  const id = deviceIdOf(by)
  if (!known)
    return {
      id,
      public_key: publicKey,
      counter,
      seen_count: 1,
      first_seen_at: receivedAt,
      last_seen_at: receivedAt,
    }
  const { organization_id: _, session_id: last, ...device } = known
  if (wasCounted(known, by)) return device
  const seen_count = device.seen_count + (last === session.session_id ? 0 : 1)
  return { ...device, public_key: publicKey, counter, last_seen_at: receivedAt, seen_count }
}
