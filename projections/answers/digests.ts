import { createHmac, hash, type KeyObject } from 'node:crypto'
import { networkPrefix } from '../../infra/ip/network.ts'
import { memoized } from '../../infra/lru.ts'

/**
 * A client can fill classes and answers with texts of its own. The log has hashes of them, because it is never
 * deleted.
 */
export const classDigest = memoized(2000, (name: string) => digest('class', name))
export const answerDigest = memoized(20_000, (answer: string) => digest('answer', answer))

/** Engines are learned by it as answers are: the class is the handshake, and the answer is what the user agent names. */
export const handshakeQuestion = 'handshake'

/** Names the data key that visitors and networks of a month are counted under. It is deleted after the month. */
export const countingKeyId = (now: number): string =>
  `${countingKeyPrefix}${new Date(now).toISOString().slice(0, 7)}`
export const countingKeyPrefix = 'answers_'

/** undefined for an address without a network. */
export function countedDigests(
  key: KeyObject,
  {
    organization_id,
    visitorId,
    ipAddress,
  }: { organization_id: string; visitorId: string; ipAddress: string | null },
): { visitor_digest: string; network_digest: string } | undefined {
  const network = networkPrefix(ipAddress ?? '')
  if (network === null) return undefined
  const under = (...parts: string[]) =>
    createHmac('sha256', key).update(parts.join('\0')).digest('hex').slice(0, 16)
  return {
    visitor_digest: under('visitor', organization_id, visitorId),
    network_digest: under('network', network),
  }
}

function digest(...parts: string[]): string {
  return hash('sha256', parts.join('\0'), 'base64url').slice(0, 12)
}
