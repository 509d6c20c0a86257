import {
  agentOfDomain,
  type CatalogueEntry,
  isHostOf,
  isListOf,
  listOf,
  namedAgent,
} from '../../../infra/agents/catalogue.ts'
import {
  isPublicAddressInFull,
  type NetworkSource,
  plainAddress,
} from '../../../infra/ip/network.ts'
import type { AgentEvidence, SessionAgent } from '../../../schemas/events.ts'
import type { HostOutcome, SignatureOutcome } from './state.ts'

/** Whose addresses are known, by lists that operators publish. */
export type PublishedRanges = Pick<NetworkSource, 'botOperatorAt' | 'listedOperators'>

/** The host name that leads back to the address, whosever it is. Null = there is no answer yet. */
export type HostCheck = Omit<HostOutcome, 'ip'>

/** A directory of keys that the organization trusts. */
export interface TrustedDirectory {
  /** What it calls whoever signs. */
  name: string | null
}

export interface SignatureCheck extends SignatureOutcome {
  /** Null where the organization does not trust the domain's directory. */
  trusted: TrustedDirectory | null
}

export interface IdentityClaims {
  /** Every user agent of the session, the likeliest first. */
  userAgents: readonly string[]
  address: string
  /** Host of the Signature-Agent header. */
  domain: string | null
}

export interface IdentityChecks {
  ranges?: PublishedRanges | undefined
  hosts?: HostCheck | null | undefined
  signature?: SignatureCheck | null | undefined
}

const nobody: SessionAgent = {
  status: 'none',
  provider: null,
  product: null,
  purpose: null,
  method: null,
  evidence: null,
}
const nothing: AgentEvidence = {
  catalogue_id: null,
  domain: null,
  key_id: null,
  host_name: null,
  list: null,
  reason: null,
  fetched_at: null,
}

/** Who the session says that it is, and whether that is so. What a signature proves goes before what a name says. */
export function identify(
  { userAgents, address, domain }: IdentityClaims,
  checks: IdentityChecks,
): SessionAgent {
  const signed = domain === null ? undefined : bySignature(domain, checks.signature ?? null)
  const named = byNames(userAgents, address, checks)
  if (!signed || !named) return signed ?? named ?? nobody
  return rankOf(named) > rankOf(signed) ? named : signed
}

// Page and request may name several. Whoever names one falsely is none of them, and else what is proven counts.
function byNames(
  userAgents: readonly string[],
  address: string,
  checks: IdentityChecks,
): SessionAgent | undefined {
  const entries = new Set(userAgents.flatMap((userAgent) => namedAgent(userAgent) ?? []))
  const all = [...entries].map((entry) => byAddress(entry, address, checks))
  const being = (status: SessionAgent['status']) => all.find((one) => one.status === status)
  return being('spoofed') ?? being('verified') ?? all[0]
}

const ranks: readonly SessionAgent['status'][] = [
  'none',
  'declared',
  'spoofed',
  'signed',
  'verified',
]
const rankOf = ({ status }: SessionAgent) => ranks.indexOf(status)

function bySignature(domain: string, signature: SignatureCheck | null): SessionAgent {
  const entry = agentOfDomain(domain)
  const isValid = signature?.status === 'valid'
  const status = isValid ? (signature.trusted || entry ? 'verified' : 'signed') : 'declared'
  return {
    ...describe(entry),
    provider: signature?.trusted?.name ?? entry?.provider ?? domain,
    status,
    method: isValid ? 'signature' : null,
    evidence: {
      ...nothing,
      catalogue_id: entry?.id ?? null,
      domain,
      key_id: signature?.keyId ?? null,
      reason: signature?.reason ?? null,
      fetched_at: signature?.fetchedAt ?? null,
    },
  }
}

type Outcome = Pick<SessionAgent, 'status' | 'method'>

// One check that says yes is enough: an operator may publish only some of its ranges.
function byAddress(
  entry: CatalogueEntry,
  address: string,
  { ranges, hosts = null }: IdentityChecks,
): SessionAgent {
  const list = ranges && searchedList(entry, address, ranges)
  const found = ranges?.botOperatorAt(address) ?? null
  const isInList = found !== null && isListOf(entry, found)
  const host = entry.reverse_dns ? hosts : null
  const hostName = host?.host && isHostOf(entry, host.host) ? host.host : null
  const outcomes: Outcome[] = [
    ...(list === undefined ? [] : [outcome(isInList, 'published_ranges')]),
    ...(host ? [outcome(hostName !== null, 'reverse_dns')] : []),
  ]
  const decided = outcomes.find(({ status }) => status === 'verified') ?? outcomes[0]
  return {
    ...describe(entry),
    ...(decided ?? { status: 'declared', method: null }),
    evidence: {
      ...nothing,
      catalogue_id: entry.id,
      list: list ?? null,
      host_name: hostName,
      fetched_at: host?.fetchedAt ?? null,
    },
  }
}

const outcome = (isConfirmed: boolean, method: string): Outcome => ({
  status: isConfirmed ? 'verified' : 'spoofed',
  method,
})

/** The list in which the agent's address was looked for; none has addresses that are not on the internet. */
export function searchedList(
  entry: CatalogueEntry,
  address: string,
  ranges: PublishedRanges,
): string | undefined {
  const list = listOf(entry)
  if (list === undefined || !isPublicAddressInFull(plainAddress(address))) return undefined
  return ranges.listedOperators().has(list) ? list : undefined
}

function describe(
  entry: CatalogueEntry | null,
): Pick<SessionAgent, 'provider' | 'product' | 'purpose'> {
  return {
    provider: entry?.provider ?? null,
    product: entry?.product ?? null,
    purpose: entry?.purpose ?? null,
  }
}
