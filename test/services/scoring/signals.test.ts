import { describe, expect, it } from 'vitest'
import { noNetwork } from '../../../infra/ip/network.ts'
import { noLearnedAnswers } from '../../../projections/answers/learned.ts'
import type { NearRepeats } from '../../../projections/repeats/near-repeats.ts'
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
import { nowhere } from '../../projections/world-events.ts'
import { nearRepeats, repeatsOf } from '../../support/session-scored.ts'
import { platformOf, startedAt, testSession } from './support/events.ts'
import { naturalInput, naturalKeys, naturalMouse } from './support/natural-input.ts'
import { judgedSignals, slugs, stateOf } from './support/sessions.ts'
import * as clients from './support/snapshots.ts'
import { taught } from './support/taught.ts'

type Parts = clients.Client['snapshot']
type Part<K extends keyof Parts> = NonNullable<Parts[K]>

/** Differences to a session of desktop Chrome. */
interface Given {
  client?: clients.Client
  parts?: Parts
  /** Default: `android` if the client is an app, else `web`. */
  platform?: Platform
  behavior?: Record<string, object>
  facts?: Partial<Facts>
  hints?: Record<string, string>
  header?: string
}

const { androidChrome, desktopChrome, desktopFirefox, desktopSafari, iphoneSafari } = clients
const { androidWebView, bareChromium, brave, resistingFirefox } = clients

const skipped = noNetwork.lookup('203.0.113.9', startedAt)

function factsOf({ client = desktopChrome, parts = {}, behavior, ...given }: Given = {}): Facts {
  const seen = clients.withParts(client, parts)
  const session = testSession('signals', {
    client: { ...seen, clientHints: { ...seen.clientHints, ...given.hints } },
    platform: given.platform ?? platformOf(seen),
  })
  const state = stateOf(session, behavior)
  const user_agent = given.header ?? state.user_agent
  return {
    ...readFacts({ state: { ...state, user_agent }, network: skipped, learned: taught }),
    ...given.facts,
  }
}

function isFired(slug: string, given: Given): boolean {
  const signal = signalCatalogue.find((one) => one.slug === slug)
  if (!signal) throw new Error(`no signal ${slug}`)
  return signal.fires(factsOf(given))
}

/** Merges the differences. */
const both = (...all: Given[]): Given => {
  const merged = (name: 'parts' | 'behavior' | 'facts') =>
    Object.assign({}, ...all.map((one) => one[name]))
  const [parts, behavior, facts] = [merged('parts'), merged('behavior'), merged('facts')]
  return { ...Object.assign({}, ...all), parts, behavior, facts }
}
const on = (client: clients.Client, ...given: Given[]): Given => both({ client }, ...given)

const automation = (automation: Part<'automation'>): Given => ({ parts: { automation } })
const canvas = (canvas: Part<'canvas'>): Given => ({ parts: { canvas } })
const engine = (name: string | null): Given => ({ parts: { engine: { name } } })
const environment = (environment: Part<'environment'>): Given => ({ parts: { environment } })
const navigator = (navigator: Part<'navigator'>): Given => ({ parts: { navigator } })
const proofs = (proofs: Part<'proofs'>): Given => ({ parts: { proofs } })
const tamper = (tamper: Part<'tamper'>): Given => ({ parts: { tamper } })
const webgl = (webgl: Part<'webgl'>): Given => ({ parts: { webgl } })
const worker = (worker: Part<'worker'>): Given => ({ parts: { worker } })
const says = (user_agent: string) => navigator({ user_agent })
const named = (...globals: string[]) => automation({ globals })
const foreign = (...names: string[]) => tamper({ foreign_primitives: names })
const inner = (inner_width: number, inner_height: number) => ({ inner_width, inner_height })
const outer = (outer_width: number, outer_height: number) => ({ outer_width, outer_height })
const screen = (screen_width: number, screen_height: number, more: Part<'environment'> = {}) =>
  environment({ screen_width, screen_height, ...more })

const mouse = (mouse: object): Given => ({ behavior: { mouse } })
const keyboard = (keyboard: object): Given => ({ behavior: { keyboard } })
/** Keyboard input with this number of keys, and its measurements. */
const keys = (count: number, more: object = {}) => keyboard({ events: count, keys: count, ...more })
const touch = (more: object = {}): Given => ({ behavior: { touch: { ...naturalTouch, ...more } } })
const scroll = (scroll: object): Given => ({ behavior: { scroll } })
const form = (form: object): Given => ({ behavior: { form } })
const naturalTouch = { events: 6, touches: 4, radius_std: 1.5, interval_std: 60 }

const anonymity = (more: Partial<Network['anonymity']>, asn: string | null = null): Given => ({
  facts: {
    network: {
      ...skipped,
      routing: { asn, organization: null },
      anonymity: { ...skipped.anonymity, ...more },
    },
  },
})
/** An address in New York. */
const inNewYork: Given = {
  facts: {
    network: {
      ...skipped,
      location: { ...nowhere, country_code: 'US', timezone: 'America/New_York' },
    },
  },
}

function document(more: Partial<NonNullable<Facts['document']>>): Given {
  const { document } = factsOf()
  if (!document) throw new Error('no document')
  return { facts: { document: { ...document, ...more } } }
}
function speaking(ja4: string): Given {
  const { userAgent, platform, document } = factsOf()
  const of = { environment: 'live' as const, organizationId: 'org_1', learned: noLearnedAnswers }
  const handshake = judgeHandshake({
    ...of,
    userAgent,
    platform,
    document: document && { ...document, ja4 },
  })
  return { facts: { handshake } }
}
const identity = (status: AgentStatus): Given => ({
  facts: { identity: { ...factsOf().identity, status } },
})
const answers = (more: Partial<AnswerFacts>): Given => ({
  facts: { answers: { ...noAnswers, ...more } },
})
const unlearned = answers({
  proof: 'keyed',
  engine: 'as_claimed',
  notLearned: { engine: 'blink', visitors: 3, needed: 20 },
})

