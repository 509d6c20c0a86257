import Bowser from 'bowser'
import { isbot } from 'isbot'
import { createLru } from '../../../infra/lru.ts'

export type Engine = 'blink' | 'webkit' | 'gecko' | 'unknown'
export type System = 'windows' | 'macos' | 'ios' | 'android' | 'linux' | 'chromeos' | 'other'

/** Browser, engine and system that a user agent string names. */
export interface Agent {
  browser: string | null
  version: string | null
  major: string | null
  engine: Engine
  system: System
  systemName: string | null
  systemVersion: string | null
  formFactor: 'desktop' | 'mobile' | 'tablet' | 'unknown'
  /** Name of the app around a web view; null for an ordinary browser. */
  appName: string | null
  webView: boolean
  /** True for Chromium in an app (Qt, Electron). The app creates input events, and may report no pointing device. */
  embedded: boolean
  /** True if the user agent is on the isbot list. */
  isOnBotList: boolean
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

const noAgent: Agent = {
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
  embedded: false,
  isOnBotList: false,
}

// Parsing is slow, and most of the traffic has one of a few user agents.
const cache = createLru<string, Agent>(2000)

export function readAgent(userAgent: string): Agent {
  if (!userAgent) return noAgent
  const cached = cache.get(userAgent)
  if (cached) return cached
  const agent = parseAgent(userAgent)
  cache.set(userAgent, agent)
  return agent
}

function parseAgent(userAgent: string): Agent {
  const { browser, engine, os, platform } = Bowser.parse(userAgent)
  return {
    browser: browser.name || null,
    version: browser.version || null,
    major: browser.version?.split('.')[0] || null,
    engine: engines[engine.name ?? ''] ?? 'unknown',
    system: systems[os.name ?? ''] ?? 'other',
    systemName: os.name ?? null,
    systemVersion: os.version ?? null,
    // Bowser reports no platform type for Chromebooks.
    formFactor: formFactorOf(os.name === 'Chrome OS' ? 'desktop' : platform.type),
    appName: appOf(userAgent),
    webView: isWebView(userAgent),
    embedded: /\b(QtWebEngine|Electron)\//.test(userAgent),
    isOnBotList: isbot(userAgent),
  }
}

/** Returns true for a user agent on the isbot list that isn't a web view. Much faster than `readAgent`. */
export const isListedBot = (userAgent: string): boolean => isbot(userAgent) && !isWebView(userAgent)

const appOf = (userAgent: string) => apps.find(([pattern]) => pattern.test(userAgent))?.[1] ?? null
const isWebView = (userAgent: string) =>
  appOf(userAgent) !== null || /; wv\)/.test(userAgent) || isIosWebView(userAgent)

function formFactorOf(type: string | undefined): Agent['formFactor'] {
  return type === 'desktop' || type === 'mobile' || type === 'tablet' ? type : 'unknown'
}

// Safari on iOS has `Safari/` in its user agent; web views don't.
function isIosWebView(userAgent: string): boolean {
  return /\b(iPhone|iPad|iPod)\b/.test(userAgent) && !/Safari\//.test(userAgent)
}
