import type {
  Attribution,
  AttributionBehavior,
  AttributionLabel,
  IntegrityLevel,
  Manipulation,
  RuntimeIntegrity,
  SessionAgent,
} from '../../../schemas/events.ts'
import type { Facts } from '../session/facts.ts'
import type { Slug } from '../signals/catalogue.ts'
import type { FiredSignal } from '../signals/evaluate.ts'

const questions: Record<keyof RuntimeIntegrity, Slug[]> = {
  tampering_detected: [
    'webdriver_property_overridden',
    'navigator_overridden',
    'patched_stealth_functions',
    'patched_functions',
    'rewritten_primitives',
    'rewritten_navigator',
    'stealth_iframe_proxy',
    'faked_chrome_runtime',
    'imitated_plugins',
    'native_claims_in_browser',
    'webgl_parameters_spoofed',
    'fingerprint_noise',
    'native_hooks',
    'native_code_signing_invalid',
    'native_jailbreak_or_root',
    'device_not_trusted',
  ],
  developer_tools_detected: [
    'developer_tools_detected',
    'debugged_before_input',
    'cdp_driven_input',
    'native_debugger',
  ],
  emulation_suspected: [
    'phone_without_touch',
    'phone_with_desktop_graphics',
    'phone_on_desktop_system',
    'emulated_touch',
    'mouse_on_phone',
    'keyboard_on_phone',
    'native_emulator',
    'product_sub_mismatch',
    'gpu_system_mismatch',
  ],
  virtualization_suspected: ['software_rendered_graphics_path', 'bare_machine', 'very_many_cores'],
  privacy_hardening_suspected: ['privacy_hardening_indicators'],
  identity_spoofing_suspected: [
    'engine_mismatch',
    'platform_mismatch',
    'worker_mismatch',
    'iframe_mismatch',
    'user_agent_header_mismatch',
    'client_hints_mismatch',
    'browser_with_tool_handshake',
    'impossible_device_memory',
    'session_identity_changed',
    'kept_id_of_another_device',
    'timezone_contradiction',
    'realm_differences',
    'native_observations_missing',
    'browser_user_agent_in_app',
    'attestation_invalid',
    'attestation_counter',
  ],
  replay_suspected: [
    'stale_snapshot',
    'proofs_missing',
    'conflicting_replay',
    'replayed_behavior',
    'replayed_session',
    'nearly_replayed_behavior',
    'nearly_replayed_session',
  ],
  outdated_environment: [],
  verified_bot_identity: [],
}

// The earliest Chromium, Firefox and Safari that are not called outdated: about three years old.
const oldestCurrent: Record<string, number> = { blink: 110, gecko: 110, webkit: 15 }

export function runtimeIntegrityOf(fired: FiredSignal[], facts: Facts): RuntimeIntegrity {
  const level = (question: keyof RuntimeIntegrity) =>
    levelOf(fired.filter(({ slug }) => questions[question].includes(slug)))
  return {
    tampering_detected: level('tampering_detected'),
    developer_tools_detected: level('developer_tools_detected'),
    emulation_suspected: level('emulation_suspected'),
    virtualization_suspected: level('virtualization_suspected'),
    privacy_hardening_suspected: level('privacy_hardening_suspected') === 'clean' ? 'clean' : 'notice',
    identity_spoofing_suspected: level('identity_spoofing_suspected'),
    replay_suspected: level('replay_suspected'),
    outdated_environment: isOutdated(facts) ? 'notice' : 'clean',
    verified_bot_identity: identityLevels[facts.identity.status],
  }
}

const identityLevels: Record<SessionAgent['status'], IntegrityLevel> = {
  none: 'clean',
  verified: 'clean',
  signed: 'notice',
  declared: 'notice',
  spoofed: 'high_risk',
}

function levelOf(signals: FiredSignal[]): IntegrityLevel {
  const has = (strength: FiredSignal['strength']) => signals.some((signal) => signal.strength === strength)
  const strong = signals.filter(({ strength }) => strength === 'strong').length
  if (has('definitive') || strong >= 2) return 'high_risk'
  if (strong === 1) return 'elevated'
  return signals.length > 0 ? 'notice' : 'clean'
}

