import type { SessionAttestation } from '../../../schemas/events.ts'
import type { SessionState } from './state.ts'

const ranks: readonly SessionAttestation['status'][] = ['unverified', 'valid', 'invalid']
const rankOf = ({ status }: SessionAttestation) => ranks.indexOf(status)

/** Returns the attestation that counts for a document. A later attestation can't replace an invalid one. */
export function strongestAttestation(
  previous: SessionAttestation | undefined,
  next: SessionAttestation,
): SessionAttestation {
  return previous && rankOf(previous) > rankOf(next) ? previous : next
}

/**
 * Returns the session's attestation: an invalid one if there is any, and a valid one only if every document that sent
 * bodies has one, so that a script can't take over the session of an attested app.
 */
export function attestationOf({
  documents,
}: Pick<SessionState, 'documents'>): SessionAttestation | null {
  const attestations = documents
    .filter(({ last_seq }) => last_seq > 0)
    .map(({ attestation }) => attestation)
  const latest = (status: SessionAttestation['status']) =>
    attestations.findLast((attestation) => attestation?.status === status)
  const isValid = attestations.every((attestation) => attestation?.status === 'valid')
  return latest('invalid') ?? (isValid ? latest('valid') : latest('unverified')) ?? null
}
