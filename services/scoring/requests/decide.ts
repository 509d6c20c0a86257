import { type CatalogueEntry, listOf, namedAgent } from '../../../infra/agents/catalogue.ts'
import type { NetworkSource } from '../../../infra/ip/network.ts'
import { fieldValue } from '../../../infra/wire/web-bot-auth/fields.ts'
import type { SessionAgent } from '../../../schemas/events.ts'
import { isListedBot, readAgent } from '../session/agent.ts'
import { recordedHandshake } from '../session/handshake.ts'
import { identify, searchedList } from '../session/identity.ts'
import { isHosted } from '../signals/connection.ts'
import { headless, httpClient } from '../signals/headless.ts'
import { type SignatureKnowledge, type SignedBy, signedBy } from './signature.ts'

/** A request as an edge saw it. */
export interface EdgeRequest {
  method: string
  scheme: 'http' | 'https'
  authority: string
  /** Path and query. */
  path: string
  /** Names and values, in their order. */
  headers: [string, string][]
  ip: string
  ja4?: string | null | undefined
}

export interface RequestKnowledge extends SignatureKnowledge {
  network: Pick<NetworkSource, 'lookup' | 'botOperatorAt' | 'listedOperators'>
}

// Each alone says that a program made the request.
const botReasons = [
  ...([
    'verified_agent',
    'spoofed_agent',
    'declared_bot_user_agent',
    'signature_agent_header',
  ] as const),
  ...(['http_client_user_agent', 'headless_user_agent', 'bot_like_user_agent'] as const),
]
// People come with these, too.
const notices = [
  ...(['app_library_user_agent', 'user_agent_missing'] as const),
  ...(['browser_with_tool_handshake', 'hosting_network'] as const),
]
export const requestReasons = [...botReasons, ...notices] as const
type RequestReason = (typeof requestReasons)[number]

/** Checks that might have said something, and were not made. */
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

/** What one request says of who made it. No request shows that a person did. */
export function decideRequest(request: EdgeRequest, known: RequestKnowledge): RequestDecision {
  const seen = observe(request, known)
  const reasons = requestReasons.filter((reason) => applies[reason](seen))
  const isBot = reasons.some((reason) => botReasons.some((one) => one === reason))
  const unchecked = uncheckedNames.filter((name) => isUnchecked[name](seen))
  return { verdict: isBot ? 'bot' : 'inconclusive', agent: seen.agent, reasons, unchecked }
}

// As much as collect reads. Telling browsers apart takes time in proportion to the length.
const maxUserAgent = 1024

type Seen = ReturnType<typeof observe>

function observe(
  { method, scheme, authority, path: target, headers, ip, ja4 }: EdgeRequest,
  known: RequestKnowledge,
) {
  const received = { method, target, rawHeaders: headers.flat() }
  const userAgent = fieldValue(received, 'user-agent')?.slice(0, maxUserAgent) ?? ''
  const signed: SignedBy = signedBy(received, { ...known, baseUrl: `${scheme}://${authority}` })
  const { network, now } = known
  const claims = { userAgents: [userAgent], address: ip, domain: signed.domain }
  return {
    userAgent,
    ip,
    network,
    signature: signed.signature,
    named: namedAgent(userAgent),
    agent: identify(claims, { ranges: network, signature: signed.signature }),
    brands: fieldValue(received, 'sec-ch-ua') ?? '',
    hasSignatureAgent: fieldValue(received, 'signature-agent') !== undefined,
    ja4: ja4 ?? null,
    place: network.lookup(ip, now),
  }
}

// Libraries by which apps on people's phones speak.
const ofApps = /^(okhttp|Dart|Dalvik)\b|\bCFNetwork\//i
const isOfApp = ({ userAgent }: Seen) => ofApps.test(userAgent)

const applies: Record<RequestReason, (seen: Seen) => boolean> = {
  verified_agent: ({ agent }) => agent.status === 'verified',
  spoofed_agent: ({ agent }) => agent.status === 'spoofed',
  declared_bot_user_agent: ({ named }) => named !== null,
  signature_agent_header: ({ hasSignatureAgent }) => hasSignatureAgent,
  http_client_user_agent: (seen) => httpClient.test(seen.userAgent) && !isOfApp(seen),
  headless_user_agent: ({ userAgent, brands }) => headless.test(userAgent) || headless.test(brands),
  bot_like_user_agent: (seen) => isListedBot(seen.userAgent) && !isOfApp(seen),
  app_library_user_agent: isOfApp,
  user_agent_missing: ({ userAgent }) => userAgent === '',
  browser_with_tool_handshake: ({ userAgent, ja4 }) =>
    recordedHandshake(ja4)?.kind === 'tool' && readAgent(userAgent).engine !== 'unknown',
  hosting_network: ({ place }) => isHosted(place),
}

const isUnchecked: Record<Unchecked, (seen: Seen) => boolean> = {
  published_ranges: ({ named, ip, network }) =>
    named !== null && publishesRanges(named) && searchedList(named, ip, network) === undefined,
  reverse_dns: ({ named, agent }) =>
    named?.reverse_dns !== undefined && agent.status !== 'verified',
  signature_key: ({ signature }) => signature?.status === 'unknown_key',
  signature_replay: ({ signature }) => signature?.status === 'valid',
  handshake: ({ ja4 }) => ja4 === null,
  hosting_network: ({ place }) => place.status !== 'ready',
}

const publishesRanges = (entry: CatalogueEntry) =>
  entry.ranges !== undefined || listOf(entry) !== undefined
