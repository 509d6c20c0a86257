import type { Snapshot } from '../../../../schemas/observations.ts'
import type { Client } from './families.ts'

export type SimulatedActor =
  | 'human'
  | 'headless'
  | 'selenium'
  | 'playwright'
  | 'stealth'
  | 'scripted'
  | 'emulator'

type BotWeight = readonly [Exclude<SimulatedActor, 'human'>, number]
export const botWeights: Record<Client, readonly BotWeight[]> = {
  web: [
    ['headless', 35],
    ['selenium', 15],
    ['playwright', 20],
    ['stealth', 15],
    ['scripted', 15],
  ],
  ios: [['emulator', 1]],
  android: [['emulator', 1]],
}

export const attackNames = ['credential-stuffing', 'fake-signups', 'scraping', 'carding'] as const
export type AttackName = (typeof attackNames)[number]

/** In an attack, one tool visits one path. */
export const attacks: Record<AttackName, { actor: SimulatedActor; path: string }> = {
  'credential-stuffing': { actor: 'playwright', path: '/login' },
  'fake-signups': { actor: 'selenium', path: '/signup' },
  scraping: { actor: 'headless', path: '/search' },
  carding: { actor: 'stealth', path: '/checkout' },
}

const traceAdders: Partial<Record<SimulatedActor, (snapshot: Snapshot) => Snapshot>> = {
  headless,
  selenium,
  playwright,
  stealth,
  emulator,
}

/** Returns the snapshot with the traces that the actor's automation tool would leave in it. */
export const addAutomationTraces = (actor: SimulatedActor, snapshot: Snapshot): Snapshot =>
  traceAdders[actor]?.(snapshot) ?? snapshot

function withWebdriver(snapshot: Snapshot, tool: Partial<Snapshot['automation']> = {}): Snapshot {
  const flags = { webdriver: true, webdriver_iframe: true, webdriver_worker: true }
  return { ...snapshot, automation: { ...snapshot.automation, ...flags, ...tool } }
}

function headless(snapshot: Snapshot): Snapshot {
  const user_agent = snapshot.navigator.user_agent?.replace('Chrome/', 'HeadlessChrome/') ?? null
  const screenless = {
    outer_width: 800,
    outer_height: 600,
    has_chrome_object: false,
    timezone: 'UTC',
  }
  return withWebdriver({
    ...snapshot,
    navigator: { ...snapshot.navigator, user_agent, plugins: [], mime_types_count: 0 },
    environment: { ...snapshot.environment, ...screenless },
    webgl: { ...snapshot.webgl, vendor: 'Google Inc. (Google)', renderer: softwareRenderer },
    worker: { ...snapshot.worker, user_agent, webgl_renderer: softwareRenderer },
    iframe: { ...snapshot.iframe, user_agent },
  })
}

const softwareRenderer =
  'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero) (0x0000C0DE)), SwiftShader driver)'

function selenium(snapshot: Snapshot): Snapshot {
  const globals = ['cdc_adoQpoasnfa76pfcZLmcfl_Array', '__selenium_unwrapped']
  return withWebdriver(snapshot, { globals, document_attributes: ['webdriver'] })
}

function playwright(snapshot: Snapshot): Snapshot {
  return withWebdriver(snapshot, {
    globals: ['__pwInitScripts', '__playwright__binding__'],
    cdp_runtime: true,
  })
}

function stealth(snapshot: Snapshot): Snapshot {
  const automation = {
    ...snapshot.automation,
    webdriver_worker: true,
    webdriver_own_property: true,
  }
  return {
    ...snapshot,
    automation,
    tamper: {
      ...snapshot.tamper,
      patched_functions: ['navigator.webdriver', 'WebGLRenderingContext.getParameter'],
      navigator_own_properties: ['webdriver', 'languages'],
      iframe_srcdoc_proxy: true,
      chrome_runtime_faked: true,
      webgl_parameter_mismatch: true,
    },
    worker: {
      ...snapshot.worker,
      platform: 'Linux x86_64',
      hardware_concurrency: 2,
      webgl_renderer: softwareRenderer,
    },
  }
}

function emulator(snapshot: Snapshot): Snapshot {
  if (!snapshot.native) return snapshot
  const native = {
    ...snapshot.native,
    simulator_or_emulator: true,
    hooks: true,
    jailbreak_or_root: true,
  }
  return { ...snapshot, native: { ...native, architecture: 'x86_64', carrier_name: null } }
}
