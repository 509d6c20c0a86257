import { agentOfUserAgent, type CatalogueEntry, ipListOf } from '../../../infra/agents/catalogue.ts'
import type { NetworkSource } from '../../../infra/ip/network.ts'
import { fieldValue } from '../../../infra/wire/web-bot-auth/fields.ts'
import type { SessionAgent } from '../../../schemas/events.ts'
import { isListedBot, readAgent } from '../session/agent.ts'
import { recordedTlsClient } from '../session/handshake.ts'
import { identifyAgent, listToSearch } from '../session/identity.ts'
import { isHosted } from '../signals/connection.ts'
import { headless, httpClient } from '../signals/headless.ts'
import { type EdgeSignature, readSignature, type SignatureContext } from './signature.ts'

/** A request as received by an edge. */
export interface EdgeRequest {
  method: string
  scheme: 'http' | 'https'
  authority: string
  /** Path and query. */
  path: string
  /** Names and values in the order received. */
  headers: [string, string][]
  ip: string
  ja4?: string | null | undefined
}

export interface EdgeContext extends SignatureContext {
  network: Pick<NetworkSource, 'lookup' | 'botOperatorAt' | 'listedOperators'>
}

// Each of these alone proves that a program made the request.
const botReasons = [
  ...([
    'verified_agent',
    'spoofed_agent',
    'declared_bot_user_agent',
    'signature_agent_header',
  ] as const),
  ...(['http_client_user_agent', 'headless_user_agent', 'bot_like_user_agent'] as const),
]
// Requests by people can have these, too.
const hints = [
  ...(['app_library_user_agent', 'user_agent_missing'] as const),
  ...(['browser_with_tool_handshake', 'hosting_network'] as const),
]
export const requestReasons = [...botReasons, ...hints] as const
type RequestReason = (typeof requestReasons)[number]

/** Checks that could have added evidence, but were not made. */
export const uncheckedNames = [
  ...(['published_ranges', 'reverse_dns', 'signature_key', 'signature_replay'] as const),
  ...(['handshake', 'hosting_network'] as const),
]
type Unchecked = (typeof uncheckedNames)[number]

export interface RequestDecision {
  verdict: 'bot' | 'inconclusive'
  agent: SessionAgent
  reasons: RequestReason[]
  unchecked: Unchecked[]
}

/** Decides whether a program made the request. The verdict is never `human`: a single request can't prove a person. */
export function decideRequest(request: EdgeRequest, knowledge: EdgeContext): RequestDecision {
  const traits = readTraits(request, knowledge)
  const reasons = requestReasons.filter((reason) => applies[reason](traits))
  const isBot = botReasons.some((reason) => reasons.includes(reason))
  const unchecked = uncheckedNames.filter((name) => isUnchecked[name](traits))
  return { verdict: isBot ? 'bot' : 'inconclusive', agent: traits.agent, reasons, unchecked }
}

// Same limit as in collect. Parsing takes time in proportion to the length.
const maxUserAgent = 1024

type RequestTraits = ReturnType<typeof readTraits>

function readTraits(
  { method, scheme, authority, path: target, headers, ip, ja4 }: EdgeRequest,
  knowledge: EdgeContext,
) {
  const received = { method, target, rawHeaders: headers.flat() }
  const userAgent = fieldValue(received, 'user-agent')?.slice(0, maxUserAgent) ?? ''
  const baseUrl = `${scheme}://${authority}`
  const signed: EdgeSignature = readSignature(received, { ...knowledge, baseUrl })
  const { network, now } = knowledge
  const claims = { userAgents: [userAgent], address: ip, domain: signed.domain }
  return {
    userAgent,
    ip,
    network,
    signature: signed.signature,
    namedAgent: agentOfUserAgent(userAgent),
    agent: identifyAgent(claims, { ranges: network, signature: signed.signature }),
    brands: fieldValue(received, 'sec-ch-ua') ?? '',
    hasSignatureAgent: fieldValue(received, 'signature-agent') !== undefined,
    ja4: ja4 ?? null,
    addressNetwork: network.lookup(ip, now),
  }
}

// HTTP libraries that mobile apps use.
const appLibrary = /^(okhttp|Dart|Dalvik)\b|\bCFNetwork\//i
const isAppLibrary = ({ userAgent }: RequestTraits) => appLibrary.test(userAgent)

const applies: Record<RequestReason, (traits: RequestTraits) => boolean> = {
  verified_agent: ({ agent }) => agent.status === 'verified',
  spoofed_agent: ({ agent }) => agent.status === 'spoofed',
  declared_bot_user_agent: ({ namedAgent }) => namedAgent !== null,
  signature_agent_header: ({ hasSignatureAgent }) => hasSignatureAgent,
  http_client_user_agent: (traits) => httpClient.test(traits.userAgent) && !isAppLibrary(traits),
  headless_user_agent: ({ userAgent, brands }) => headless.test(userAgent) || headless.test(brands),
  bot_like_user_agent: (traits) => isListedBot(traits.userAgent) && !isAppLibrary(traits),
  app_library_user_agent: isAppLibrary,
  user_agent_missing: ({ userAgent }) => userAgent === '',
  browser_with_tool_handshake: ({ userAgent, ja4 }) =>
    recordedTlsClient(ja4)?.kind === 'tool' && readAgent(userAgent).engine !== 'unknown',
  hosting_network: ({ addressNetwork }) => isHosted(addressNetwork),
}

const isUnchecked: Record<Unchecked, (traits: RequestTraits) => boolean> = {
  published_ranges: ({ namedAgent, ip, network }) =>
    namedAgent !== null &&
    publishesRanges(namedAgent) &&
    listToSearch(namedAgent, ip, network) === undefined,
  reverse_dns: ({ namedAgent, agent }) =>
    namedAgent?.reverse_dns !== undefined && agent.status !== 'verified',
  signature_key: ({ signature }) => signature?.status === 'unknown_key',
  signature_replay: ({ signature }) => signature?.status === 'valid',
  handshake: ({ ja4 }) => ja4 === null,
  hosting_network: ({ addressNetwork }) => addressNetwork.status !== 'ready',
}

const publishesRanges = (entry: CatalogueEntry) =>
  entry.ranges !== undefined || ipListOf(entry) !== undefined
