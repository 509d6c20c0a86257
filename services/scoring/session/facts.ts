import type { AddressNetwork } from '../../../infra/ip/network.ts'
import { withClientCount } from '../../../infra/ip/records.ts'
import type { SimulationKey } from '../../../infra/wire/collect/simulation.ts'
import { type LearnedAnswers, noLearnedAnswers } from '../../../projections/answers/learned.ts'
import type { NearRepeats } from '../../../projections/repeats/near-repeats.ts'
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
import { completenessOf, hasMinimalMode, impossibleMembers } from './completeness.ts'
import { type HandshakeFacts, judgeHandshake } from './handshake.ts'
import { type IdentityChecks, type IdentityClaims, identifyAgent } from './identity.ts'
import { hasBehavior } from './observations.ts'
import type { DocumentState, SessionState } from './state.ts'

export interface Facts {
  platform: Platform
  snapshot: Snapshot | null
  /** True if a page reports observations that only an app can make. They are removed from `snapshot`. */
  claimsNative: boolean
  behavior: Behavior | null
  /** True if there was any input. */
  hasInput: boolean
  document: DocumentState | null
  /** User agent in the page, else that of the request. */
  userAgent: string
  headerUserAgent: string
  agent: Agent
  /** The bot or agent that the session claims to be. */
  identity: SessionAgent
  /** null for pages, and for apps that sent no attestation. */
  attestation: SessionAttestation | null
  /** True for Brave, Tor, and Firefox with fingerprinting resistance, which explain noise and patched functions. */
  privacyTool: boolean
  network: AddressNetwork
  answers: AnswerFacts
  handshake: HandshakeFacts
  /** True if the page left fingerprints out and its organization allows that. */
  isMinimal: boolean
  /** Paths of required members that the SDK did not send. */
  missing: string[]
  /** Paths of members with values that no browser has. */
  impossible: string[]
  /** Parts of the snapshot that the browser refused, with a plausible reason. */
  withheld: Withheld[]
  /** SDK that opened the session; null or missing if unknown. */
  sdk: SessionState['sdk']
  /** Counts; see `SessionState`. */
  unreadable: number
  conflicts: number
  identityChanges: number
  /** True if the client presented an id or token that was issued to another device. */
  hasCopiedId: boolean
  /** Number of the visitor's sessions, including this one; 0 = no stored id proves the visitor. */
  visitorSessions: number
  /** Counts of equal sessions; null = not counted. */
  repeats: Repeats | null
  /** Counts of nearly equal sessions, and the regularity of arrivals; null = not counted. */
  near: NearRepeats | null
}

/** Returns true if the organization allows pages to leave fingerprints out. */
export type AllowsMinimalMode = (organizationId: string) => boolean

export interface FactsInput {
  state: SessionState
  network: AddressNetwork
  learned?: LearnedAnswers
  /** Set by `tidegate dev` only. */
  simulationKey?: SimulationKey | undefined
  allowsMinimalMode?: AllowsMinimalMode | undefined
  checks?: IdentityChecks | undefined
  visitorSessions?: number
  repeats?: Repeats | null
  near?: NearRepeats | null
}

export function readFacts(input: FactsInput): Facts {
  const {
    state,
    network,
    learned = noLearnedAnswers,
    simulationKey,
    allowsMinimalMode = () => false,
  } = input
  const { visitorSessions = 0, repeats = null, near = null, checks = {} } = input
  const { behavior } = state
  const claimsNative = state.platform === 'web' && (state.snapshot?.native ?? null) !== null
  const snapshot =
    claimsNative && state.snapshot ? { ...state.snapshot, native: null } : state.snapshot
  const userAgent = snapshot?.navigator.user_agent ?? state.user_agent
  const agent = readAgent(userAgent)
  const document = documentOf(state)
  const { environment, organization_id: organizationId } = state
  const sources = { environment, organizationId, learned }
  const isMinimal = hasMinimalMode(snapshot) && allowsMinimalMode(state.organization_id)
  return {
    platform: state.platform,
    snapshot,
    claimsNative,
    behavior,
    hasInput: hasBehavior(behavior),
    document,
    answers:
      snapshot && document
        ? judgeAnswers({
            ...sources,
            snapshot,
            document,
            agent,
            userAgent,
            simulationKey,
            sessionId: state.session_id,
            bankAnswers: bankAnswersOf(state, { snapshot, document, learned }),
          })
        : noAnswers,
    handshake: judgeHandshake({ ...sources, document, userAgent, platform: state.platform }),
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
    identity: identifyAgent(claimsOf({ state, snapshot, userAgent, document }), checks),
    attestation: attestationOf(state),
    privacyTool: snapshot !== null && isPrivacyTool(snapshot, agent),
    network: withVisitorCount(network, repeats),
    unreadable: state.unreadable,
    conflicts: state.conflicts,
    identityChanges: state.identity_changes,
    hasCopiedId: state.copied_id === true,
    visitorSessions,
    repeats,
    near,
  }
}

/** Adds the number of the address's visitors to the network evidence. Returns the network unchanged without counts. */
export const withVisitorCount = (
  network: AddressNetwork,
  repeats: Repeats | null,
): AddressNetwork =>
  repeats
    ? { ...network, evidence: withClientCount(network.evidence, repeats.address_visitors.day) }
    : network

function claimsOf({
  state,
  ...facts
}: Pick<Facts, 'snapshot' | 'userAgent' | 'document'> & { state: SessionState }): IdentityClaims {
  return {
    userAgents: userAgentsOf({ ...facts, headerUserAgent: state.user_agent }),
    address: state.ip_address,
    domain: facts.document?.signature_agent ?? null,
  }
}

/** Returns the document that sent the snapshot, else the latest one. */
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

/** Returns the distinct user agent strings of the session: from page, request, `appVersion`, worker and iframe. */
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

// Browsers add a fake brand so that nobody relies on the list (GREASE).
const grease = /not.?.?a.?.?brand/i

/** Returns the most specific brand of the client hints: the product rather than the underlying Chromium. */
export function mostSpecificBrand({ snapshot, document }: Facts): Brand | null {
  const inPage = snapshot?.navigator.brands ?? []
  const brands =
    inPage.length > 0
      ? inPage.map(({ brand, version }) => ({ brand: brand ?? '', version }))
      : parseBrands(document?.client_hints['sec-ch-ua'])
  const realBrands = brands.filter(({ brand }) => brand !== '' && !grease.test(brand))
  return realBrands.find(({ brand }) => brand !== 'Chromium') ?? realBrands[0] ?? null
}

function parseBrands(header: string | undefined): Brand[] {
  const matches = header?.slice(0, 1000).matchAll(/"([^"]{0,100})";\s*v="([^"]{0,40})"/g) ?? []
  return [...matches].map(([, brand = '', version = '']) => ({ brand, version: version || null }))
}

export function clientHint({ document }: Facts, name: string): string | null {
  return document?.client_hints[name]?.replaceAll('"', '') || null
}

/** Returns true if the snapshot answers its document's challenge. False if the challenge is not known. */
export function hasAnsweredChallenge({ answers, document }: Facts): boolean {
  const isProven = answers.proof === 'keyed' || answers.proof === 'echoed'
  return document !== null && document.challenge !== '' && isProven
}
