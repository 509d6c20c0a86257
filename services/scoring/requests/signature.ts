import { checkSignature } from '../../../infra/wire/web-bot-auth/check.ts'
import {
  type ReceivedRequest,
  signatureAgentHost,
} from '../../../infra/wire/web-bot-auth/fields.ts'
import { verifyWithDirectory } from '../identity/outcomes.ts'
import type { StoredLookup } from '../identity/tables.ts'
import type { SignatureCheck, TrustedDirectory } from '../session/identity.ts'

export interface SignatureContext {
  /** Returns the fetched key directory at a URL. */
  findDirectory: (url: string) => StoredLookup | undefined
  /** Returns null if the caller's organization does not trust the domain's directory. */
  findTrusted: (domain: string) => TrustedDirectory | null
  maxLifetimeMs: number
  /** Epoch milliseconds. */
  now: number
}

export interface EdgeSignature {
  /** Host of the agent's key directory; null if no Signature-Agent header names one. */
  domain: string | null
  /** null if the request has no Web Bot Auth header. */
  signature: SignatureCheck | null
}

/** Verifies the request's signature with keys in memory. Doesn't check for replays. */
export function readSignature(
  request: ReceivedRequest,
  { baseUrl, findDirectory, findTrusted, ...rules }: SignatureContext & { baseUrl: string },
): EdgeSignature {
  const checked = checkSignature(request, { ...rules, baseUrls: [baseUrl] })
  if (!checked) return { domain: null, signature: null }
  if (checked.status !== 'signed') {
    const reason = 'reason' in checked ? checked.reason : null
    const domain = signatureAgentHost(request)
    const trusted = domain === null ? null : findTrusted(domain)
    const { status } = checked
    return { domain, signature: { trusted, keyId: null, fetchedAt: null, status, reason } }
  }
  const { agent, keyId: key_id, bases, bytes, directory: url } = checked.signature
  const signed = { key_id, bases, bytes: bytes.toString('base64') }
  const { outcome } = verifyWithDirectory(signed, findDirectory(url), rules.now)
  return { domain: agent, signature: { ...outcome, trusted: findTrusted(agent) } }
}