const app = (native: NonNullable<Parts['native']>): Given => ({ client: { snapshot: { native } } })
const pixel = app({ device_model: 'Pixel 8', hooks: false })
const attested = (status: AttestationStatus, reason: string | null = null): Given => ({
  ...pixel,
  facts: { attestation: { status, reason, method: 'app_attest', app_id: null, device: null } },
})

const all = (count: number) => ({ five_minutes: count, hour: count, day: count })
const repeats = (more: Partial<Repeats>): Given => ({ facts: { repeats: repeatsOf(1, more) } })
/** Fires at this count or more. */
const repeating = (counted: keyof Repeats, from: number) => ({
  given: [repeats({ [counted]: all(from) })],
  close: [repeats({ [counted]: all(from - 1) }), { facts: { repeats: null } }],
})
const nearby = (near: Partial<NearRepeats>, repeats: Partial<Repeats> = {}): Given => ({
  facts: { near: nearRepeats(near), repeats: repeatsOf(1, repeats), visitorSessions: 1 },
})
const returned = (visitorSessions: number): Given => ({ facts: { visitorSessions } })
const rush = { address_visitors: all(20), address_sessions: all(22) }

/** Proofs of an SDK before 0.2. */
const echo = { ...clients.answers, answer_mac: null }
const anotherAgent = 'Mozilla/5.0 of another'
const firefoxAgent =
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:153.0) Gecko/20100101 Firefox/153.0'
const chromeOnIos =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/140.0.7339.39 Mobile/15E148 Safari/604.1'
const wrongProofs = proofs(clients.proofsOf(firefoxAgent))
const another = { available: true, user_agent: anotherAgent, platform: 'Win32' }
const silentWorker = worker({ user_agent: null })
const silentCard = webgl({ renderer: null })
const silentAudio: Given = { parts: { audio: { hash: null } } }
/** The SDK's reasons for missing parts. */
const withheld = (reasons: Partial<Record<Withheld['group'], Withheld['reason']>>): Given => {
  const parts = withheldGroups.flatMap((group) => {
    const reason = reasons[group]
    return reason ? [{ group, reason }] : []
  })
  return { parts: { collection: { withheld: parts } } }
}
const withoutGraphics = both(
  withheld({ webgl: 'blocked' }),
  webgl({ vendor: null, renderer: null }),
)

const agentOf = (client: clients.Client, user_agent: string, platform?: string) =>
  clients.withParts(client, { navigator: { user_agent, ...(platform && { platform }) } })
const iphoneWebView = agentOf(
  iphoneSafari,
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148',
)
const ipad = clients.withParts(
  agentOf(
    iphoneSafari,
    'Mozilla/5.0 (iPad; CPU OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1',
    'iPad',
  ),
  { environment: { screen_width: 820, screen_height: 1180, pixel_ratio: 2 } },
)
const onLinux = (browser: string) =>
  agentOf(
    desktopChrome,
    `Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) ${browser} Safari/537.36`,
    'Linux x86_64',
  )
const x11Chrome = onLinux('Chrome/156.0.0.0')
const qtWebEngine = onLinux('QtWebEngine/5.15.13 Chrome/87.0.4280.144')
const electron = onLinux('shop/2.1.0 Chrome/156.0.0.0 Electron/45.1.0')

const pressed = mouse({ events: 3, presses: 1, pressureless: 1 })
const offClock = mouse({ events: 10, moves: 9, off_clock: 6 })
const wheeled = scroll({ events: 20, wheel: 5, uneven_wheel: 4 })
const centered = mouse({ events: 2, clicks: 2, clicks_exact_center: 2 })
const shiftless = keys(9, { shiftless: 1 })
const letters = keys(20, { letters: 18 })
const filledSilently = { events: 9, submits: 1, silent_changes: 3 }
const debugged = automation({ cdp_runtime: true })
const plugins = { plugins: ['PDF Viewer'] }
const overridden = tamper({ navigator_own_properties: ['userAgent'] })

/** The signal fires on each of these, and on none of those in `not`. Ordinary browsers have their own test. */
const fires = (...given: Given[]) => ({
  given,
  close: [] as Given[],
  not: (...close: Given[]) => ({ given, close }),
})

