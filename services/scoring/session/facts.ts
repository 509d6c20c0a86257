import type { AddressNetwork } from '../../../infra/ip/network.ts'
import { withClients } from '../../../infra/ip/records.ts'
import type { SimulationKey } from '../../../infra/wire/collect/simulation.ts'
import { type LearnedAnswers, nothingLearned } from '../../../projections/answers/learned.ts'
import type { NearRepeats } from '../../../projections/repeats/near-counts.ts'
import type {
  Platform,
  Repeats,
  SessionAgent,
  SessionAttestation,
} from '../../../schemas/events.ts'
import type { Behavior, Snapshot, Withheld } from '../../../schemas/observations.ts'
import { type Agent, readAgent } from './agent.ts'
import { type AnswerFacts, bankAnswersOf, judgeAnswers, noAnswers } from './answers.ts'
import { attestationOf } from './attestation.ts'
import { completenessOf, impossibleMembers, saysMinimal } from './completeness.ts'
import { type HandshakeFacts, judgeHandshake } from './handshake.ts'
import { type IdentityChecks, type IdentityClaims, identify } from './identity.ts'
import { hasBehavior } from './observed.ts'
import type { DocumentState, SessionState } from './state.ts'

export interface Facts {
  platform: Platform
  snapshot: Snapshot | null
  /** A session of a page reports what only an app can see; its snapshot is read without it. */
  claimsNative: boolean
  behavior: Behavior | null
  behavioral: boolean
  document: DocumentState | null
  /** The browser's own user agent, else the one of the request. */
  userAgent: string
  headerUserAgent: string
  agent: Agent
  /** The bot that it says it is. */
  identity: SessionAgent
  /** What the device says of the app; null for pages, and where nothing was sent. */
  attestation: SessionAttestation | null
  /** Brave, Firefox's fingerprinting resistance, Tor: they explain noise and patched functions. */
  privacyTool: boolean
  network: AddressNetwork
  answers: AnswerFacts
  handshake: HandshakeFacts
  /** The page left fingerprints out, and its organization allows that. */
  isMinimal: boolean
  /** Paths of members that the SDK owes and did not send, and of members whose values no browser has. */
  missing: string[]
  impossible: string[]
  /** Parts that the SDK owes and that the browser may refuse. */
  withheld: Withheld[]
  /** Name and version of the SDK that opened the session; null where that was forgotten. */
  sdk: SessionState['sdk']
  unreadable: number
  conflicts: number
  identityChanges: number
  /** It presents an id or a token that was issued to another device. */
  isCopied: boolean
  /** How many sessions of the visitor are known, this one included; 0 = no id speaks for the visitor. */
  visitorSessions: number
  /** What it has in common with other sessions; null = nothing was counted. */
  repeats: Repeats | null
  /** What is nearly equal to it, or comes evenly; null likewise. */
  near: NearRepeats | null
}

/** Whether pages of the organization may leave fingerprints out. */
export type AllowsMinimal = (organizationId: string) => boolean

export interface FactsInput {
  state: SessionState
  network: AddressNetwork
  learned?: LearnedAnswers
  /** Only `tidegate dev` has one. */
  simulationKey?: SimulationKey | undefined
  allowsMinimal?: AllowsMinimal | undefined
  checks?: IdentityChecks | undefined
  visitorSessions?: number
  repeats?: Repeats | null
  near?: NearRepeats | null
}