/** Whether the version of the engine is known, so that its age can be judged. */
export function hasKnownAge({ agent, snapshot }: Facts): boolean {
  // Outside Safari the version of a WebKit browser is its own, not that of the engine.
  if (agent.engine === 'webkit' && agent.browser !== 'Safari') return false
  return snapshot !== null && agent.engine in oldestCurrent && Number(agent.major) > 0
}

function isOutdated(facts: Facts): boolean {
  const oldest = oldestCurrent[facts.agent.engine] ?? 0
  return hasKnownAge(facts) && Number(facts.agent.major) < oldest
}

const manipulationSlugs: Slug[] = [
  ...questions.tampering_detected,
  ...questions.replay_suspected,
  'session_identity_changed',
]

/** How far the client was manipulated: 0 none, 1-33 low, 34-66 medium, 67-100 high; null without a snapshot. */
export function manipulationOf(fired: FiredSignal[], facts: Facts): Manipulation | null {
  if (!facts.snapshot) return null
  const signals = fired.filter(({ slug, role }) => role === 'risk' && manipulationSlugs.includes(slug))
  const doubt = signals.reduce((left, { points }) => left * (1 - points / 100), 1)
  const score = Math.round(100 * (1 - doubt))
  return { score, verdict: manipulationVerdict(score) }
}

export function manipulationVerdict(score: number): Manipulation['verdict'] {
  if (score === 0) return 'none'
  if (score <= 33) return 'low'
  return score <= 66 ? 'medium' : 'high'
}

type Named = Pick<AttributionLabel, 'value' | 'label' | 'confidence'>

const tools: Partial<Record<Slug, Named>> = {
  playwright_globals: { value: 'playwright', label: 'Playwright', confidence: 97 },
  puppeteer_globals: { value: 'puppeteer', label: 'Puppeteer', confidence: 95 },
  selenium_globals: { value: 'selenium', label: 'Selenium', confidence: 96 },
  chromedriver_markers: { value: 'chromedriver', label: 'ChromeDriver', confidence: 96 },
  phantom_globals: { value: 'phantomjs', label: 'PhantomJS', confidence: 96 },
  sequentum_external: { value: 'sequentum', label: 'Sequentum', confidence: 96 },
  stealth_iframe_proxy: {
    value: 'puppeteer_extra_stealth',
    label: 'Puppeteer Extra Stealth',
    confidence: 80,
  },
}

const evasions: Slug[] = [
  'webdriver_property_overridden',
  'stealth_iframe_proxy',
  'faked_chrome_runtime',
  'imitated_plugins',
  'patched_stealth_functions',
  'rewritten_primitives',
]

function behavior(
  channel: AttributionBehavior['channel'],
  value: string,
  confidence: number,
): AttributionBehavior {
  const words = value.split('-').map((word) => word.slice(0, 1).toUpperCase() + word.slice(1))
  return { channel, value, label: words.join(' '), confidence }
}

const behaviors: Partial<Record<Slug, AttributionBehavior>> = {
  uniform_typing: behavior('typing', 'synthetic-typing', 70),
  superhuman_typing: behavior('typing', 'superhuman-typing', 75),
  untrusted_input: behavior('mouse', 'scripted-events', 80),
  exact_center_clicks: behavior('mouse', 'exact-clicks', 70),
  clicks_without_movement: behavior('mouse', 'teleporting-pointer', 70),
  protocol_pointer_coordinates: behavior('mouse', 'protocol-input', 75),
  straight_pointer_paths: behavior('mouse', 'straight-paths', 55),
  pressed_without_pressure: behavior('mouse', 'weightless-press', 85),
  instant_clicks: behavior('mouse', 'instant-clicks', 60),
  uneven_wheel_notches: behavior('mouse', 'uneven-wheel', 60),
  capitals_without_shift: behavior('typing', 'shiftless-capitals', 85),
  malformed_key_events: behavior('typing', 'malformed-keys', 85),
  characters_without_keys: behavior('typing', 'keyless-typing', 80),
  instant_key_presses: behavior('typing', 'instant-keys', 60),
  unnatural_key_holds: behavior('typing', 'unheld-keys', 55),
  keys_without_gaps: behavior('typing', 'gapless-keys', 60),
  lone_click: behavior('mouse', 'lone-click', 55),
  emulated_touch: behavior('touch', 'emulated-touch', 65),
  submitted_without_input: behavior('form', 'handless-submit', 65),
  text_inserted_at_once: behavior('form', 'inserted-text', 60),
  silent_form_fill: behavior('form', 'silent-fill', 55),
  instant_submit: behavior('form', 'instant-submit', 50),
}

