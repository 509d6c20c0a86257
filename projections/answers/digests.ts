import { createHmac, hash, type KeyObject } from 'node:crypto'
import { networkPrefix } from '../../infra/ip/network.ts'
import { memoize } from '../../infra/lru.ts'

// Clients can send any text as a class or answer, and the log is never deleted, so it stores only these hashes.
export const classDigest = memoize(2000, (name: string) => digest('class', name))
export const answerDigest = memoize(20_000, (answer: string) => digest('answer', answer))

/** Pseudo-question. Its class is a TLS fingerprint, its answer the engine in the user agent. */
export const handshakeQuestion = 'handshake'

export const digestKeyPrefix = 'answers_'
/** Returns the id of the data key for `visitorDigests`. Each month has its own key, which is deleted afterwards. */
export const digestKeyId = (now: number): string =>
  `${digestKeyPrefix}${new Date(now).toISOString().slice(0, 7)}`

/** Returns undefined if the IP address is missing or invalid. */
export function visitorDigests(
  key: KeyObject,
  {
    organization_id,
    visitorId,
    ipAddress,
  }: { organization_id: string; visitorId: string; ipAddress: string | null },
): { visitor_digest: string; network_digest: string } | undefined {
  const network = networkPrefix(ipAddress ?? '')
  if (network === null) return undefined
  const keyedDigest = (...parts: string[]) =>
    createHmac('sha256', key).update(parts.join('\0')).digest('hex').slice(0, 16)
  return {
    visitor_digest: keyedDigest('visitor', organization_id, visitorId),
    network_digest: keyedDigest('network', network),
  }
}

function digest(...parts: string[]): string {
  return hash('sha256', parts.join('\0'), 'base64url').slice(0, 12)
}
