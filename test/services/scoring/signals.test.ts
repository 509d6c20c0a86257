import { describe, expect, it } from 'vitest'
import { noNetwork } from '../../../infra/ip/network.ts'
import { nothingLearned } from '../../../projections/answers/learned.ts'
import type { NearRepeats } from '../../../projections/repeats/near-counts.ts'
import type {
  AgentStatus,
  AttestationStatus,
  Network,
  Platform,
  Repeats,
} from '../../../schemas/events.ts'
import { type Withheld, withheldGroups } from '../../../schemas/observations.ts'
import { type AnswerFacts, noAnswers } from '../../../services/scoring/session/answers.ts'
import { type Facts, readFacts } from '../../../services/scoring/session/facts.ts'
import { judgeHandshake } from '../../../services/scoring/session/handshake.ts'
import { signalCatalogue } from '../../../services/scoring/signals/catalogue.ts'
import { nearRepeats, repeatsOf } from '../../support/session-scored.ts'
import { batch, opened, platformOf, startedAt, testSession } from './support/events.ts'
import { naturalKeys, naturalMouse } from './support/natural-input.ts'
import { judgedSignals, stateAfter } from './support/sessions.ts'
import * as clients from './support/snapshots.ts'
import { naturalInput, taught } from './support/taught.ts'

type Parts = clients.Client['snapshot']

interface Given {
  client?: clients.Client
  parts?: Parts
  /** Default: that of an app where the client reports one. */
  platform?: Platform
  behavior?: object
  facts?: Partial<Facts>
  hints?: Record<string, string>
  header?: string
}

const { desktopChrome, androidChrome } = clients
const skipped = noNetwork.lookup('203.0.113.9', startedAt)
const anonymity = (some: Partial<Network['anonymity']>): Partial<Facts> => ({
  network: { ...skipped, anonymity: { ...skipped.anonymity, ...some } },
})

function inNetwork(asn: string, some: Partial<Network['anonymity']>): Partial<Facts> {
  const routing = { asn, organization: null }
  return { network: { ...skipped, routing, anonymity: { ...skipped.anonymity, ...some } } }
}

function factsOf({
  client = desktopChrome,
  parts = {},
  platform,
  behavior,
  facts,
  hints,
  header,
}: Given): Facts {
  const seen = clients.withParts(client, parts)
  const session = testSession('signals', {
    client: { ...seen, clientHints: { ...seen.clientHints, ...hints } },
    platform: platform ?? platformOf(seen),
  })
  const observations = { version: 1, elapsed_ms: 1, snapshot: seen.snapshot, behavior }
  const state = stateAfter([...opened(session), batch(session, { observations })])
  const user_agent = header ?? state.user_agent
  return {
    ...readFacts({ state: { ...state, user_agent }, network: skipped, learned: taught }),
    ...facts,
  }
}

function fires(slug: string, given: Given): boolean {
  const signal = signalCatalogue.find((one) => one.slug === slug)
  if (!signal) throw new Error(`no signal ${slug}`)
  return signal.fires(factsOf(given))
}

function withSignatureAgent(): Given {
  const { document } = factsOf({})
  return document ? { facts: { document: { ...document, signature_agent: 'agent.example' } } } : {}
}

const identity = (status: AgentStatus): Given => ({
  facts: { identity: { ...factsOf({}).identity, status } },
})

/** As an SDK before 0.2 answers. */
const echo = { ...clients.answers, answer_mac: null }
const firefoxAgent =
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:153.0) Gecko/20100101 Firefox/153.0'
const chromeOnIos =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0.7339.39 Mobile/15E148 Safari/604.1'
const wrongProofs = clients.proofsOf(firefoxAgent)
const all = (count: number) => ({ five_minutes: count, hour: count, day: count })
/** Fires from this count on. */
const repeating = (counted: keyof Repeats, from: number) => ({
  given: [{ facts: { repeats: repeatsOf(1, { [counted]: all(from) }) } }],
  not: [
    { facts: { repeats: repeatsOf(1, { [counted]: all(from - 1) }) } },
    { facts: { repeats: null } },
  ],
})

const nearby = (near: Partial<NearRepeats>, repeats: Partial<Repeats> = {}) => ({
  near: nearRepeats(near),
  repeats: repeatsOf(1, repeats),
})
const rush = { address_visitors: all(20), address_sessions: all(22) }

const named = (...globals: string[]): Given => ({ parts: { automation: { globals } } })
const says = (user_agent: string): Given => ({ parts: { navigator: { user_agent } } })
const app = (native: NonNullable<Parts['native']>): Given => ({ client: { snapshot: { native } } })
const attested = (status: AttestationStatus, reason: string | null = null): Given => ({
  ...app({ device_model: 'Pixel 8', hooks: false }),
  facts: { attestation: { status, reason, method: 'app_attest', app_id: null, device: null } },
})
const naturalTouch = { events: 6, touches: 4, radius_std: 1.5, interval_std: 60 }
const unlearned: AnswerFacts = {
  ...noAnswers,
  proof: 'keyed',
  engine: 'as_claimed',
  notLearned: { engine: 'blink', visitors: 3, needed: 20 },
}
/** What the SDK says of parts that it could not have. */
const said = (reasons: Partial<Record<Withheld['group'], Withheld['reason']>>): Parts => ({
  collection: {
    withheld: withheldGroups.flatMap((group) => {
      const reason = reasons[group]
      return reason ? [{ group, reason }] : []
    }),
  },
})
const nobody = { available: true, user_agent: 'Mozilla/5.0 of another', platform: 'Win32' }
const iphoneWebView = clients.withParts(clients.iphoneSafari, {
  navigator: {
    user_agent:
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148',
  },
})
const ipad = clients.withParts(clients.iphoneSafari, {
  navigator: {
    user_agent:
      'Mozilla/5.0 (iPad; CPU OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1',
    platform: 'iPad',
  },
  environment: { screen_width: 820, screen_height: 1180, pixel_ratio: 2 },
})
const withoutGraphics = { ...said({ webgl: 'blocked' }), webgl: { vendor: null, renderer: null } }
const documentWithout = (header_order: string[]): Partial<Facts> => {
  const { document } = factsOf({})
  return document ? { document: { ...document, header_order } } : {}
}
const withJa4 = (ja4: string): Partial<Facts> => {
  const { document } = factsOf({})
  if (!document) return {}
  const of = { environment: 'live' as const, organizationId: 'org_1', learned: nothingLearned }
  const { userAgent, platform } = factsOf({})
  return {
    handshake: judgeHandshake({ ...of, userAgent, platform, document: { ...document, ja4 } }),
  }
}
const x11Chrome = clients.withParts(desktopChrome, {
  navigator: {
    user_agent:
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36',
    platform: 'Linux x86_64',
  },
})
const qtWebEngine = clients.withParts(x11Chrome, {
  navigator: {
    user_agent:
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) QtWebEngine/5.15.13 Chrome/87.0.4280.144 Safari/537.36',
  },
})
const electron = clients.withParts(x11Chrome, {
  navigator: {
    user_agent:
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) shop/2.1.0 Chrome/156.0.0.0 Electron/45.1.0 Safari/537.36',
  },
})
const location = {
  city: null,
  region: null,
  country: null,
  country_code: 'US',
  latitude: null,
  longitude: null,
  timezone: 'America/New_York',
  postal_code: null,
  accuracy_radius_km: null,
}

const foreign = (...names: string[]): Given => ({
  parts: { tamper: { foreign_primitives: names } },
})

