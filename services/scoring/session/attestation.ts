import type { SessionAttestation } from '../../../schemas/events.ts'
import type { SessionState } from './state.ts'

const ranks: readonly SessionAttestation['status'][] = ['unverified', 'valid', 'invalid']
const rankOf = ({ status }: SessionAttestation) => ranks.indexOf(status)

/** Of two attestations of a document the one that counts. No later one makes up for one that is invalid. */
export function strongest(
  known: SessionAttestation | undefined,
  next: SessionAttestation,
): SessionAttestation {
  return known && rankOf(known) > rankOf(next) ? known : next
}

/**
 * What the session's attestations say together. It is valid where each document that sent something is, so that a script
 * cannot go on with the session of an attested app; null where one of them has none.
 */
export function attestationOf({
  documents,
}: Pick<SessionState, 'documents'>): SessionAttestation | null {
  const found = documents
    .filter(({ last_seq }) => last_seq > 0)
    .map(({ attestation }) => attestation)
  const of = (status: SessionAttestation['status']) =>
    found.findLast((one) => one?.status === status)
  const isValid = found.every((one) => one?.status === 'valid')
  return of('invalid') ?? (isValid ? of('valid') : of('unverified')) ?? null
}
