import {
  agentOfDomain,
  agentOfUserAgent,
  type CatalogueEntry,
  hasReverseDnsName,
  ipListOf,
  publishesIpList,
} from '../../../infra/agents/catalogue.ts'
import {
  isCanonicalPublicAddress,
  type NetworkSource,
  plainAddress,
} from '../../../infra/ip/network.ts'
import type { AgentEvidence, SessionAgent } from '../../../schemas/events.ts'
import type { HostOutcome, SignatureOutcome } from './state.ts'

/** Lookup of addresses in the IP ranges that bot operators publish. */
export type PublishedRanges = Pick<NetworkSource, 'botOperatorAt' | 'listedOperators'>

/** The address's forward-confirmed host name, which need not belong to the claimed agent. */
export type HostCheck = Omit<HostOutcome, 'ip'>

/** A key directory that the organization trusts. */
export interface TrustedDirectory {
  /** The organization's name for the agent. */
  name: string | null
}

export interface SignatureCheck extends SignatureOutcome {
  /** Null if the organization does not trust the domain's directory. */
  trusted: TrustedDirectory | null
}

export interface IdentityClaims {
  /** All user agents of the session, the most relevant first. */
  userAgents: readonly string[]
  address: string
  /** Host of the Signature-Agent header. */
  domain: string | null
}

export interface IdentityChecks {
  ranges?: PublishedRanges | undefined
  host?: HostCheck | null | undefined
  signature?: SignatureCheck | null | undefined
}

const noAgent: SessionAgent = {
  status: 'none',
  provider: null,
  product: null,
  purpose: null,
  method: null,
  evidence: null,
}
const noEvidence: AgentEvidence = {
  catalogue_id: null,
  domain: null,
  key_id: null,
  host_name: null,
  list: null,
  reason: null,
  fetched_at: null,
}

/** Returns the agent that the session claims to be, and the result of verifying it. A signature wins a tie. */
export function identifyAgent(
  { userAgents, address, domain }: IdentityClaims,
  checks: IdentityChecks,
): SessionAgent {
  const signed = domain === null ? undefined : identifyBySignature(domain, checks.signature ?? null)
  const named = identifyByUserAgents(userAgents, address, checks)
  if (!signed || !named) return signed ?? named ?? noAgent
  return rankOf(named) > rankOf(signed) ? named : signed
}

// The page and its requests may claim different agents. A false claim counts first, then a verified one.
function identifyByUserAgents(
  userAgents: readonly string[],
  address: string,
  checks: IdentityChecks,
): SessionAgent | undefined {
  const entries = new Set(userAgents.flatMap((userAgent) => agentOfUserAgent(userAgent) ?? []))
  const agents = [...entries].map((entry) => identifyByAddress(entry, address, checks))
  const withStatus = (status: SessionAgent['status']) =>
    agents.find((agent) => agent.status === status)
  return withStatus('spoofed') ?? withStatus('verified') ?? agents[0]
}

const ranks: readonly SessionAgent['status'][] = [
  'none',
  'declared',
  'spoofed',
  'signed',
  'verified',
]
const rankOf = ({ status }: SessionAgent) => ranks.indexOf(status)

function identifyBySignature(domain: string, signature: SignatureCheck | null): SessionAgent {
  const entry = agentOfDomain(domain)
  const isValid = signature?.status === 'valid'
  const status = isValid ? (signature.trusted || entry ? 'verified' : 'signed') : 'declared'
  return {
    ...describe(entry),
    provider: signature?.trusted?.name ?? entry?.provider ?? domain,
    status,
    method: isValid ? 'signature' : null,
    evidence: {
      ...noEvidence,
      catalogue_id: entry?.id ?? null,
      domain,
      key_id: signature?.keyId ?? null,
      reason: signature?.reason ?? null,
      fetched_at: signature?.fetchedAt ?? null,
    },
  }
}

type Outcome = Pick<SessionAgent, 'status' | 'method'>

// A single passed check is enough, because an operator may publish only some of its ranges.
function identifyByAddress(
  entry: CatalogueEntry,
  address: string,
  { ranges, host: hostCheck = null }: IdentityChecks,
): SessionAgent {
  const list = ranges && listToSearch(entry, address, ranges)
  const operator = ranges?.botOperatorAt(address) ?? null
  const isInList = operator !== null && publishesIpList(entry, operator)
  const host = entry.reverse_dns ? hostCheck : null
  const hostName = host?.host && hasReverseDnsName(entry, host.host) ? host.host : null
  const outcomes: Outcome[] = [
    ...(list === undefined ? [] : [checkOutcome(isInList, 'published_ranges')]),
    ...(host ? [checkOutcome(hostName !== null, 'reverse_dns')] : []),
  ]
  const outcome = outcomes.find(({ status }) => status === 'verified') ?? outcomes[0]
  return {
    ...describe(entry),
    ...(outcome ?? { status: 'declared', method: null }),
    evidence: {
      ...noEvidence,
      catalogue_id: entry.id,
      list: list ?? null,
      host_name: hostName,
      fetched_at: host?.fetchedAt ?? null,
    },
  }
}

const checkOutcome = (isConfirmed: boolean, method: string): Outcome => ({
  status: isConfirmed ? 'verified' : 'spoofed',
  method,
})

/** Returns the list to search for the address; undefined if the operator has none or the address isn't public. */
export function listToSearch(
  entry: CatalogueEntry,
  address: string,
  ranges: PublishedRanges,
): string | undefined {
  const list = ipListOf(entry)
  if (list === undefined || !isCanonicalPublicAddress(plainAddress(address))) return undefined
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