/** For every signal: what makes it fire, and what comes close and must not. */
const examples: Record<string, { given: Given[]; not?: Given[] }> = {
  webdriver_detected: {
    given: [
      { parts: { automation: { webdriver: true } } },
      { parts: { automation: { webdriver_iframe: true } } },
      { parts: { automation: { webdriver_worker: true } } },
    ],
    not: [{ parts: { automation: { webdriver: null, webdriver_worker: null } } }],
  },
  selenium_globals: {
    given: [
      named('__selenium_unwrapped'),
      named('calledSelenium'),
      named('$chrome_asyncScriptInfo'),
    ],
  },
  chromedriver_markers: {
    given: [
      named('$cdc_asdjflasutopfhvcZLmcfl_'),
      named('cdc_adoQpoasnfa76pfcZLmcfl_Array'),
      named('xyz_f9sJq02LmXcvBn7RtYuIoP_Promise'),
    ],
    not: [
      named('app_state_JSON', 'gtm_data_Object', 'abc_x_Promise', 'cdc_banner', 'cdc_state_Array'),
    ],
  },
  playwright_globals: { given: [named('__pwInitScripts'), named('__playwright__binding__')] },
  puppeteer_globals: { given: [named('__puppeteer_evaluation_script__')] },
  phantom_globals: { given: [named('callPhantom'), named('_phantom')], not: [named('phantom')] },
  driver_globals: { given: [named('__nightmare'), named('domAutomationController')] },
  driver_document_attributes: {
    given: [{ parts: { automation: { document_attributes: ['webdriver'] } } }],
    not: [{ parts: { automation: { document_attributes: ['lang'] } } }],
  },
  sequentum_external: { given: [{ parts: { automation: { sequentum: true } } }] },
  ambiguous_driver_globals: { given: [named('emit')] },
  electron_runtime: { given: [{ parts: { automation: { electron: true } } }] },
  developer_tools_detected: {
    given: [{ parts: { automation: { cdp_runtime: true } } }],
    not: [{ parts: { automation: { cdp_runtime: null } } }],
  },
  debugged_before_input: {
    given: [
      { parts: { automation: { cdp_runtime: true } } },
      {
        parts: { automation: { cdp_runtime: true } },
        behavior: { mouse: { ...naturalMouse, screen_equals_client: 3 } },
      },
    ],
    not: [
      {},
      { parts: { automation: { cdp_runtime: true } }, behavior: { mouse: naturalMouse } },
      { parts: { automation: { cdp_runtime: true } }, behavior: { keyboard: naturalKeys } },
    ],
  },
  cdp_driven_input: {
    given: [
      {
        parts: { automation: { cdp_runtime: true } },
        behavior: { mouse: { events: 2, clicks: 2, clicks_exact_center: 2 } },
      },
    ],
    not: [
      {
        parts: { automation: { cdp_runtime: true } },
        behavior: { mouse: { events: 9, clicks: 3, clicks_exact_center: 1 } },
      },
      { behavior: { mouse: { events: 2, clicks: 2, clicks_exact_center: 2 } } },
    ],
  },
  headless_user_agent: {
    given: [
      says('Mozilla/5.0 HeadlessChrome/140.0.0.0'),
      { hints: { 'sec-ch-ua': '"HeadlessChrome";v="140"' } },
      { parts: { worker: { user_agent: 'HeadlessChrome/140' } } },
    ],
  },
  verified_agent: {
    given: [identity('verified')],
    not: [{}, identity('signed'), identity('declared')],
  },
  spoofed_agent: {
    given: [identity('spoofed')],
    not: [{}, identity('declared'), identity('verified')],
  },
  declared_bot_user_agent: {
    given: [
      says('Mozilla/5.0 (compatible; Googlebot/2.1)'),
      { header: 'Mozilla/5.0; GPTBot/1.2' },
      { parts: { worker: { user_agent: 'UptimeRobot/2.0' } } },
    ],
    not: [says('Mozilla/5.0 (Linux; Android 10) Cubot/X30 Chrome/140.0.0.0')],
  },
  signature_agent_header: {
    given: [withSignatureAgent()],
    not: [{}, { facts: { document: null } }],
  },
  http_client_user_agent: {
    given: [{ header: 'curl/8.9.0' }, { header: 'python-requests/2.32' }, { header: 'node' }],
    not: [{ header: 'okhttp/4.12', facts: { platform: 'android' } }],
  },
  bot_like_user_agent: {
    given: [says('SomeCrawler/1.0 (+http://crawler.example)')],
    not: [{ client: clients.androidWebView }],
  },
  chrome_object_missing: {
    given: [{ parts: { environment: { has_chrome_object: false } } }],
    not: [
      { parts: { environment: { has_chrome_object: null } } },
      { client: clients.androidWebView },
      { client: clients.desktopSafari },
    ],
  },
  permissions_contradiction: {
    given: [
      {
        parts: {
          environment: { notification_permission: 'denied', permissions_query_state: 'prompt' },
        },
      },
    ],
    not: [
      {
        parts: {
          environment: { notification_permission: 'denied', permissions_query_state: 'denied' },
        },
      },
    ],
  },
  languages_empty: {
    given: [{ parts: { navigator: { language: '', languages: [] } } }],
    not: [{ parts: { navigator: { language: null, languages: [] } } }],
  },
  window_without_size: {
    given: [{ parts: { environment: { outer_width: 0, outer_height: 0 } } }],
    not: [{ parts: { environment: { outer_width: 0, outer_height: 0, has_focus: false } } }],
  },
  default_headless_screen: {
    given: [{ parts: { environment: { screen_width: 800, screen_height: 600 } } }],
  },
  default_viewport: {
    given: [
      { parts: { environment: { inner_width: 800, inner_height: 600 } } },
      // An emulated screen of the same size.
      {
        parts: {
          environment: {
            inner_width: 1280,
            inner_height: 720,
            outer_width: 1280,
            outer_height: 805,
            screen_width: 1280,
            screen_height: 720,
            pixel_ratio: 1,
          },
        },
      },
    ],
    not: [
      {
        parts: {
          environment: {
            inner_width: 1280,
            inner_height: 720,
            outer_width: 1280,
            outer_height: 720,
          },
        },
      },
      // Full screen at 150 % on a screen of 1920×1080.
      {
        parts: {
          environment: {
            inner_width: 1280,
            inner_height: 720,
            outer_width: 1920,
            outer_height: 1080,
            screen_width: 1920,
            screen_height: 1080,
            pixel_ratio: 1.5,
          },
        },
      },
    ],
  },
  screen_smaller_than_window: {
    given: [
      {
        parts: {
          environment: {
            inner_width: 1280,
            inner_height: 720,
            screen_width: 1280,
            screen_height: 720,
            outer_width: 1280,
            outer_height: 805,
          },
        },
      },
    ],
    not: [
      {},
      {
        parts: {
          environment: {
            inner_width: 1280,
            inner_height: 720,
            screen_width: 1280,
            screen_height: 720,
            outer_width: 1280,
            outer_height: 720,
          },
        },
      },
    ],
  },
  no_pointing_device: {
    given: [{ parts: { environment: { pointing_device: false } } }],
    not: [
      {},
      { parts: { environment: { pointing_device: null } } },
      { client: electron, parts: { environment: { pointing_device: false } } },
    ],
  },
  user_agent_overridden: {
    given: [{ parts: { navigator: { ua_data_architecture: '', ua_full_version: null } } }],
    not: [
      {},
      { client: androidChrome },
      { parts: { navigator: { ua_data_architecture: null, ua_full_version: null } } },
    ],
  },
  webdriver_property_overridden: {
    given: [
      { parts: { automation: { webdriver_own_property: true } } },
      { parts: { tamper: { navigator_own_properties: ['webdriver'] } } },
      { parts: { tamper: { patched_functions: ['navigator.webdriver'] } } },
      foreign('navigator.webdriver'),
      foreign('frame.navigator.webdriver'),
    ],
  },
  navigator_overridden: {
    given: [{ parts: { tamper: { navigator_own_properties: ['platform'] } } }],
    not: [
      {
        client: clients.brave,
        parts: { tamper: { brave: true, navigator_own_properties: ['platform'] } },
      },
    ],
  },
  patched_stealth_functions: {
    given: [{ parts: { tamper: { patched_functions: ['Permissions.query'] } } }],
    not: [{ client: clients.brave }],
  },
  rewritten_primitives: {
    given: [
      foreign('JSON.stringify', 'Reflect.get'),
      foreign('frame.Function.toString', 'frame.console.debug'),
      foreign('JSON.stringify', 'frame.Array.push'),
    ],
    not: [
      foreign('JSON.stringify'),
      foreign('JSON.stringify', 'frame.JSON.stringify'),
      foreign('Function.toString', 'console.debug', 'Array.push', 'JSON.parse'),
      foreign('fetch', 'frame.fetch', 'frame.JSON.parse'),
      {
        client: clients.brave,
        parts: { tamper: { foreign_primitives: ['frame.Function.toString', 'frame.Object.keys'] } },
      },
    ],
  },
  rewritten_navigator: {
    given: [
      foreign('navigator.userAgent'),
      foreign('frame.navigator.plugins'),
      foreign('worker.navigator.platform'),
    ],
    not: [
      foreign('navigator.webdriver', 'fetch'),
      { client: clients.brave, parts: { tamper: { foreign_primitives: ['navigator.plugins'] } } },
    ],
  },
  realm_differences: {
    given: [{ parts: { tamper: { realm_differences: ['frame.deviceMemory'] } } }],
    not: [
      {
        parts: {
          tamper: { realm_differences: ['worker.hardwareConcurrency', 'frame.screen.width'] },
        },
      },
      { client: clients.brave, parts: { tamper: { realm_differences: ['frame.deviceMemory'] } } },
    ],
  },
  wrapped_page_functions: {
    given: [
      foreign('fetch'),
      foreign('Function.toString'),
      foreign('frame.JSON.parse'),
      foreign('JSON.stringify', 'frame.JSON.stringify'),
    ],
    not: [foreign('navigator.platform'), foreign('JSON.stringify', 'Reflect.get')],
  },
  patched_functions: {
    given: [{ parts: { tamper: { patched_functions: ['Function.toString'] } } }],
    not: [{ client: clients.brave }],
  },
  stealth_iframe_proxy: { given: [{ parts: { tamper: { iframe_srcdoc_proxy: true } } }] },
  faked_chrome_runtime: { given: [{ parts: { tamper: { chrome_runtime_faked: true } } }] },
  imitated_plugins: {
    given: [{ parts: { navigator: { plugins_genuine: false } } }],
    not: [{ parts: { navigator: { plugins_genuine: null } } }],
  },
  webgl_parameters_spoofed: { given: [{ parts: { tamper: { webgl_parameter_mismatch: true } } }] },
  fingerprint_noise: {
    given: [{ parts: { canvas: { noise_detected: true } } }],
    not: [{ client: clients.brave }, { client: clients.resistingFirefox }],
  },
  privacy_hardening_indicators: {
    given: [{ client: clients.brave }, { client: clients.resistingFirefox }],
    not: [
      { client: clients.desktopFirefox },
      { parts: { tamper: { timer_precision_reduced: true } } },
    ],
  },
  engine_mismatch: {
    given: [
      { parts: { engine: { name: 'SpiderMonkey' } } },
      // Chrome on iOS has Apple's engine, too.
      {
        client: clients.iphoneSafari,
        parts: { navigator: { user_agent: chromeOnIos }, engine: { name: 'V8' } },
      },
    ],
    not: [
      { client: clients.iphoneSafari },
      { ...says(chromeOnIos), client: clients.iphoneSafari },
      { parts: { engine: { name: null } } },
    ],
  },
  platform_mismatch: {
    given: [
      { parts: { navigator: { platform: 'Win32' } } },
      { parts: { navigator: { ua_data_platform: 'Linux' } } },
    ],
    not: [
      { parts: { navigator: { platform: 'iPad', max_touch_points: 5 } } },
      { client: androidChrome },
    ],
  },
  worker_mismatch: {
    given: [
      { parts: { worker: nobody } },
      { client: clients.iphoneSafari, parts: { worker: nobody } },
    ],
    not: [
      { parts: { worker: { ...nobody, available: null } } },
      { client: clients.brave },
      // An iPad that asks for the page of a desktop.
      {
        client: clients.desktopSafari,
        parts: { navigator: { max_touch_points: 5 }, worker: nobody },
      },
    ],
  },
  iframe_mismatch: {
    given: [{ parts: { iframe: nobody } }],
    not: [{ parts: { iframe: { available: true, user_agent: null } } }],
  },
  gpu_system_mismatch: {
    given: [{ parts: { webgl: { renderer: 'ANGLE (NVIDIA, Direct3D11 vs_5_0)' } } }],
    not: [{ client: clients.iphoneSafari }],
  },
  worker_gpu_mismatch: {
    given: [{ parts: { worker: { webgl_renderer: 'ANGLE (Intel)' } } }],
    not: [{ client: clients.bareChromium }, { parts: { worker: { webgl_renderer: null } } }],
  },
  languages_mismatch: { given: [{ parts: { navigator: { language: 'fr-FR' } } }] },
  product_sub_mismatch: {
    given: [{ parts: { navigator: { product_sub: '20100101' } } }],
    not: [{ client: clients.resistingFirefox }],
  },
  phone_without_touch: {
    given: [
      {
        client: androidChrome,
        parts: { navigator: { max_touch_points: 0 }, environment: { pointer_coarse: false } },
      },
    ],
    not: [{}],
  },
  phone_with_desktop_graphics: {
    given: [
      {
        client: androidChrome,
        parts: {
          webgl: {
            renderer: 'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero)), SwiftShader)',
          },
        },
      },
      {
        client: androidChrome,
        parts: { worker: { webgl_renderer: 'ANGLE (NVIDIA, GeForce RTX 3060, OpenGL)' } },
      },
    ],
    not: [
      { client: androidChrome },
      { client: clients.iphoneSafari },
      {
        client: androidChrome,
        parts: { webgl: { renderer: 'ANGLE (Samsung, AMD Xclipse 940, OpenGL ES 3.2)' } },
      },
      { parts: { webgl: { renderer: 'SwiftShader' } } },
    ],
  },
  phone_on_desktop_system: {
    given: [
      { client: androidChrome, parts: { worker: { platform: 'Linux x86_64' } } },
      { client: clients.iphoneSafari, parts: { navigator: { platform: 'MacIntel' } } },
    ],
    not: [{ client: androidChrome }, { client: clients.iphoneSafari }, {}],
  },
  phone_without_bars: {
    given: [
      {
        client: androidChrome,
        parts: {
          environment: {
            inner_width: 412,
            inner_height: 915,
            screen_width: 412,
            screen_height: 915,
          },
        },
      },
    ],
    not: [{ client: androidChrome }, { client: clients.iphoneSafari }],
  },
  apple_device_contradicted: {
    given: [
      { client: clients.iphoneSafari, parts: { navigator: { max_touch_points: 0 } } },
      { client: clients.iphoneSafari, parts: { navigator: { device_memory: 8 } } },
      { client: clients.iphoneSafari, parts: { navigator: { platform: 'x' } } },
      { client: clients.iphoneSafari, parts: { navigator: { vendor: 'Google Inc.' } } },
      { client: clients.iphoneSafari, parts: { environment: { pixel_ratio: 2.625 } } },
      { client: clients.iphoneSafari, parts: { webgl: { renderer: 'Adreno (TM) 740' } } },
      { client: clients.iphoneSafari, parts: { fonts: { detected: ['Segoe UI'] } } },
      { client: clients.iphoneSafari, parts: { engine: { name: 'V8' } } },
      { client: iphoneWebView, parts: { navigator: { connection_rtt: 50 } } },
      { client: ipad, parts: { environment: { pixel_ratio: 3 } } },
      { client: clients.desktopSafari, parts: { navigator: { max_touch_points: 10 } } },
      {
        client: clients.desktopSafari,
        parts: { navigator: { brands: [{ brand: 'Chromium', version: '140' }] } },
      },
    ],
    not: [
      { client: clients.iphoneSafari },
      { client: clients.desktopSafari },
      { client: iphoneWebView },
      { client: ipad },
      // An iPad that asks for a desktop page.
      { client: clients.desktopSafari, parts: { navigator: { max_touch_points: 5 } } },
      // Lockdown mode.
      { client: clients.iphoneSafari, parts: { webgl: { renderer: null, vendor: null } } },
      { client: desktopChrome },
      { client: androidChrome },
    ],
  },
  apple_screen_unknown: {
    given: [
      {
        client: clients.iphoneSafari,
        parts: { environment: { screen_width: 400, screen_height: 800 } },
      },
      {
        client: clients.iphoneSafari,
        parts: { environment: { screen_width: 390, screen_height: 844, pixel_ratio: 2 } },
      },
    ],
    not: [
      { client: clients.iphoneSafari },
      // Turned, and with Display Zoom.
      {
        client: clients.iphoneSafari,
        parts: { environment: { screen_width: 844, screen_height: 390, pixel_ratio: 3 } },
      },
      {
        client: clients.iphoneSafari,
        parts: { environment: { screen_width: 320, screen_height: 693, pixel_ratio: 3 } },
      },
      { client: ipad, parts: { environment: { screen_width: 507, screen_height: 1000 } } },
    ],
  },
  phone_with_computer_parts: {
    given: [
      {
        client: androidChrome,
        parts: { navigator: { plugins: ['PDF Viewer'], device_memory: 16 } },
      },
      {
        client: androidChrome,
        parts: { ...withoutGraphics, fonts: { detected: ['DejaVu Sans'] } },
      },
      {
        client: androidChrome,
        parts: {
          ...withoutGraphics,
          tamper: { foreign_primitives: ['worker.navigator.platform'] },
        },
      },
      {
        client: androidChrome,
        parts: { ...withoutGraphics, environment: { orientation_type: 'landscape-primary' } },
      },
    ],
    not: [
      { client: androidChrome },
      { client: androidChrome, parts: withoutGraphics },
      { client: androidChrome, parts: { navigator: { plugins: ['PDF Viewer'] } } },
      {
        client: androidChrome,
        parts: { ...said({ webgl: 'late' }), navigator: { plugins: ['PDF Viewer'] } },
      },
      { client: desktopChrome, parts: { ...withoutGraphics, navigator: { device_memory: 16 } } },
      // A user agent switcher on a computer.
      {
        client: androidChrome,
        parts: {
          navigator: { plugins: ['PDF Viewer'], device_memory: 16 },
          tamper: { navigator_own_properties: ['userAgent'] },
        },
      },
    ],
  },
  user_agent_replaced: {
    given: [
      { parts: { tamper: { navigator_own_properties: ['userAgent'] } }, header: firefoxAgent },
      { parts: { tamper: { foreign_primitives: ['navigator.platform'] }, worker: nobody } },
    ],
    not: [
      { parts: { tamper: { navigator_own_properties: ['userAgent'] } } },
      { header: firefoxAgent },
      {
        client: clients.resistingFirefox,
        parts: { tamper: { navigator_own_properties: ['userAgent'] }, worker: nobody },
      },
    ],
  },
  timezone_contradiction: { given: [{ parts: { tamper: { timezone_mismatch: true } } }] },
  unreadable_observations: { given: [{ facts: { unreadable: 1 } }] },
  conflicting_replay: { given: [{ facts: { conflicts: 1 } }] },
  stale_snapshot: {
    given: [
      { parts: { proofs: { answer_mac: null, challenge: 'old', timing_nonce: 'timing-1' } } },
      { parts: { proofs: { answer_mac: null, challenge: 'challenge-1', timing_nonce: 'old' } } },
      { parts: { proofs: { answer_mac: 'not base64url' } } },
      { parts: { proofs: { canvas_challenge_hash: 'of another drawing' } } },
      { parts: { proofs: { engine_answers: [] } } },
    ],
    not: [{}, { parts: { proofs: echo } }],
  },
  proofs_missing: {
    given: [
      { parts: { proofs: { ...echo, challenge: null } } },
      { parts: { proofs: { ...echo, timing_nonce: null } } },
    ],
    not: [{}, { parts: { proofs: echo } }],
  },
  engine_contradicted: {
    given: [says(firefoxAgent), { parts: { proofs: wrongProofs } }],
    not: [{}, { client: clients.desktopFirefox }, says('Mozilla/5.0 of another')],
  },
  engine_unproven: {
    given: [{ parts: { proofs: { engine_answers: [] } } }, says('Mozilla/5.0 of another')],
    not: [{}, { client: clients.iphoneSafari }, app({ os_name: 'iOS' })],
  },
  answers_to_come: {
    given: [{ facts: { answers: { ...noAnswers, engine: 'to_come' } } }],
    not: [
      {},
      { ...app({ os_name: 'iOS' }), facts: { answers: { ...noAnswers, engine: 'to_come' } } },
    ],
  },
  engine_not_learned: {
    given: [
      { facts: { answers: unlearned } },
      {
        facts: { answers: unlearned },
        behavior: { mouse: { ...naturalInput.mouse, coalesced: 0 } },
      },
      {
        facts: { answers: unlearned, repeats: repeatsOf(1, { behavior_sessions: all(2) }) },
        behavior: naturalInput,
      },
    ],
    not: [
      {},
      { facts: { answers: unlearned }, behavior: naturalInput },
      { ...app({ os_name: 'iOS' }), facts: { answers: unlearned } },
    ],
  },
  canvas_contradicted: {
    given: [
      {
        facts: {
          answers: { ...noAnswers, proof: 'keyed', engine: 'as_claimed', canvas: 'otherwise' },
        },
      },
    ],
    not: [{}],
  },
  telemetry_incomplete: {
    given: [
      { client: { snapshot: {} } },
      { parts: { environment: { timezone: null } } },
      { parts: { storage: { cookies: null } } },
      { parts: { worker: { user_agent: null } } },
      { parts: { webgl: { renderer: null } } },
      { parts: { proofs: { canvas_challenge_hash: null } } },
      {
        parts: {
          worker: { user_agent: null },
          tamper: { examined: null },
          ...said({ worker: 'blocked' }),
        },
      },
      // Chrome always has the interface for sound.
      { parts: { audio: { hash: null }, ...said({ audio: 'unsupported' }) } },
    ],
    not: [
      {},
      { parts: { webgl: { renderer: null }, ...said({ webgl: 'unsupported' }) } },
      // What comes after a part that is late is late, too.
      {
        parts: {
          worker: { user_agent: null },
          tamper: { examined: null },
          ...said({ worker: 'late' }),
        },
      },
      app({ os_name: 'iOS' }),
    ],
  },
  telemetry_withheld: {
    given: [
      {
        parts: {
          webgl: { renderer: null },
          audio: { hash: null },
          ...said({ webgl: 'blocked', audio: 'blocked' }),
        },
      },
    ],
    not: [
      {},
      { parts: { webgl: { renderer: null }, ...said({ webgl: 'blocked' }) } },
      // A page's policy may block workers, on a machine without WebGL.
      {
        parts: {
          worker: { user_agent: null },
          webgl: { renderer: null },
          ...said({ worker: 'blocked', webgl: 'unsupported' }),
        },
      },
      // Fonts are measured in a canvas, and what is late may come.
      {
        parts: {
          canvas: { hash: null },
          fonts: { detected_count: null },
          audio: { hash: null },
          ...said({ canvas: 'blocked', fonts: 'blocked', audio: 'late' }),
        },
      },
    ],
  },
  telemetry_late: {
    given: [{ parts: { worker: { user_agent: null }, ...said({ worker: 'late' }) } }],
    not: [{}, { parts: { worker: { user_agent: null }, ...said({ worker: 'blocked' }) } }],
  },
  impossible_values: {
    given: [
      { parts: { environment: { timezone_offset_min: 9999 } } },
      { parts: { environment: { timezone: 'Mars/Olympus_Mons' } } },
      { parts: { engine: { eval_length: 37 } } },
      { parts: { navigator: { brands: [{ brand: 'Chromium', version: '99' }] } } },
      { behavior: { mouse: { events: 1, moves: 1_000_000, duration_ms: 5 } } },
      { behavior: { mouse: { events: 1_000_000, moves: 1_000_000, duration_ms: 5 } } },
    ],
    not: [
      {},
      { parts: { environment: { timezone: 'Europe/Kyiv' } } },
      { behavior: { mouse: { events: 40, moves: 40 } } },
    ],
  },
  window_larger_than_screen: {
    given: [{ parts: { environment: { outer_width: 5000 } } }],
    not: [{}, { parts: { environment: { outer_width: 1528, screen_width: 1512 } } }],
  },
  session_identity_changed: { given: [{ facts: { identityChanges: 1 } }] },
  user_agent_header_mismatch: {
    given: [
      { header: 'Mozilla/5.0 of another', parts: { worker: { user_agent: null } } },
      {
        header: 'Mozilla/5.0 of another',
        parts: { iframe: { user_agent: 'Mozilla/5.0 of another' } },
      },
      { header: 'Mozilla/5.0 of another', parts: { proofs: wrongProofs } },
    ],
    not: [{ header: '' }, { header: 'Mozilla/5.0 of another' }],
  },
  user_agent_rewritten_on_the_way: {
    given: [{ header: 'Mozilla/5.0 of another' }, { header: `${firefoxAgent} Proxy/4.1` }],
    not: [
      {},
      { header: '' },
      { header: 'Mozilla/5.0 of another', parts: { worker: { user_agent: null } } },
    ],
  },
  client_hints_mismatch: {
    given: [
      { hints: { 'sec-ch-ua-platform': '"Windows"' } },
      { hints: { 'sec-ch-ua-mobile': '?1' } },
    ],
    not: [{ client: androidChrome }],
  },
  accept_language_mismatch: {
    given: [{ facts: { ...factsWithLanguage('fr-FR,fr;q=0.9') } }],
    not: [{ facts: { ...factsWithLanguage('*') } }],
  },
  sparse_request_headers: {
    given: [{ facts: documentWithout(['host', 'accept']) }],
    not: [{ facts: documentWithout([]) }],
  },
  browser_with_tool_handshake: {
    given: [
      { facts: withJa4('t13d1312h2_f57a46bbacb6_ab7e3b40a677') },
      { facts: withJa4('t13d181100_85036bcba153_d41ae481755e') },
    ],
    not: [
      { facts: withJa4('t13d1517h2_8daaf6152771_cb7bf5808d99') },
      { facts: withJa4('t13d1617h2_86a278354501_3cbfd9057e0d') },
      { facts: withJa4('t13d1312h2_f57a46bbacb6_000000000000') },
      {},
    ],
  },
  hosting_network: {
    given: [
      { facts: anonymity({ hosting: true }) },
      { facts: inNetwork('16509', { hosting: true }) },
      { facts: anonymity({ hosting: true, tor: true }) },
    ],
    not: [
      { facts: anonymity({ hosting: true, vpn: true }) },
      { facts: anonymity({ hosting: true, relay: true }) },
      // Zscaler, a gateway of companies; Proton VPN; Apple's relay.
      { facts: inNetwork('22616', { hosting: true }) },
      { facts: inNetwork('209103', { hosting: true }) },
      { facts: inNetwork('36183', { hosting: true }) },
    ],
  },
  vpn_associated_ip: {
    given: [{ facts: anonymity({ vpn: true }) }, { facts: anonymity({ relay: true }) }],
  },
  anonymous_proxy: {
    given: [{ facts: anonymity({ tor: true }) }, { facts: anonymity({ proxy: true }) }],
  },
  timezone_location_mismatch: {
    given: [{ facts: { network: { ...skipped, location } } }],
    not: [{ client: clients.bareChromium, facts: { network: { ...skipped, location } } }],
  },
  software_rendered_graphics_path: {
    given: [{ client: clients.bareChromium }, { client: clients.headlessChrome }],
  },
  utc_timezone: {
    given: [{ parts: { environment: { timezone: 'UTC' } } }],
    not: [{ client: clients.resistingFirefox }],
  },
  bare_machine: {
    given: [{ client: clients.bareChromium }],
    not: [{ client: clients.resistingFirefox }, { parts: { media: { device_count: 0 } } }],
  },
  very_many_cores: {
    given: [{ parts: { navigator: { hardware_concurrency: 96 } } }],
    not: [{ parts: { navigator: { hardware_concurrency: 64 } } }],
  },
  impossible_device_memory: {
    given: [{ parts: { navigator: { device_memory: 7 } } }],
    not: [{ parts: { navigator: { device_memory: null } } }],
  },
  untrusted_input: {
    given: [{ behavior: { mouse: { events: 8, untrusted: 5 } } }],
    not: [{ behavior: { mouse: { events: 80, untrusted: 5 } } }],
  },
  exact_center_clicks: {
    given: [{ behavior: { mouse: { events: 9, clicks: 2, clicks_exact_center: 2 } } }],
    not: [{ behavior: { mouse: { events: 9, clicks: 1, clicks_exact_center: 1 } } }],
  },
  clicks_without_movement: {
    given: [{ behavior: { mouse: { events: 2, clicks: 2, clicks_without_move: 2 } } }],
    not: [{ behavior: { mouse: { events: 2, clicks_without_move: 2 }, touch: { events: 4 } } }],
  },
  pressed_without_pressure: {
    given: [{ behavior: { mouse: { events: 3, moves: 2, presses: 1, pressureless: 1 } } }],
    not: [
      { behavior: { mouse: { events: 3, moves: 2, presses: 1 } } },
      {
        client: clients.desktopSafari,
        behavior: { mouse: { events: 3, presses: 1, pressureless: 1 } },
      },
      {
        client: clients.desktopFirefox,
        behavior: { mouse: { events: 3, presses: 1, pressureless: 1 } },
      },
      { client: androidChrome, behavior: { mouse: { events: 3, presses: 1, pressureless: 1 } } },
    ],
  },
  uneven_wheel_notches: {
    given: [{ client: x11Chrome, behavior: { scroll: { events: 20, wheel: 5, uneven_wheel: 4 } } }],
    not: [
      { behavior: { scroll: { events: 20, wheel: 5, uneven_wheel: 4 } } },
      { client: x11Chrome, behavior: { scroll: { events: 20, wheel: 5, uneven_wheel: 2 } } },
      { client: x11Chrome, behavior: { scroll: { events: 90, wheel: 40, uneven_wheel: 4 } } },
      {
        client: clients.desktopFirefox,
        behavior: { scroll: { events: 20, wheel: 5, uneven_wheel: 4 } },
      },
    ],
  },
  unsynchronized_input_clock: {
    given: [
      { client: x11Chrome, behavior: { mouse: { events: 10, moves: 9, off_clock: 6 } } },
      { client: x11Chrome, behavior: { keyboard: { events: 6, keys: 6, off_clock: 8 } } },
    ],
    not: [
      { behavior: { mouse: { events: 10, moves: 9, off_clock: 6 } } },
      { client: x11Chrome, behavior: { mouse: { events: 90, moves: 89, off_clock: 6 } } },
      {
        client: clients.desktopFirefox,
        behavior: { mouse: { events: 10, moves: 9, off_clock: 6 } },
      },
      {
        client: x11Chrome,
        parts: { navigator: { max_touch_points: 5 } },
        behavior: { mouse: { events: 10, moves: 9, off_clock: 6 } },
      },
      { client: qtWebEngine, behavior: { mouse: { events: 10, moves: 9, off_clock: 6 } } },
      { client: electron, behavior: { mouse: { events: 10, moves: 9, off_clock: 6 } } },
    ],
  },
  instant_clicks: {
    given: [{ behavior: { mouse: { events: 9, presses: 3, instant_presses: 2 } } }],
    not: [
      { behavior: { mouse: { events: 9, presses: 1, instant_presses: 1 } } },
      { behavior: { mouse: { events: 9, presses: 9, instant_presses: 2 } } },
    ],
  },
  scrolls_without_cause: {
    given: [{ behavior: { scroll: { events: 30, uncaused: 3 } } }],
    not: [{ behavior: { scroll: { events: 30, uncaused: 3, wheel: 9 } } }],
  },
  capitals_without_shift: {
    given: [
      { behavior: { keyboard: { events: 9, keys: 9, shiftless: 1 } } },
      {
        client: clients.desktopFirefox,
        behavior: { keyboard: { events: 9, keys: 9, shiftless: 1 } },
      },
    ],
    not: [
      {
        client: clients.desktopSafari,
        behavior: { keyboard: { events: 9, keys: 9, shiftless: 1 } },
      },
      {
        client: clients.iphoneSafari,
        behavior: { keyboard: { events: 9, keys: 9, shiftless: 1 } },
      },
      { client: androidChrome, behavior: { keyboard: { events: 9, keys: 9, shiftless: 1 } } },
    ],
  },
  malformed_key_events: {
    given: [{ behavior: { keyboard: { events: 9, keys: 9, malformed: 1 } } }],
    not: [
      { client: androidChrome, behavior: { keyboard: { events: 9, keys: 9, malformed: 1 } } },
      {
        client: clients.desktopFirefox,
        behavior: { keyboard: { events: 9, keys: 9, malformed: 1 } },
      },
      { client: electron, behavior: { keyboard: { events: 9, keys: 9, malformed: 1 } } },
    ],
  },
  characters_without_keys: {
    given: [{ behavior: { form: { events: 9 }, keyboard: { unkeyed: 9 } } }],
    not: [
      { behavior: { keyboard: { events: 9, keys: 9, unkeyed: 9 } } },
      { client: androidChrome, behavior: { form: { events: 9 }, keyboard: { unkeyed: 9 } } },
    ],
  },
  instant_key_presses: {
    given: [{ behavior: { keyboard: { events: 9, keys: 9, hold_mean: 3 } } }],
    not: [
      { behavior: { keyboard: { events: 9, keys: 9, hold_mean: 60 } } },
      { behavior: { keyboard: { events: 9, keys: 9 } } },
      // The keyboard on a phone's screen lets each key go at once.
      { client: androidChrome, behavior: { keyboard: { events: 9, keys: 9, hold_mean: 3 } } },
    ],
  },
  emulated_touch: {
    given: [
      { client: androidChrome, behavior: { touch: { ...naturalTouch, instant: 3 } } },
      { client: androidChrome, behavior: { touch: { ...naturalTouch, plain: 4 } } },
      { client: androidChrome, behavior: { touch: { ...naturalTouch, displaced: 4 } } },
      { client: clients.iphoneSafari, behavior: { touch: { ...naturalTouch, instant: 3 } } },
    ],
    not: [
      // A finger, a quick tap among many, and a stylus, whose contact has hardly a size.
      { client: androidChrome, behavior: { touch: naturalTouch } },
      { client: androidChrome, behavior: { touch: { ...naturalTouch, touches: 9, instant: 2 } } },
      { client: androidChrome, behavior: { touch: { ...naturalTouch, plain: 1 } } },
      // Where a touch lies on the screen of an iPhone is not known.
      { client: clients.iphoneSafari, behavior: { touch: { ...naturalTouch, displaced: 4 } } },
      { behavior: { touch: { ...naturalTouch, instant: 3 } } },
    ],
  },
  mouse_on_phone: {
    given: [{ client: androidChrome, behavior: { mouse: { events: 3, moves: 1, presses: 1 } } }],
    not: [
      // A stylus over the screen, and a finger, whose click comes without a press of a button.
      { client: androidChrome, behavior: { mouse: { events: 30, moves: 30 } } },
      { client: androidChrome, behavior: { mouse: { events: 1, clicks: 1 }, touch: naturalTouch } },
      { behavior: { mouse: { events: 3, moves: 1, presses: 1 } } },
    ],
  },
  keyboard_on_phone: {
    given: [
      { client: androidChrome, behavior: { keyboard: { events: 20, keys: 20, letters: 18 } } },
    ],
    not: [
      { client: androidChrome, behavior: { keyboard: { events: 20, keys: 20, letters: 0 } } },
      {
        client: clients.iphoneSafari,
        behavior: { keyboard: { events: 20, keys: 20, letters: 18 } },
      },
      { behavior: { keyboard: { events: 20, keys: 20, letters: 18 } } },
    ],
  },
  pointer_jumps: {
    given: [
      { behavior: { mouse: { events: 9, moves: 6, presses: 3, jumps: 2 } } },
      { behavior: { mouse: { events: 10, moves: 5, presses: 5 } } },
    ],
    not: [
      { behavior: { mouse: { events: 99, moves: 90, presses: 9, jumps: 2 } } },
      { behavior: { mouse: { events: 60, moves: 50, presses: 5 } } },
      { behavior: { mouse: { events: 6, moves: 3, presses: 3 } } },
    ],
  },
  movement_never_coalesced: {
    given: [{ behavior: { mouse: { events: 70, moves: 70, single: 70 } } }],
    not: [
      { behavior: { mouse: { events: 70, moves: 70, single: 69, coalesced: 1 } } },
      { behavior: { mouse: { events: 50, moves: 50, single: 50 } } },
      // A page without HTTPS, and an SDK of before, do not say.
      { behavior: { mouse: { events: 70, moves: 70 } } },
      { client: clients.desktopSafari, behavior: { mouse: { events: 70, moves: 70, single: 70 } } },
    ],
  },
  lone_click: {
    given: [
      { behavior: { mouse: { events: 2, moves: 1, clicks: 1, presses: 1, instant_presses: 1 } } },
      { behavior: { mouse: { events: 2, moves: 1, clicks: 1, presses: 1 } } },
    ],
    not: [
      // Who rests on a target until it is clicked has moved there.
      { behavior: { mouse: { events: 30, moves: 29, clicks: 1, presses: 1, instant_presses: 1 } } },
      { behavior: { mouse: { events: 4, moves: 1, clicks: 2, presses: 2 } } },
    ],
  },
  unnatural_key_holds: {
    given: [
      { behavior: { keyboard: { events: 12, keys: 12, hold_mean: 70, hold_std: 3 } } },
      { behavior: { keyboard: { events: 12, keys: 12, hold_mean: 27, hold_std: 9 } } },
    ],
    not: [
      { behavior: { keyboard: { ...naturalKeys, keys: 20 } } },
      { behavior: { keyboard: { events: 9, keys: 9, hold_mean: 70, hold_std: 3 } } },
      {
        client: androidChrome,
        behavior: { keyboard: { events: 12, keys: 12, hold_mean: 27, hold_std: 1 } },
      },
    ],
  },
  keys_without_gaps: {
    given: [{ behavior: { keyboard: { events: 12, keys: 12, abutting: 9 } } }],
    not: [
      { behavior: { keyboard: { ...naturalKeys, keys: 20, abutting: 2 } } },
      { client: androidChrome, behavior: { keyboard: { events: 12, keys: 12, abutting: 9 } } },
    ],
  },
  typing_without_overlap: {
    given: [{ behavior: { keyboard: { events: 40, keys: 40, interval_mean: 100 } } }],
    not: [
      { behavior: { keyboard: { events: 40, keys: 40, interval_mean: 100, rollovers: 3 } } },
      // With two fingers nobody is that fast.
      { behavior: { keyboard: { events: 40, keys: 40, interval_mean: 240 } } },
      {
        client: androidChrome,
        behavior: { keyboard: { events: 40, keys: 40, interval_mean: 100 } },
      },
    ],
  },
  typing_right_after_press: {
    given: [
      {
        behavior: {
          keyboard: { events: 40, keys: 40, hasty: 2 },
          mouse: { events: 3, presses: 3 },
        },
      },
    ],
    not: [{ behavior: { keyboard: { events: 40, keys: 40, hasty: 1 } } }],
  },
  focus_without_cause: {
    given: [{ behavior: { form: { events: 3, focuses: 3, uncaused_focuses: 2 } } }],
    not: [{ behavior: { form: { events: 3, focuses: 3, uncaused_focuses: 1 } } }],
  },
  filled_without_focus: {
    given: [{ behavior: { form: { events: 3, unfocused_inputs: 2 } } }],
    not: [{ behavior: { form: { events: 3, silent_changes: 2, unfocused_inputs: 1 } } }],
  },
  submitted_without_input: {
    given: [{ behavior: { form: { events: 9, submits: 1, silent_changes: 3 } } }],
    not: [
      // A password manager fills two fields, and whoever sends a form does something.
      { behavior: { form: { events: 9, submits: 1, silent_changes: 2 } } },
      { behavior: { form: { events: 9, submits: 1, silent_changes: 3, autofills: 3 } } },
      {
        behavior: {
          form: { events: 9, submits: 1, silent_changes: 3 },
          mouse: { events: 0, activations: 1 },
        },
      },
      {
        behavior: {
          form: { events: 9, submits: 1, silent_changes: 3 },
          keyboard: { events: 1, keys: 1 },
        },
      },
    ],
  },
  protocol_pointer_coordinates: {
    given: [
      { behavior: { mouse: { events: 20, moves: 20, screen_equals_client: 19 } } },
      { behavior: { mouse: { events: 20, moves: 20, frameless: 20 } } },
    ],
    not: [{ behavior: { mouse: { events: 200, moves: 200, screen_equals_client: 19 } } }],
  },
  uniform_typing: {
    given: [{ behavior: { keyboard: { events: 20, keys: 12, interval_std: 2 } } }],
    not: [{ behavior: { keyboard: { events: 20, keys: 12, interval_std: null } } }],
  },
  superhuman_typing: {
    given: [
      { behavior: { keyboard: { events: 40, keys: 20, interval_mean: 8, interval_std: 30 } } },
    ],
  },
  straight_pointer_paths: {
    given: [{ behavior: { mouse: { events: 30, moves: 30, straightness: 1, speed_std: 0.01 } } }],
    not: [{ behavior: { mouse: { events: 30, moves: 30 } } }],
  },
  silent_form_fill: {
    given: [{ behavior: { form: { events: 3, silent_changes: 2 } } }],
    not: [{ behavior: { form: { events: 3, silent_changes: 2, autofills: 1 } } }],
  },
  text_inserted_at_once: {
    given: [{ behavior: { form: { events: 3, silent_changes: 2, inserted: 2 } } }],
    not: [
      { behavior: { form: { events: 3, silent_changes: 2, inserted: 1 } } },
      {
        client: clients.iphoneSafari,
        behavior: { form: { events: 3, silent_changes: 2, inserted: 2 } },
      },
    ],
  },
  instant_submit: {
    given: [{ behavior: { form: { events: 3, submits: 1, time_to_submit_ms: 100 } } }],
    not: [{ behavior: { form: { events: 3, time_to_submit_ms: 100 } } }],
  },
  native_hooks: { given: [app({ hooks: true })], not: [app({ hooks: null })] },
  native_emulator: { given: [app({ simulator_or_emulator: true })] },
  native_code_signing_invalid: { given: [app({ code_signing_invalid: true })] },
  native_jailbreak_or_root: { given: [app({ jailbreak_or_root: true })] },
  native_debugger: { given: [app({ debugger: true })] },
  native_claims_in_browser: {
    given: [{ ...app({ hooks: false }), platform: 'web' }],
    not: [app({ hooks: false }), {}],
  },
  native_observations_missing: {
    given: [{ platform: 'ios' }, app({ hooks: false }), app({ device_model: null })],
    not: [app({ device_model: 'Pixel 8' }), {}],
  },
  native_checks_missing: {
    given: [app({ device_model: 'iPhone15,2' })],
    not: [app({ device_model: 'iPhone15,2', hooks: false }), app({ os_name: 'iOS' })],
  },
  app_unattested: {
    given: [
      app({ device_model: 'Pixel 8', hooks: false }),
      { platform: 'ios' },
      attested('unverified', 'unknown_key'),
    ],
    not: [{}, attested('valid'), attested('invalid', 'nonce')],
  },
  attestation_invalid: {
    given: [attested('invalid', 'nonce'), attested('invalid', 'malformed')],
    not: [attested('valid'), attested('invalid', 'counter'), attested('invalid', 'device')],
  },
  attestation_counter: {
    given: [attested('invalid', 'counter')],
    not: [attested('invalid', 'nonce'), attested('valid')],
  },
  device_not_trusted: {
    given: [attested('invalid', 'device')],
    not: [attested('invalid', 'app'), attested('valid')],
  },
  browser_user_agent_in_app: {
    given: [{ ...app({ device_model: 'Pixel 8' }), header: 'Mozilla/5.0 (X11; Linux x86_64)' }],
    not: [
      { ...app({ device_model: 'Pixel 8' }), header: 'okhttp/4.12' },
      { header: 'Mozilla/5.0' },
    ],
  },
  browser_profile_consistent: {
    given: [{}],
    not: [
      { parts: { worker: { available: null } } },
      { client: clients.bareChromium },
      { parts: { worker: { platform: 'Linux x86_64' } } },
      { parts: { tamper: { webgl_parameter_mismatch: true } } },
    ],
  },
  fresh_proofs: { given: [{}], not: [{ parts: { proofs: { ...echo, challenge: null } } }] },
  natural_pointer_movement: {
    given: [
      { behavior: { mouse: naturalMouse } },
      { client: x11Chrome, behavior: { mouse: naturalMouse } },
      { client: clients.desktopFirefox, behavior: { mouse: naturalMouse } },
    ],
    not: [
      { behavior: { mouse: { ...naturalMouse, straightness: 1 } } },
      // A program that waits for each event never has two of them put together.
      { behavior: { mouse: { ...naturalMouse, coalesced: 0 } } },
      { behavior: { mouse: { ...naturalMouse, pressureless: 1 } } },
      { behavior: { mouse: naturalMouse, keyboard: { events: 9, keys: 9, shiftless: 1 } } },
      { client: x11Chrome, behavior: { mouse: { ...naturalMouse, off_clock: 30 } } },
    ],
  },
  natural_typing: {
    given: [
      {
        behavior: { keyboard: naturalKeys },
      },
    ],
    not: [
      { behavior: { keyboard: { ...naturalKeys, untrusted: 3 } } },
      { behavior: { keyboard: { ...naturalKeys, rollovers: 0, corrections: 3 } } },
      { behavior: { keyboard: { ...naturalKeys, hold_mean: 3, hold_std: 1 } } },
      { behavior: { keyboard: naturalKeys, mouse: { events: 1, presses: 1, pressureless: 1 } } },
    ],
  },
  natural_touch: {
    given: [{ behavior: { touch: naturalTouch } }],
    not: [
      { behavior: { touch: { ...naturalTouch, radius_std: 0 } } },
      { behavior: { touch: { ...naturalTouch, interval_std: 1 } } },
      { behavior: { touch: naturalTouch }, parts: { automation: { cdp_runtime: true } } },
      // A program varies the contact as it likes.
      { client: androidChrome, behavior: { touch: { ...naturalTouch, displaced: 4 } } },
      {
        client: androidChrome,
        behavior: { touch: naturalTouch, keyboard: { events: 20, keys: 20, letters: 18 } },
      },
      {
        client: androidChrome,
        behavior: { touch: naturalTouch },
        parts: { worker: { platform: 'Linux x86_64' } },
      },
    ],
  },
  replayed_behavior: repeating('behavior_sessions', 2),
  replayed_session: {
    given: [
      {
        facts: { repeats: repeatsOf(1, { behavior_sessions: all(2), snapshot_sessions: all(2) }) },
      },
    ],
    not: [
      { facts: { repeats: repeatsOf(1, { behavior_sessions: all(2) }) } },
      { facts: { repeats: repeatsOf(1, { snapshot_sessions: all(2) }) } },
    ],
  },
  kept_id_of_another_device: {
    given: [{ facts: { isCopied: true } }],
    not: [{ facts: { isCopied: false } }],
  },
  nearly_replayed_behavior: {
    given: [{ facts: nearby({ sessions: 2 }) }],
    not: [
      { facts: nearby({ sessions: 1 }) },
      // Equal to the last digit.
      { facts: nearby({ sessions: 2 }, { behavior_sessions: all(2) }) },
      { facts: { repeats: repeatsOf(1), near: null } },
    ],
  },
  nearly_replayed_session: {
    given: [{ facts: nearby({ sessions: 2, on_machine: 2 }) }],
    not: [
      { facts: nearby({ sessions: 2, on_machine: 1 }) },
      { facts: nearby({ sessions: 1, on_machine: 2 }) },
    ],
  },
  mass_produced_visitors: {
    given: [
      {
        facts: {
          ...nearby({ sessions: 3, at_address: 3 }, { address_visitors: all(10) }),
          visitorSessions: 1,
        },
      },
      {
        facts: {
          ...nearby({ pace_visitors: 8 }, { address_visitors: all(24) }),
          visitorSessions: 1,
        },
      },
    ],
    not: [
      // Nobody's hands repeat: an office.
      {
        facts: {
          ...nearby({}, { address_visitors: all(100), snapshot_sessions: all(100) }),
          visitorSessions: 1,
        },
      },
      { facts: { ...nearby({ at_address: 3 }, { address_visitors: all(9) }), visitorSessions: 1 } },
      {
        facts: { ...nearby({ at_address: 3 }, { address_visitors: all(10) }), visitorSessions: 2 },
      },
      {
        facts: {
          ...nearby({ pace_visitors: 8 }, { address_visitors: all(25) }),
          visitorSessions: 1,
        },
      },
    ],
  },
  steady_arrivals: {
    given: [{ facts: { ...nearby({ gap_deviation: 24 }, rush), visitorSessions: 1 } }],
    not: [
      { facts: { ...nearby({ gap_deviation: 25 }, rush), visitorSessions: 1 } },
      { facts: { ...nearby({ gap_deviation: null }, rush), visitorSessions: 1 } },
      {
        facts: {
          ...nearby({ gap_deviation: 3 }, { ...rush, address_visitors: all(19) }),
          visitorSessions: 1,
        },
      },
      {
        facts: {
          ...nearby({ gap_deviation: 3 }, { ...rush, address_sessions: all(40) }),
          visitorSessions: 1,
        },
      },
      { facts: { ...nearby({ gap_deviation: 3 }, rush), visitorSessions: 3 } },
    ],
  },
  replayed_snapshot: repeating('snapshot_sessions', 2),
  velocity_visitor: repeating('visitor_sessions', 61),
  mass_run: {
    given: [{ facts: nearby({ in_minute: 10 }) }, { facts: nearby({ in_seconds: 6, copies: 2 }) }],
    not: [{ facts: nearby({ in_minute: 9, in_seconds: 5 }) }, { facts: { near: null } }],
  },
  velocity_users: repeating('visitor_users', 10),
  visitor_many_addresses: repeating('visitor_addresses', 10),
  velocity_address: repeating('address_sessions', 100),
  user_many_visitors: repeating('user_visitors', 8),
  returning_visitor_fingerprint: {
    given: [{ facts: { visitorSessions: 2 } }],
    not: [{ facts: { visitorSessions: 1 } }],
  },
}

