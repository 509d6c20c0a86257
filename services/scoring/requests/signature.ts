import { checkSignature } from '../../../infra/wire/web-bot-auth/check.ts'
import { namedAgentHost, type ReceivedRequest } from '../../../infra/wire/web-bot-auth/fields.ts'
import { judge } from '../identity/outcomes.ts'
import type { LookedUp } from '../identity/tables.ts'
import type { SignatureCheck, TrustedDirectory } from '../session/identity.ts'

export interface SignatureKnowledge {
  /** What is known of a directory of keys, by its address. */
  directory: (url: string) => LookedUp | undefined
  /** Whether the caller's organization trusts the directory of a domain. */
  trusted: (domain: string) => TrustedDirectory | null
  maxLifetimeMs: number
  /** Epoch milliseconds. */
  now: number
}

export interface SignedBy {
  /** Host of the agent's directory; null without a Signature-Agent that names one. */
  domain: string | null
  /** Null without any header of Web Bot Auth. */
  signature: SignatureCheck | null
}

/** Whose signature a request to `baseUrl` has, by keys that are in memory. Whether it was used before is not known. */
export function signedBy(
  request: ReceivedRequest,
  { baseUrl, directory, trusted, ...rules }: SignatureKnowledge & { baseUrl: string },
): SignedBy {
  const checked = checkSignature(request, { ...rules, baseUrls: [baseUrl] })
  if (!checked) return { domain: null, signature: null }
  if (checked.status !== 'signed') {
    const reason = 'reason' in checked ? checked.reason : null
    const domain = namedAgentHost(request)
    const known = {
      trusted: domain === null ? null : trusted(domain),
      keyId: null,
      fetchedAt: null,
    }
    return { domain, signature: { ...known, status: checked.status, reason } }
  }
  const { agent, keyId: key_id, bases, bytes, directory: url } = checked.signature
  const signed = { key_id, bases, bytes: bytes.toString('base64') }
  const { outcome } = judge(signed, directory(url), rules.now)
  return { domain: agent, signature: { ...outcome, trusted: trusted(agent) } }
}