const examples: Record<string, { given: Given[]; close: Given[] }> = {
  webdriver_detected: fires(
    automation({ webdriver: true }),
    automation({ webdriver_iframe: true }),
    automation({ webdriver_worker: true }),
  ).not(automation({ webdriver: null, webdriver_worker: null })),
  selenium_globals: fires(
    ...['__selenium_unwrapped', 'calledSelenium', '$chrome_asyncScriptInfo'].map((name) =>
      named(name),
    ),
  ),
  chromedriver_markers: fires(
    named('$cdc_asdjflasutopfhvcZLmcfl_'),
    named('cdc_adoQpoasnfa76pfcZLmcfl_Array'),
    named('xyz_f9sJq02LmXcvBn7RtYuIoP_Promise'),
  ).not(
    named('app_state_JSON', 'gtm_data_Object', 'abc_x_Promise', 'cdc_banner', 'cdc_state_Array'),
  ),
  playwright_globals: fires(named('__pwInitScripts'), named('__playwright__binding__')),
  puppeteer_globals: fires(named('__puppeteer_evaluation_script__')),
  phantom_globals: fires(named('callPhantom'), named('_phantom')).not(named('phantom')),
  driver_globals: fires(named('__nightmare'), named('domAutomationController')),
  driver_document_attributes: fires(automation({ document_attributes: ['webdriver'] })).not(
    automation({ document_attributes: ['lang'] }),
  ),
  sequentum_external: fires(automation({ sequentum: true })),
  ambiguous_driver_globals: fires(named('emit')),
  electron_runtime: fires(automation({ electron: true })),
  developer_tools_detected: fires(debugged).not(automation({ cdp_runtime: null })),
  debugged_before_input: fires(
    debugged,
    both(debugged, mouse({ ...naturalMouse, screen_equals_client: 3 })),
  ).not(both(debugged, mouse(naturalMouse)), both(debugged, keyboard(naturalKeys))),
  cdp_driven_input: fires(both(debugged, centered)).not(
    both(debugged, mouse({ events: 9, clicks: 3, clicks_exact_center: 1 })),
    centered,
  ),
  headless_user_agent: fires(
    says('Mozilla/5.0 HeadlessChrome/140.0.0.0'),
    { hints: { 'sec-ch-ua': '"HeadlessChrome";v="140"' } },
    worker({ user_agent: 'HeadlessChrome/140' }),
  ),
  verified_agent: fires(identity('verified')).not(identity('signed'), identity('declared')),
  spoofed_agent: fires(identity('spoofed')).not(identity('declared'), identity('verified')),
  declared_bot_user_agent: fires(
    says('Mozilla/5.0 (compatible; Googlebot/2.1)'),
    { header: 'Mozilla/5.0; GPTBot/1.2' },
    worker({ user_agent: 'UptimeRobot/2.0' }),
  ).not(says('Mozilla/5.0 (Linux; Android 10) Cubot/X30 Chrome/140.0.0.0')),
  signature_agent_header: fires(document({ signature_agent: 'agent.example' })).not({
    facts: { document: null },
  }),
  http_client_user_agent: fires(
    { header: 'curl/8.9.0' },
    { header: 'python-requests/2.32' },
    { header: 'node' },
  ).not({ header: 'okhttp/4.12', facts: { platform: 'android' } }),
  bot_like_user_agent: fires(says('SomeCrawler/1.0 (+http://crawler.example)')),
  chrome_object_missing: fires(environment({ has_chrome_object: false })).not(
    environment({ has_chrome_object: null }),
  ),
  permissions_contradiction: fires(
    environment({ notification_permission: 'denied', permissions_query_state: 'prompt' }),
  ).not(environment({ notification_permission: 'denied', permissions_query_state: 'denied' })),
  languages_empty: fires(navigator({ language: '', languages: [] })).not(
    navigator({ language: null, languages: [] }),
  ),
  window_without_size: fires(environment({ outer_width: 0, outer_height: 0 })).not(
    environment({ outer_width: 0, outer_height: 0, has_focus: false }),
  ),
  default_headless_screen: fires(screen(800, 600)),
  default_viewport: fires(
    environment({ inner_width: 800, inner_height: 600 }),
    // An emulated screen of the same size.
    screen(1280, 720, { ...inner(1280, 720), ...outer(1280, 805), pixel_ratio: 1 }),
  ).not(
    environment({ ...inner(1280, 720), ...outer(1280, 720) }),
    // Full screen at 150 % on a screen of 1920×1080.
    screen(1920, 1080, { ...inner(1280, 720), ...outer(1920, 1080), pixel_ratio: 1.5 }),
  ),
  screen_smaller_than_window: fires(
    screen(1280, 720, { ...inner(1280, 720), ...outer(1280, 805) }),
  ).not(screen(1280, 720, { ...inner(1280, 720), ...outer(1280, 720) })),
  no_pointing_device: fires(environment({ pointing_device: false })).not(
    environment({ pointing_device: null }),
    on(electron, environment({ pointing_device: false })),
  ),
  user_agent_overridden: fires(navigator({ ua_data_architecture: '', ua_full_version: null })).not(
    navigator({ ua_data_architecture: null, ua_full_version: null }),
  ),
  webdriver_property_overridden: fires(
    automation({ webdriver_own_property: true }),
    tamper({ navigator_own_properties: ['webdriver'] }),
    tamper({ patched_functions: ['navigator.webdriver'] }),
    foreign('navigator.webdriver'),
    foreign('frame.navigator.webdriver'),
  ),
  navigator_overridden: fires(tamper({ navigator_own_properties: ['platform'] })).not(
    on(brave, tamper({ brave: true, navigator_own_properties: ['platform'] })),
  ),
  patched_stealth_functions: fires(tamper({ patched_functions: ['Permissions.query'] })).not(
    on(brave),
  ),
  rewritten_primitives: fires(
    foreign('JSON.stringify', 'Reflect.get'),
    foreign('frame.Function.toString', 'frame.console.debug'),
    foreign('JSON.stringify', 'frame.Array.push'),
  ).not(
    foreign('JSON.stringify'),
    foreign('JSON.stringify', 'frame.JSON.stringify'),
    foreign('Function.toString', 'console.debug', 'Array.push', 'JSON.parse'),
    foreign('fetch', 'frame.fetch', 'frame.JSON.parse'),
    on(brave, foreign('frame.Function.toString', 'frame.Object.keys')),
  ),
  rewritten_navigator: fires(
    foreign('navigator.userAgent'),
    foreign('frame.navigator.plugins'),
    foreign('worker.navigator.platform'),
  ).not(foreign('navigator.webdriver', 'fetch'), on(brave, foreign('navigator.plugins'))),
  realm_differences: fires(tamper({ realm_differences: ['frame.deviceMemory'] })).not(
    tamper({ realm_differences: ['worker.hardwareConcurrency', 'frame.screen.width'] }),
    on(brave, tamper({ realm_differences: ['frame.deviceMemory'] })),
  ),
  wrapped_page_functions: fires(
    foreign('fetch'),
    foreign('Function.toString'),
    foreign('frame.JSON.parse'),
    foreign('JSON.stringify', 'frame.JSON.stringify'),
  ).not(foreign('navigator.platform'), foreign('JSON.stringify', 'Reflect.get')),
  patched_functions: fires(tamper({ patched_functions: ['Function.toString'] })).not(on(brave)),
  stealth_iframe_proxy: fires(tamper({ iframe_srcdoc_proxy: true })),
  faked_chrome_runtime: fires(tamper({ chrome_runtime_faked: true })),
  imitated_plugins: fires(navigator({ plugins_genuine: false })).not(
    navigator({ plugins_genuine: null }),
  ),
  webgl_parameters_spoofed: fires(tamper({ webgl_parameter_mismatch: true })),
  fingerprint_noise: fires(canvas({ noise_detected: true })).not(on(brave), on(resistingFirefox)),
  privacy_hardening_indicators: fires(
    on(brave),
    on(resistingFirefox),
    canvas({ noise_detected: true }),
  ).not(tamper({ timer_precision_reduced: true })),
  engine_mismatch: fires(
    // Chrome on iOS uses Apple's engine.
    engine('SpiderMonkey'),
    on(iphoneSafari, says(chromeOnIos), engine('V8')),
  ).not(on(iphoneSafari, says(chromeOnIos)), engine(null)),
  platform_mismatch: fires(
    navigator({ platform: 'Win32' }),
    navigator({ ua_data_platform: 'Linux' }),
  ).not(navigator({ platform: 'iPad', max_touch_points: 5 })),
  worker_mismatch: fires(worker(another), on(iphoneSafari, worker(another))).not(
    worker({ ...another, available: null }),
    on(brave),
    // An iPad that requests a desktop site.
    on(desktopSafari, navigator({ max_touch_points: 5 }), worker(another)),
  ),
  iframe_mismatch: fires({ parts: { iframe: another } }).not({
    parts: { iframe: { available: true, user_agent: null } },
  }),
  gpu_system_mismatch: fires(webgl({ renderer: 'ANGLE (NVIDIA, Direct3D11 vs_5_0)' })),
  worker_gpu_mismatch: fires(worker({ webgl_renderer: 'ANGLE (Intel)' })).not(
    on(bareChromium),
    worker({ webgl_renderer: null }),
  ),
  languages_mismatch: fires(navigator({ language: 'fr-FR' })),
  product_sub_mismatch: fires(navigator({ product_sub: '20100101' })).not(on(resistingFirefox)),
  phone_without_touch: fires(
    on(androidChrome, navigator({ max_touch_points: 0 }), environment({ pointer_coarse: false })),
  ),
  phone_with_desktop_graphics: fires(
    ...[
      webgl({
        renderer: 'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero)), SwiftShader)',
      }),
      worker({ webgl_renderer: 'ANGLE (NVIDIA, GeForce RTX 3060, OpenGL)' }),
    ].map((graphics) => on(androidChrome, graphics)),
  ).not(
    on(androidChrome, webgl({ renderer: 'ANGLE (Samsung, AMD Xclipse 940, OpenGL ES 3.2)' })),
    webgl({ renderer: 'SwiftShader' }),
  ),
  phone_on_desktop_system: fires(
    on(androidChrome, worker({ platform: 'Linux x86_64' })),
    on(iphoneSafari, navigator({ platform: 'MacIntel' })),
  ),
  phone_without_bars: fires(on(androidChrome, screen(412, 915, inner(412, 915)))),
  apple_device_contradicted: fires(
    on(iphoneSafari, navigator({ max_touch_points: 0 })),
    on(iphoneSafari, navigator({ device_memory: 8 })),
    on(iphoneSafari, navigator({ platform: 'x' })),
    on(iphoneSafari, navigator({ vendor: 'Google Inc.' })),
    on(iphoneSafari, environment({ pixel_ratio: 2.625 })),
    on(iphoneSafari, webgl({ renderer: 'Adreno (TM) 740' })),
    on(iphoneSafari, { parts: { fonts: { detected: ['Segoe UI'] } } }),
    on(iphoneSafari, engine('V8')),
    on(iphoneWebView, navigator({ connection_rtt: 50 })),
    on(ipad, environment({ pixel_ratio: 3 })),
    on(desktopSafari, navigator({ max_touch_points: 10 })),
    on(desktopSafari, navigator({ brands: [{ brand: 'Chromium', version: '140' }] })),
  ).not(
    on(iphoneWebView),
    on(ipad),
    // An iPad that requests a desktop site.
    on(desktopSafari, navigator({ max_touch_points: 5 })),
    // Lockdown mode.
    on(iphoneSafari, webgl({ renderer: null, vendor: null })),
  ),
  apple_screen_unknown: fires(
    on(iphoneSafari, screen(400, 800)),
    on(iphoneSafari, screen(390, 844, { pixel_ratio: 2 })),
  ).not(
    // Turned, and with Display Zoom.
    on(iphoneSafari, screen(844, 390, { pixel_ratio: 3 })),
    on(iphoneSafari, screen(320, 693, { pixel_ratio: 3 })),
    on(ipad, screen(507, 1000)),
  ),
  phone_with_computer_parts: fires(
    ...[
      navigator({ ...plugins, device_memory: 16 }),
      both(withoutGraphics, { parts: { fonts: { detected: ['DejaVu Sans'] } } }),
      both(withoutGraphics, foreign('worker.navigator.platform')),
      both(withoutGraphics, environment({ orientation_type: 'landscape-primary' })),
    ].map((computer) => on(androidChrome, computer)),
  ).not(
    on(androidChrome, withoutGraphics),
    on(androidChrome, navigator(plugins)),
    on(androidChrome, withheld({ webgl: 'late' }), navigator(plugins)),
    both(withoutGraphics, navigator({ device_memory: 16 })),
    // A user agent switcher on a computer.
    on(androidChrome, navigator({ ...plugins, device_memory: 16 }), overridden),
  ),
  user_agent_replaced: fires(
    { ...overridden, header: firefoxAgent },
    both(foreign('navigator.platform'), worker(another)),
  ).not(overridden, { header: firefoxAgent }, on(resistingFirefox, overridden, worker(another))),
  timezone_contradiction: fires(tamper({ timezone_mismatch: true })),
  unreadable_observations: fires({ facts: { unreadable: 1 } }),
  conflicting_replay: fires({ facts: { conflicts: 1 } }),
  stale_snapshot: fires(
    proofs({ ...echo, challenge: 'old' }),
    proofs({ ...echo, timing_nonce: 'old' }),
    proofs({ answer_mac: 'not base64url' }),
    proofs({ canvas_challenge_hash: 'of another drawing' }),
    proofs({ engine_answers: [] }),
  ).not(proofs(echo)),
  proofs_missing: fires(
    proofs({ ...echo, challenge: null }),
    proofs({ ...echo, timing_nonce: null }),
  ).not(proofs(echo)),
  engine_contradicted: fires(says(firefoxAgent), wrongProofs).not(says(anotherAgent)),
  engine_unproven: fires(proofs({ engine_answers: [] }), says(anotherAgent)).not(
    app({ os_name: 'iOS' }),
  ),
  answers_to_come: fires(answers({ engine: 'pending' })).not(
    both(app({ os_name: 'iOS' }), answers({ engine: 'pending' })),
  ),
  engine_not_learned: fires(
    unlearned,
    both(unlearned, mouse({ ...naturalMouse, coalesced: 0 })),
    both(unlearned, repeats({ behavior_sessions: all(2) }), { behavior: naturalInput }),
  ).not(both(unlearned, { behavior: naturalInput }), both(app({ os_name: 'iOS' }), unlearned)),
  canvas_contradicted: fires(answers({ proof: 'keyed', engine: 'as_claimed', canvas: 'differs' })),
  telemetry_incomplete: fires(
    { client: { snapshot: {} } },
    environment({ timezone: null }),
    { parts: { storage: { cookies: null } } },
    silentWorker,
    silentCard,
    proofs({ canvas_challenge_hash: null }),
    both(silentWorker, tamper({ examined: null }), withheld({ worker: 'blocked' })),
    // Chrome always has the audio API.
    both(silentAudio, withheld({ audio: 'unsupported' })),
  ).not(
    both(silentCard, withheld({ webgl: 'unsupported' })),
    // Parts after a late one are late as well.
    both(silentWorker, tamper({ examined: null }), withheld({ worker: 'late' })),
    app({ os_name: 'iOS' }),
  ),
  telemetry_withheld: fires(
    both(silentCard, silentAudio, withheld({ webgl: 'blocked', audio: 'blocked' })),
  ).not(
    both(silentCard, withheld({ webgl: 'blocked' })),
    // A page's policy may block workers, on a machine without WebGL.
    both(silentWorker, silentCard, withheld({ worker: 'blocked', webgl: 'unsupported' })),
    // Fonts are measured in a canvas, and late parts may still arrive.
    both(
      canvas({ hash: null }),
      { parts: { fonts: { detected_count: null } } },
      silentAudio,
      withheld({ canvas: 'blocked', fonts: 'blocked', audio: 'late' }),
    ),
  ),
  telemetry_late: fires(both(silentWorker, withheld({ worker: 'late' }))).not(
    both(silentWorker, withheld({ worker: 'blocked' })),
  ),
  impossible_values: fires(
    environment({ timezone_offset_min: 9999 }),
    environment({ timezone: 'Mars/Olympus_Mons' }),
    { parts: { engine: { eval_length: 37 } } },
    navigator({ brands: [{ brand: 'Chromium', version: '99' }] }),
    mouse({ events: 1, moves: 1_000_000, duration_ms: 5 }),
    mouse({ events: 1_000_000, moves: 1_000_000, duration_ms: 5 }),
  ).not(environment({ timezone: 'Europe/Kyiv' }), mouse({ events: 40, moves: 40 })),
  window_larger_than_screen: fires(environment({ outer_width: 5000 })).not(
    environment({ outer_width: 1528, screen_width: 1512 }),
  ),
  session_identity_changed: fires({ facts: { identityChanges: 1 } }),
  user_agent_header_mismatch: fires(
    { header: anotherAgent, ...silentWorker },
    { header: anotherAgent, parts: { iframe: { user_agent: anotherAgent } } },
    { header: anotherAgent, ...wrongProofs },
  ).not({ header: '' }, { header: anotherAgent }),
  user_agent_rewritten_on_the_way: fires(
    { header: anotherAgent },
    { header: `${firefoxAgent} Proxy/4.1` },
  ).not({ header: '' }, { header: anotherAgent, ...silentWorker }),
  client_hints_mismatch: fires(
    { hints: { 'sec-ch-ua-platform': '"Windows"' } },
    { hints: { 'sec-ch-ua-mobile': '?1' } },
  ),
  accept_language_mismatch: fires(document({ accept_language: 'fr-FR,fr;q=0.9' })).not(
    document({ accept_language: '*' }),
  ),
  sparse_request_headers: fires(document({ header_order: ['host', 'accept'] })).not(
    document({ header_order: [] }),
  ),
  browser_with_tool_handshake: fires(
    speaking('t13d1312h2_f57a46bbacb6_ab7e3b40a677'),
    speaking('t13d181100_85036bcba153_d41ae481755e'),
  ).not(
    speaking('t13d1517h2_8daaf6152771_cb7bf5808d99'),
    speaking('t13d1617h2_86a278354501_3cbfd9057e0d'),
    speaking('t13d1312h2_f57a46bbacb6_000000000000'),
  ),
  hosting_network: fires(
    anonymity({ hosting: true }),
    anonymity({ hosting: true }, '16509'),
    anonymity({ hosting: true, tor: true }),
  ).not(
    anonymity({ hosting: true, vpn: true }),
    anonymity({ hosting: true, relay: true }),
    // Zscaler (corporate gateway), Proton VPN, Apple's relay.
    ...['22616', '209103', '36183'].map((asn) => anonymity({ hosting: true }, asn)),
  ),
  vpn_associated_ip: fires(anonymity({ vpn: true }), anonymity({ relay: true })),
  anonymous_proxy: fires(anonymity({ tor: true }), anonymity({ proxy: true })),
  timezone_location_mismatch: fires(inNewYork).not(on(bareChromium, inNewYork)),
  software_rendered_graphics_path: fires(on(bareChromium), on(clients.headlessChrome)),
  utc_timezone: fires(environment({ timezone: 'UTC' })).not(on(resistingFirefox)),
  bare_machine: fires(on(bareChromium)).not(on(resistingFirefox), {
    parts: { media: { device_count: 0 } },
  }),
  very_many_cores: fires(navigator({ hardware_concurrency: 96 })).not(
    navigator({ hardware_concurrency: 64 }),
  ),
  impossible_device_memory: fires(navigator({ device_memory: 7 })).not(
    navigator({ device_memory: null }),
  ),
  untrusted_input: fires(mouse({ events: 8, untrusted: 5 })).not(
    mouse({ events: 80, untrusted: 5 }),
  ),
  exact_center_clicks: fires(mouse({ events: 9, clicks: 2, clicks_exact_center: 2 })).not(
    mouse({ events: 9, clicks: 1, clicks_exact_center: 1 }),
  ),
  clicks_without_movement: fires(mouse({ events: 2, clicks: 2, clicks_without_move: 2 })).not(
    both(mouse({ events: 2, clicks_without_move: 2 }), { behavior: { touch: { events: 4 } } }),
  ),
  pressed_without_pressure: fires(pressed).not(
    mouse({ events: 3, presses: 1 }),
    ...[desktopSafari, desktopFirefox, androidChrome].map((client) => on(client, pressed)),
  ),
  uneven_wheel_notches: fires(on(x11Chrome, wheeled)).not(
    wheeled,
    on(x11Chrome, scroll({ events: 20, wheel: 5, uneven_wheel: 2 })),
    on(x11Chrome, scroll({ events: 90, wheel: 40, uneven_wheel: 4 })),
    on(desktopFirefox, wheeled),
  ),
  unsynchronized_input_clock: fires(
    on(x11Chrome, offClock),
    on(x11Chrome, keys(6, { off_clock: 8 })),
  ).not(
    offClock,
    on(x11Chrome, mouse({ events: 90, moves: 89, off_clock: 6 })),
    on(x11Chrome, navigator({ max_touch_points: 5 }), offClock),
    ...[desktopFirefox, qtWebEngine, electron].map((client) => on(client, offClock)),
  ),
  instant_clicks: fires(mouse({ events: 9, presses: 3, instant_presses: 2 })).not(
    mouse({ events: 9, presses: 1, instant_presses: 1 }),
    mouse({ events: 9, presses: 9, instant_presses: 2 }),
  ),
  scrolls_without_cause: fires(scroll({ events: 30, uncaused: 3 })).not(
    scroll({ events: 30, uncaused: 3, wheel: 9 }),
  ),
  capitals_without_shift: fires(shiftless, on(desktopFirefox, shiftless)).not(
    ...[desktopSafari, iphoneSafari, androidChrome].map((client) => on(client, shiftless)),
  ),
  malformed_key_events: fires(keys(9, { malformed: 1 })).not(
    ...[androidChrome, desktopFirefox, electron].map((client) =>
      on(client, keys(9, { malformed: 1 })),
    ),
  ),
  characters_without_keys: fires(both(form({ events: 9 }), keyboard({ unkeyed: 9 }))).not(
    keys(9, { unkeyed: 9 }),
    on(androidChrome, form({ events: 9 }), keyboard({ unkeyed: 9 })),
  ),
  instant_key_presses: fires(keys(9, { hold_mean: 3 })).not(
    keys(9, { hold_mean: 60 }),
    keys(9),
    // On-screen keyboards release each key immediately.
    on(androidChrome, keys(9, { hold_mean: 3 })),
  ),
  emulated_touch: fires(
    on(androidChrome, touch({ instant: 3 })),
    on(androidChrome, touch({ plain: 4 })),
    on(androidChrome, touch({ displaced: 4 })),
    on(iphoneSafari, touch({ instant: 3 })),
  ).not(
    // A finger, a quick tap among many, and a stylus with almost no contact area.
    on(androidChrome, touch()),
    on(androidChrome, touch({ touches: 9, instant: 2 })),
    on(androidChrome, touch({ plain: 1 })),
    // iPhones don't report the screen position of touches.
    on(iphoneSafari, touch({ displaced: 4 })),
    touch({ instant: 3 }),
  ),
  mouse_on_phone: fires(on(androidChrome, mouse({ events: 3, moves: 1, presses: 1 }))).not(
    // A stylus above the screen, and a finger, whose click has no button press.
    on(androidChrome, mouse({ events: 30, moves: 30 })),
    on(androidChrome, mouse({ events: 1, clicks: 1 }), touch()),
    mouse({ events: 3, moves: 1, presses: 1 }),
  ),
  keyboard_on_phone: fires(on(androidChrome, letters)).not(
    on(androidChrome, keys(20, { letters: 0 })),
    on(iphoneSafari, letters),
    letters,
  ),
  pointer_jumps: fires(
    mouse({ events: 9, moves: 6, presses: 3, jumps: 2 }),
    mouse({ events: 10, moves: 5, presses: 5 }),
  ).not(
    mouse({ events: 99, moves: 90, presses: 9, jumps: 2 }),
    mouse({ events: 60, moves: 50, presses: 5 }),
    mouse({ events: 6, moves: 3, presses: 3 }),
  ),
  movement_never_coalesced: fires(mouse({ events: 70, moves: 70, single: 70 })).not(
    mouse({ events: 70, moves: 70, single: 69, coalesced: 1 }),
    mouse({ events: 50, moves: 50, single: 50 }),
    // Pages without HTTPS and older SDKs don't report it.
    mouse({ events: 70, moves: 70 }),
    on(desktopSafari, mouse({ events: 70, moves: 70, single: 70 })),
  ),
  lone_click: fires(
    mouse({ events: 2, moves: 1, clicks: 1, presses: 1, instant_presses: 1 }),
    mouse({ events: 2, moves: 1, clicks: 1, presses: 1 }),
  ).not(
    // A pointer that rests on its target before the click has moved there.
    mouse({ events: 30, moves: 29, clicks: 1, presses: 1, instant_presses: 1 }),
    mouse({ events: 4, moves: 1, clicks: 2, presses: 2 }),
  ),
  unnatural_key_holds: fires(
    keys(12, { hold_mean: 70, hold_std: 3 }),
    keys(12, { hold_mean: 27, hold_std: 9 }),
  ).not(
    keyboard({ ...naturalKeys, keys: 20 }),
    keys(9, { hold_mean: 70, hold_std: 3 }),
    on(androidChrome, keys(12, { hold_mean: 27, hold_std: 1 })),
  ),
  keys_without_gaps: fires(keys(12, { abutting: 9 })).not(
    keyboard({ ...naturalKeys, keys: 20, abutting: 2 }),
    on(androidChrome, keys(12, { abutting: 9 })),
  ),
  typing_without_overlap: fires(keys(40, { interval_mean: 100 })).not(
    keys(40, { interval_mean: 100, rollovers: 3 }),
    // Two-finger typists are slower.
    keys(40, { interval_mean: 240 }),
    on(androidChrome, keys(40, { interval_mean: 100 })),
  ),
  typing_right_after_press: fires(
    both(keys(40, { hasty: 2 }), mouse({ events: 3, presses: 3 })),
  ).not(keys(40, { hasty: 1 })),
  focus_without_cause: fires(form({ events: 3, focuses: 3, uncaused_focuses: 2 })).not(
    form({ events: 3, focuses: 3, uncaused_focuses: 1 }),
  ),
  filled_without_focus: fires(form({ events: 3, unfocused_inputs: 2 })).not(
    form({ events: 3, silent_changes: 2, unfocused_inputs: 1 }),
  ),
  submitted_without_input: fires(form(filledSilently)).not(
    // Password managers fill two fields, and people need some input to submit a form.
    form({ ...filledSilently, silent_changes: 2 }),
    form({ ...filledSilently, autofills: 3 }),
    both(form(filledSilently), mouse({ events: 0, activations: 1 })),
    both(form(filledSilently), keys(1)),
  ),
  protocol_pointer_coordinates: fires(
    mouse({ events: 20, moves: 20, screen_equals_client: 19 }),
    mouse({ events: 20, moves: 20, frameless: 20 }),
  ).not(mouse({ events: 200, moves: 200, screen_equals_client: 19 })),
  uniform_typing: fires(keyboard({ events: 20, keys: 12, interval_std: 2 })).not(
    keyboard({ events: 20, keys: 12, interval_std: null }),
  ),
  superhuman_typing: fires(keyboard({ events: 40, keys: 20, interval_mean: 8, interval_std: 30 })),
  straight_pointer_paths: fires(
    mouse({ events: 30, moves: 30, straightness: 1, speed_std: 0.01 }),
  ).not(mouse({ events: 30, moves: 30 })),
  silent_form_fill: fires(form({ events: 3, silent_changes: 2 })).not(
    form({ events: 3, silent_changes: 2, autofills: 1 }),
  ),
  text_inserted_at_once: fires(form({ events: 3, silent_changes: 2, inserted: 2 })).not(
    form({ events: 3, silent_changes: 2, inserted: 1 }),
    on(iphoneSafari, form({ events: 3, silent_changes: 2, inserted: 2 })),
  ),
  instant_submit: fires(form({ events: 3, submits: 1, time_to_submit_ms: 100 })).not(
    form({ events: 3, time_to_submit_ms: 100 }),
    form({ events: 3, submits: 1, time_to_submit_ms: 500 }),
  ),
  native_hooks: fires(app({ hooks: true })).not(app({ hooks: null })),
  native_emulator: fires(app({ simulator_or_emulator: true })),
  native_code_signing_invalid: fires(app({ code_signing_invalid: true })),
  native_jailbreak_or_root: fires(app({ jailbreak_or_root: true })),
  native_debugger: fires(app({ debugger: true })),
  native_claims_in_browser: fires({ ...app({ hooks: false }), platform: 'web' }).not(
    app({ hooks: false }),
  ),
  native_observations_missing: fires(
    { platform: 'ios' },
    app({ hooks: false }),
    app({ device_model: null }),
  ).not(app({ device_model: 'Pixel 8' })),
  native_checks_missing: fires(app({ device_model: 'iPhone15,2' })).not(
    app({ device_model: 'iPhone15,2', hooks: false }),
    app({ os_name: 'iOS' }),
  ),
  app_unattested: fires(pixel, { platform: 'ios' }, attested('unverified', 'unknown_key')).not(
    attested('valid'),
    attested('invalid', 'nonce'),
  ),
  attestation_invalid: fires(attested('invalid', 'nonce'), attested('invalid', 'malformed')).not(
    attested('valid'),
    attested('invalid', 'counter'),
    attested('invalid', 'device'),
  ),
  attestation_counter: fires(attested('invalid', 'counter')).not(
    attested('invalid', 'nonce'),
    attested('valid'),
  ),
  device_not_trusted: fires(attested('invalid', 'device')).not(
    attested('invalid', 'app'),
    attested('valid'),
  ),
  browser_user_agent_in_app: fires({ ...pixel, header: 'Mozilla/5.0 (X11; Linux x86_64)' }).not(
    { ...pixel, header: 'okhttp/4.12' },
    { header: 'Mozilla/5.0' },
  ),
  browser_profile_consistent: fires({}).not(
    worker({ available: null }),
    on(bareChromium),
    worker({ platform: 'Linux x86_64' }),
    tamper({ webgl_parameter_mismatch: true }),
  ),
  fresh_proofs: fires({}).not(proofs({ ...echo, challenge: null })),
  natural_pointer_movement: fires(
    ...[desktopChrome, x11Chrome, desktopFirefox].map((client) => on(client, mouse(naturalMouse))),
  ).not(
    mouse({ ...naturalMouse, straightness: 1 }),
    // Programs that wait for each event have none coalesced.
    mouse({ ...naturalMouse, coalesced: 0 }),
    mouse({ ...naturalMouse, pressureless: 1 }),
    both(mouse(naturalMouse), shiftless),
    on(x11Chrome, mouse({ ...naturalMouse, off_clock: 30 })),
  ),
  natural_typing: fires(keyboard(naturalKeys)).not(
    keyboard({ ...naturalKeys, untrusted: 3 }),
    keyboard({ ...naturalKeys, rollovers: 0, corrections: 3 }),
    keyboard({ ...naturalKeys, hold_mean: 3, hold_std: 1 }),
    both(keyboard(naturalKeys), mouse({ events: 1, presses: 1, pressureless: 1 })),
  ),
  natural_touch: fires(touch()).not(
    touch({ radius_std: 0 }),
    touch({ interval_std: 1 }),
    both(touch(), debugged),
    // Programs can vary the contact area.
    on(androidChrome, touch({ displaced: 4 })),
    on(androidChrome, touch(), letters),
    on(androidChrome, touch(), worker({ platform: 'Linux x86_64' })),
  ),
  replayed_behavior: repeating('behavior_sessions', 2),
  replayed_session: fires(repeats({ behavior_sessions: all(2), snapshot_sessions: all(2) })).not(
    repeats({ behavior_sessions: all(2) }),
    repeats({ snapshot_sessions: all(2) }),
  ),
  kept_id_of_another_device: fires({ facts: { hasCopiedId: true } }).not({
    facts: { hasCopiedId: false },
  }),
  nearly_replayed_behavior: fires(nearby({ sessions: 2 })).not(
    nearby({ sessions: 1 }),
    // Exactly equal.
    nearby({ sessions: 2 }, { behavior_sessions: all(2) }),
    { facts: { repeats: repeatsOf(1), near: null } },
  ),
  nearly_replayed_session: fires(nearby({ sessions: 2, on_machine: 2 })).not(
    nearby({ sessions: 2, on_machine: 1 }),
    nearby({ sessions: 1, on_machine: 2 }),
  ),
  mass_produced_visitors: fires(
    nearby({ sessions: 3, at_address: 3 }, { address_visitors: all(10) }),
    nearby({ pace_visitors: 8 }, { address_visitors: all(24) }),
  ).not(
    // An office: no input repeats.
    nearby({}, { address_visitors: all(100), snapshot_sessions: all(100) }),
    nearby({ at_address: 3 }, { address_visitors: all(9) }),
    both(nearby({ at_address: 3 }, { address_visitors: all(10) }), returned(2)),
    nearby({ pace_visitors: 8 }, { address_visitors: all(25) }),
  ),
  steady_arrivals: fires(nearby({ gap_deviation: 24 }, rush)).not(
    nearby({ gap_deviation: 25 }, rush),
    nearby({ gap_deviation: null }, rush),
    nearby({ gap_deviation: 3 }, { ...rush, address_visitors: all(19) }),
    nearby({ gap_deviation: 3 }, { ...rush, address_sessions: all(40) }),
    both(nearby({ gap_deviation: 3 }, rush), returned(3)),
  ),
  replayed_snapshot: repeating('snapshot_sessions', 2),
  velocity_visitor: repeating('visitor_sessions', 61),
  mass_run: fires(nearby({ in_minute: 10 }), nearby({ in_seconds: 6, copies: 2 })).not(
    nearby({ in_minute: 9, in_seconds: 5 }),
    { facts: { near: null } },
  ),
  velocity_users: repeating('visitor_users', 10),
  visitor_many_addresses: repeating('visitor_addresses', 10),
  velocity_address: repeating('address_sessions', 100),
  user_many_visitors: repeating('user_visitors', 8),
  returning_visitor_fingerprint: fires(returned(2)).not(returned(1)),
}

