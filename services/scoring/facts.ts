import Bowser from 'bowser'
import { isbot } from 'isbot'
import { LRUCache } from 'lru-cache'
import type { AddressNetwork } from '../../infra/ip/network.ts'
import type { Platform } from '../../schemas/events.ts'
import type { Behavior, Snapshot } from '../../schemas/observations.ts'
import { hasBehavior } from './observed.ts'
import type { DocumentState, SessionState } from './session-state.ts'

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
  /** Brave, Firefox's fingerprinting resistance, Tor: they explain noise and patched functions. */
  privacyTool: boolean
  network: AddressNetwork
  unreadable: number
  conflicts: number
  identityChanges: number
  /** How many sessions of the visitor are known, this one included; 0 = no visitor. */
  visitorSessions: number
}

export interface FactsInput {
  state: SessionState
  network: AddressNetwork
  visitorSessions?: number
}

export function readFacts({ state, network, visitorSessions = 0 }: FactsInput): Facts {
  const { behavior } = state
  const claimsNative = state.platform === 'web' && (state.snapshot?.native ?? null) !== null
  const snapshot = claimsNative && state.snapshot ? { ...state.snapshot, native: null } : state.snapshot
  const userAgent = snapshot?.navigator.user_agent ?? state.user_agent
  const agent = readAgent(userAgent)
  return {
    platform: state.platform,
    snapshot,
    claimsNative,
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

export type Engine = 'blink' | 'webkit' | 'gecko' | 'unknown'
export type System = 'windows' | 'macos' | 'ios' | 'android' | 'linux' | 'chromeos' | 'other'

export interface Agent {
  browser: string | null
  version: string | null
  major: string | null
  engine: Engine
  system: System
  systemName: string | null
  systemVersion: string | null
  formFactor: 'desktop' | 'mobile' | 'tablet' | 'unknown'
  /** The app around an embedded web view, null for an ordinary browser. */
  appName: string | null
  webView: boolean
  listed: boolean
}

const apps: [RegExp, string][] = [
  [/\bInstagram\b/, 'Instagram'],
  [/\bFBA[NV]\//, 'Facebook'],
  [/\bMicroMessenger\//, 'WeChat'],
  [/\bLine\//, 'LINE'],
  [/\bSnapchat\b/, 'Snapchat'],
  [/musical_ly|BytedanceWebview|TikTok/, 'TikTok'],
  [/\bLinkedInApp\b/, 'LinkedIn'],
  [/\bPinterest\b/, 'Pinterest'],
  [/\bTwitter for/, 'X'],
  [/\bGSA\//, 'Google'],
]

const systems: Record<string, System> = {
  Windows: 'windows',
  macOS: 'macos',
  iOS: 'ios',
  iPadOS: 'ios',
  Android: 'android',
  Linux: 'linux',
  'Chrome OS': 'chromeos',
}

const engines: Record<string, Engine> = { Blink: 'blink', WebKit: 'webkit', Gecko: 'gecko' }

const nobody: Agent = {
  browser: null,
  version: null,
  major: null,
  engine: 'unknown',
  system: 'other',
  systemName: null,
  systemVersion: null,
  formFactor: 'unknown',
  appName: null,
  webView: false,
  listed: false,
}

/** Parsing is a pure function of the string, costly, and few strings make up most of the traffic. */
const parsed = new LRUCache<string, Agent>({ max: 2000 })

export function readAgent(userAgent: string): Agent {
  if (!userAgent) return nobody
  const known = parsed.get(userAgent)
  if (known) return known
  const agent = parseAgent(userAgent)
  parsed.set(userAgent, agent)
  return agent
}

function parseAgent(userAgent: string): Agent {
  const { browser, engine, os, platform } = Bowser.parse(userAgent)
  const appName = apps.find(([pattern]) => pattern.test(userAgent))?.[1] ?? null
  return {
    browser: browser.name || null,
    version: browser.version || null,
    major: browser.version?.split('.')[0] || null,
    engine: engines[engine.name ?? ''] ?? 'unknown',
    system: systems[os.name ?? ''] ?? 'other',
    systemName: os.name ?? null,
    systemVersion: os.version ?? null,
    // Bowser names no type for Chromebooks.
    formFactor: formFactorOf(os.name === 'Chrome OS' ? 'desktop' : platform.type),
    appName,
    webView: appName !== null || /; wv\)/.test(userAgent) || isIosWebView(userAgent),
    listed: isbot(userAgent),
  }
}

function formFactorOf(type: string | undefined): Agent['formFactor'] {
  return type === 'desktop' || type === 'mobile' || type === 'tablet' ? type : 'unknown'
}

/** Safari on iOS says `Safari/`; an app's own web view does not. */
function isIosWebView(userAgent: string): boolean {
  return /\b(iPhone|iPad|iPod)\b/.test(userAgent) && !/Safari\//.test(userAgent)
}

interface Brand {
  brand: string
  version: string | null
}

/** A made-up brand that browsers add so that nobody relies on the list (GREASE). */
const grease = /not.?.?a.?.?brand/i

/** The most telling brand of the client hints: a product rather than the Chromium under it. */
export function clientBrands({ snapshot, document }: Facts): Brand | null {
  const inPage = snapshot?.navigator.brands ?? []
  const brands = inPage.length > 0 ? inPage.map(brandOf) : parseBrands(document?.client_hints['sec-ch-ua'])
  const real = brands.filter(({ brand }) => brand !== '' && !grease.test(brand))
  return real.find(({ brand }) => brand !== 'Chromium') ?? real[0] ?? null
}

function brandOf({ brand, version }: { brand: string | null; version: string | null }): Brand {
  return { brand: brand ?? '', version }
}

function parseBrands(header: string | undefined): Brand[] {
  const found = header?.slice(0, 1000).matchAll(/"([^"]{0,100})";\s*v="([^"]{0,40})"/g) ?? []
  return [...found].map(([, brand = '', version = '']) => ({ brand, version: version || null }))
}

export function clientHint({ document }: Facts, name: string): string | null {
  return document?.client_hints[name]?.replaceAll('"', '') || null
}

/** Whether the snapshot gives back the challenge of this document. */
export function answersChallenge({ proofs }: Snapshot, { challenge }: DocumentState): boolean {
  return challenge !== '' && proofs.challenge === challenge
}

export const categories = ['environment', 'behavioral', 'fingerprint', 'integrity', 'network'] as const
export type Category = (typeof categories)[number]

type SignalRole = 'risk' | 'trust' | 'context'
export type Strength = 'weak' | 'moderate' | 'strong' | 'definitive'

/** Signals of one family look at the same thing, so that two of them do not confirm each other. */
export type Family =
  | 'automation'
  | 'headless'
  | 'machine'
  | 'consistency'
  | 'tamper'
  | 'behavior'
  | 'protocol'
  | 'headers'
  | 'network'
  | 'instrumentation'
  | 'native'
  | 'trust'

/** One piece of evidence: a pure function of what is known about a session. */
export interface Signal {
  slug: string
  name: string
  family: Family
  role: SignalRole
  category: Category
  strength: Strength
  /** 0-100: the risk that this alone means; of a trust signal what it takes away; 0 of context. */
  score: number
  looksAt: string
  falsePositives: string
  fires(facts: Facts): boolean
}

export function snapshot(test: (snapshot: Snapshot, facts: Facts) => boolean): Signal['fires'] {
  return (facts) => facts.snapshot !== null && test(facts.snapshot, facts)
}

export function inBrowser(test: (snapshot: Snapshot, facts: Facts) => boolean): Signal['fires'] {
  return snapshot((one, facts) => one.native === null && test(one, facts))
}

export function input(test: (behavior: Behavior, facts: Facts) => boolean): Signal['fires'] {
  return (facts) => facts.behavior !== null && facts.behavioral && test(facts.behavior, facts)
}