function factsWithLanguage(accept_language: string): Partial<Facts> {
  const { document } = factsOf({})
  return document ? { document: { ...document, accept_language } } : {}
}

describe('signals', () => {
  it('have an example each', () => {
    expect(Object.keys(examples).sort()).toEqual(signalCatalogue.map(({ slug }) => slug).sort())
  })

  it.each(Object.entries(examples))(
    '%s fires on its examples and on nothing close to them',
    (slug, { given, not = [] }) => {
      expect(given.map((one) => fires(slug, one))).toEqual(given.map(() => true))
      expect(not.map((one) => fires(slug, one))).toEqual(not.map(() => false))
    },
  )

  it.each([
    ['desktop Chrome', desktopChrome],
    ['desktop Safari', clients.desktopSafari],
    ['desktop Firefox', clients.desktopFirefox],
    ['a Chromebook', clients.chromebook],
    ['an iPhone', clients.iphoneSafari],
    ['Chrome on Android', androidChrome],
    ['an Android web view', clients.androidWebView],
  ])('of risk are silent on %s', (_, client) => {
    const facts = factsOf({ client })
    expect(
      judgedSignals
        .filter((signal) => signal.role === 'risk' && signal.fires(facts))
        .map(({ slug }) => slug),
    ).toEqual([])
  })

  it('are silent where nothing was reported', () => {
    const facts = factsOf({ client: { snapshot: {} } })
    const fired = signalCatalogue.filter((signal) => signal.fires(facts)).map(({ slug }) => slug)
    expect(fired).toEqual(['proofs_missing', 'engine_unproven', 'telemetry_incomplete'])
  })
})