export function attribute(fired: FiredSignal[], facts: Facts, isBot: boolean): Attribution | null {
  const labels = [
    ...actorLabels(fired, { isBot, facts }),
    ...toolLabels(fired, facts),
    ...evasionLabels(fired),
  ]
  const observed = fired.flatMap(({ slug }) => behaviors[slug] ?? [])
  return labels.length > 0 || observed.length > 0 ? { labels, behaviors: observed } : null
}

function actorLabels(
  fired: FiredSignal[],
  { isBot, facts: { identity } }: { isBot: boolean; facts: Facts },
): AttributionLabel[] {
  if (!isBot) return []
  const risks = fired.filter(({ role }) => role === 'risk')
  const confidence = Math.max(...risks.map(({ points }) => points), 70)
  return [
    { kind: 'actor', value: 'automation', label: 'Automation', confidence },
    ...identityLabels(identity),
  ]
}

// How sure it is by how it was checked. Whoever is not who it says is nobody's.
const sureness: Record<SessionAgent['status'], number> = {
  none: 0,
  spoofed: 0,
  declared: 60,
  signed: 80,
  verified: 100,
}

function identityLabels({ status, provider, product, purpose }: SessionAgent): AttributionLabel[] {
  const confidence = sureness[status]
  const named = { provider, product, purpose: purpose === 'other' ? 'crawling' : purpose }
  const kinds = ['provider', 'product', 'purpose'] as const
  return kinds.flatMap((kind) => {
    const value = named[kind]
    return value === null || confidence === 0 ? [] : { kind, value: slugOf(value), label: value, confidence }
  })
}

function toolLabels(fired: FiredSignal[], facts: Facts): AttributionLabel[] {
  const marked = fired.flatMap(({ slug }) => tools[slug] ?? [])
  return [...marked, ...namedTools(fired, facts)].map((tool) => ({ kind: 'tool', ...tool }))
}

// Tools that name themselves in a user agent string or a client-hint brand.
function namedTools(fired: FiredSignal[], facts: Facts): Named[] {
  const has = (name: Slug) => fired.some(({ slug }) => slug === name)
  if (has('http_client_user_agent')) return [httpClient(facts)]
  if (has('declared_bot_user_agent') && facts.agent.browser) return [crawler(facts.agent.browser)]
  return has('headless_user_agent') ? [headlessBrowser(facts)] : []
}

function httpClient({ headerUserAgent, userAgent }: Facts): Named {
  const label = /^[\w-]+/.exec(headerUserAgent || userAgent)?.[0] ?? 'HTTP client'
  return { value: slugOf(label), label, confidence: 90 }
}

function crawler(label: string): Named {
  return { value: slugOf(label), label, confidence: 60 }
}

function headlessBrowser({ agent }: Facts): Named {
  if (agent.engine === 'blink') return { value: 'headless_chrome', label: 'Headless Chrome', confidence: 95 }
  return { value: 'headless_browser', label: 'Headless browser', confidence: 90 }
}

function slugOf(label: string): string {
  return label.toLowerCase().replace(/[^a-z0-9]+/g, '_')
}

function evasionLabels(fired: FiredSignal[]): AttributionLabel[] {
  const hiding = fired.filter(({ slug }) => evasions.includes(slug))
  const [strongest] = hiding.sort((one, other) => other.points - one.points)
  if (!strongest) return []
  const confidence = Math.min(95, strongest.points + 5 * (hiding.length - 1))
  return [{ kind: 'evasion', value: 'stealth', label: 'Stealth', confidence }]
}