export function readFacts(input: FactsInput): Facts {
  const {
    state,
    network,
    learned = nothingLearned,
    simulationKey,
    allowsMinimal = () => false,
  } = input
  const { visitorSessions = 0, repeats = null, near = null, checks = {} } = input
  const { behavior } = state
  const claimsNative = state.platform === 'web' && (state.snapshot?.native ?? null) !== null
  const snapshot =
    claimsNative && state.snapshot ? { ...state.snapshot, native: null } : state.snapshot
  const userAgent = snapshot?.navigator.user_agent ?? state.user_agent
  const agent = readAgent(userAgent)
  const document = documentOf(state)
  const of = { environment: state.environment, organizationId: state.organization_id, learned }
  const isMinimal = saysMinimal(snapshot) && allowsMinimal(state.organization_id)
  return {
    platform: state.platform,
    snapshot,
    claimsNative,
    behavior,
    behavioral: hasBehavior(behavior),
    document,
    answers:
      snapshot && document
        ? judgeAnswers({
            ...of,
            snapshot,
            document,
            agent,
            userAgent,
            simulationKey,
            sessionId: state.session_id,
            toBank: bankAnswersOf(state, { snapshot, document, learned }),
          })
        : noAnswers,
    handshake: judgeHandshake({ ...of, document, userAgent, platform: state.platform }),
    sdk: state.sdk,
    isMinimal,
    ...completenessOf({
      snapshot,
      platform: state.platform,
      sdk: state.sdk,
      isMinimal,
      engine: agent.engine,
    }),
    impossible: impossibleMembers({ snapshot, behavior, userAgent }),
    userAgent,
    headerUserAgent: state.user_agent,
    agent,
    identity: identify(claimsOf({ state, snapshot, userAgent, document }), checks),
    attestation: attestationOf(state),
    privacyTool: snapshot !== null && isPrivacyTool(snapshot, agent),
    network: countedAt(network, repeats),
    unreadable: state.unreadable,
    conflicts: state.conflicts,
    identityChanges: state.identity_changes,
    isCopied: state.copied_id === true,
    visitorSessions,
    repeats,
    near,
  }
}

/** Without counts it stays as it is. */
export const countedAt = (network: AddressNetwork, repeats: Repeats | null): AddressNetwork =>
  repeats
    ? { ...network, evidence: withClients(network.evidence, repeats.address_visitors.day) }
    : network

function claimsOf({
  state,
  ...seen
}: Pick<Facts, 'snapshot' | 'userAgent' | 'document'> & { state: SessionState }): IdentityClaims {
  return {
    userAgents: userAgentsOf({ ...seen, headerUserAgent: state.user_agent }),
    address: state.ip_address,
    domain: seen.document?.signature_agent ?? null,
  }
}

/** The document whose snapshot counts, else the newest one. */
export function documentOf({ documents, snapshot_document }: SessionState): DocumentState | null {
  return documents.find(({ hash }) => hash === snapshot_document) ?? documents.at(-1) ?? null
}

function isPrivacyTool({ tamper, canvas }: Snapshot, agent: Agent): boolean {
  if (tamper.brave === true) return true
  return (
    agent.engine === 'gecko' &&
    (tamper.timer_precision_reduced === true || canvas.noise_detected === true)
  )
}

/** Every different user agent string of the session: page, request, its version's part, iframe, worker. */
export function userAgentsOf({
  snapshot,
  userAgent,
  headerUserAgent,
}: Pick<Facts, 'snapshot' | 'userAgent' | 'headerUserAgent'>): string[] {
  const inner = snapshot
    ? [snapshot.navigator.app_version, snapshot.worker.user_agent, snapshot.iframe.user_agent]
    : []
  return [...new Set([userAgent, headerUserAgent, ...inner])].filter((text) => text !== null)
}

interface Brand {
  brand: string
  version: string | null
}

// A made-up brand that browsers add so that nobody relies on the list (GREASE).
const grease = /not.?.?a.?.?brand/i

/** The most telling brand of the client hints: a product rather than the Chromium under it. */
export function clientBrands({ snapshot, document }: Facts): Brand | null {
  const inPage = snapshot?.navigator.brands ?? []
  const brands =
    inPage.length > 0
      ? inPage.map(({ brand, version }) => ({ brand: brand ?? '', version }))
      : parseBrands(document?.client_hints['sec-ch-ua'])
  const real = brands.filter(({ brand }) => brand !== '' && !grease.test(brand))
  return real.find(({ brand }) => brand !== 'Chromium') ?? real[0] ?? null
}

function parseBrands(header: string | undefined): Brand[] {
  const found = header?.slice(0, 1000).matchAll(/"([^"]{0,100})";\s*v="([^"]{0,40})"/g) ?? []
  return [...found].map(([, brand = '', version = '']) => ({ brand, version: version || null }))
}

export function clientHint({ document }: Facts, name: string): string | null {
  return document?.client_hints[name]?.replaceAll('"', '') || null
}

/** Whether the snapshot answers its document, keyed or in clear. Never where the document's opening was forgotten. */
export function isAnswered({ answers, document }: Facts): boolean {
  const isProven = answers.proof === 'keyed' || answers.proof === 'echoed'
  return document !== null && document.challenge !== '' && isProven
}
