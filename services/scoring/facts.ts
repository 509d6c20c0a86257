import type { Network, Platform } from '../../schemas/events.ts'
import type { Behavior, Snapshot } from '../../schemas/observations.ts'
import { type Agent, readAgent } from './agent.ts'
import { hasBehavior } from './behavior-totals.ts'
import type { DocumentState } from './documents.ts'
import type { SessionState } from './session-state.ts'

/** What signals look at: a session's state, read once. */
export interface Facts {
  platform: Platform
  snapshot: Snapshot | null
  behavior: Behavior | null
  behavioral: boolean
  /** The document that the snapshot came from, else the newest. */
  document: DocumentState | null
  /** The browser's own user agent, else the one of the request. */
  userAgent: string
  headerUserAgent: string
  /** What `userAgent` claims to be. */
  agent: Agent
  /** Brave, Firefox's fingerprinting resistance, Tor: they explain noise and patched functions. */
  privacyTool: boolean
  network: Network
  unreadable: number
  conflicts: number
  identityChanges: number
  /** How many sessions of the visitor are known, this one included; 0 = no visitor. */
  visitorSessions: number
}

export interface FactsInput {
  state: SessionState
  network: Network
  visitorSessions?: number
}

export function readFacts({ state, network, visitorSessions = 0 }: FactsInput): Facts {
  const { snapshot, behavior } = state
  const userAgent = snapshot?.navigator.user_agent ?? state.user_agent
  const agent = readAgent(userAgent)
  return {
    platform: state.platform,
    snapshot,
    behavior,
    behavioral: hasBehavior(behavior),
    document: snapshotDocument(state),
    userAgent,
    headerUserAgent: state.user_agent,
    agent,
    privacyTool: snapshot !== null && isPrivacyTool(snapshot, agent),
    network,
    unreadable: state.unreadable,
    conflicts: state.conflicts,
    identityChanges: state.identity_changes,
    visitorSessions,
  }
}

function snapshotDocument({ documents, snapshot_document }: SessionState): DocumentState | null {
  return documents.find(({ hash }) => hash === snapshot_document) ?? documents.at(-1) ?? null
}

function isPrivacyTool({ tamper, canvas }: Snapshot, agent: Agent): boolean {
  if (tamper.brave === true) return true
  return (
    agent.engine === 'gecko' && (tamper.timer_precision_reduced === true || canvas.noise_detected === true)
  )
}