describe('signals', () => {
  it('all have an example', () => {
    expect(Object.keys(examples).sort()).toEqual(signalCatalogue.map(({ slug }) => slug).sort())
  })

  it.each(Object.entries(examples))(
    '%s fires on its examples and on nothing close to them',
    (slug, { given, close }) => {
      expect(given.map((one) => isFired(slug, one))).toEqual(given.map(() => true))
      expect(close.map((one) => isFired(slug, one))).toEqual(close.map(() => false))
    },
  )

  it.each([
    ['desktop Chrome', desktopChrome],
    ['desktop Safari', desktopSafari],
    ['desktop Firefox', desktopFirefox],
    ['a Chromebook', clients.chromebook],
    ['an iPhone', iphoneSafari],
    ['Chrome on Android', androidChrome],
    ['an Android web view', androidWebView],
  ])('of risk and context do not fire for %s', (_, client) => {
    const facts = factsOf({ client })
    const fired = judgedSignals.filter(({ role, fires }) => role !== 'trust' && fires(facts))
    expect(slugs({ fired })).toEqual([])
  })

  it('mostly do not fire if nothing was reported', () => {
    const facts = factsOf({ client: { snapshot: {} } })
    const fired = signalCatalogue.filter((signal) => signal.fires(facts)).map(({ slug }) => slug)
    expect(fired).toEqual(['proofs_missing', 'engine_unproven', 'telemetry_incomplete'])
  })
})
