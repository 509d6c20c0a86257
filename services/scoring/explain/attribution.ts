import type {
  Attribution,
  AttributionBehavior,
  AttributionLabel,
  SessionAgent,
} from '../../../schemas/events.ts'
import type { Behavior } from '../../../schemas/observations.ts'
import type { Facts } from '../session/facts.ts'
import type { Slug } from '../signals/catalogue.ts'
import type { FiredSignal } from '../signals/evaluate.ts'

type NamedLabel = Pick<AttributionLabel, 'value' | 'label' | 'confidence'>

const tools: Partial<Record<Slug, NamedLabel>> = {
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

const environments: Partial<Record<Slug, NamedLabel>> = {
  headless_user_agent: { value: 'headless', label: 'Headless browser', confidence: 95 },
  electron_runtime: { value: 'electron', label: 'Electron', confidence: 80 },
  phone_on_desktop_system: { value: 'emulator', label: 'Emulator', confidence: 70 },
  native_emulator: { value: 'emulator', label: 'Emulator', confidence: 80 },
  bare_machine: { value: 'virtual_machine', label: 'Virtual machine', confidence: 50 },
  hosting_network: { value: 'data_center', label: 'Data centre', confidence: 80 },
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
  scrolls_without_cause: behavior('scroll', 'uncaused-scrolling', 50),
  submitted_without_input: behavior('form', 'handless-submit', 65),
  text_inserted_at_once: behavior('form', 'inserted-text', 60),
  silent_form_fill: behavior('form', 'silent-fill', 55),
  instant_submit: behavior('form', 'instant-submit', 50),
}

// Behaviors without a signal, which don't affect the score.
const unscoredBehaviors: { label: AttributionBehavior; isIn(behavior: Behavior): boolean }[] = [
  { label: behavior('touch', 'scripted-touch', 80), isIn: ({ touch }) => touch.untrusted > 0 },
  {
    label: behavior('scroll', 'scripted-scrolling', 70),
    isIn: ({ scroll }) => scroll.untrusted > 0,
  },
  {
    label: behavior('clipboard', 'scripted-clipboard', 80),
    isIn: ({ clipboard }) => clipboard.untrusted > 0,
  },
  {
    label: behavior('clipboard', 'pasted-text', 60),
    isIn: ({ clipboard: c, keyboard }) =>
      c.pastes > 0 && c.untrusted === 0 && keyboard.keys <= 2 * c.pastes,
  },
]

export function attribute(fired: FiredSignal[], facts: Facts, isBot: boolean): Attribution | null {
  const labels = [
    ...actorLabels(fired, { isBot, facts }),
    ...toolLabels(fired, facts),
    ...environmentLabels(fired),
    ...evasionLabels(fired),
  ]
  const { behavior: input } = facts
  const actions = [
    ...fired.flatMap(({ slug }) => behaviors[slug] ?? []),
    ...unscoredBehaviors.flatMap(({ label, isIn }) => (input && isIn(input) ? [label] : [])),
  ]
  return labels.length > 0 || actions.length > 0 ? { labels, behaviors: actions } : null
}

function actorLabels(
  fired: FiredSignal[],
  { isBot, facts: { identity, network } }: { isBot: boolean; facts: Facts },
): AttributionLabel[] {
  if (!isBot) return []
  const risks = fired.filter(({ role }) => role === 'risk')
  const confidence = Math.max(...risks.map(({ points }) => points), 70)
  return [
    { kind: 'actor', value: 'automation', label: 'Automation', confidence },
    ...identityLabels(identity),
    ...trustLabels(identity),
    ...networkLabels(network),
  ]
}

// `provider` comes from an anonymity list. `organization` is the holder of a hosting network.
function networkLabels({ anonymity, routing }: Facts['network']): AttributionLabel[] {
  const named = (kind: AttributionLabel['kind'], label: string | null, confidence: number) =>
    label === null ? [] : [{ kind, value: slugOf(label), label, confidence }]
  const holder = anonymity.hosting ? routing.organization : null
  return [...named('provider', anonymity.provider, 70), ...named('organization', holder, 70)]
}

// Confidence by verification status. A spoofed agent belongs to nobody.
const identityConfidence: Record<SessionAgent['status'], number> = {
  none: 0,
  spoofed: 0,
  declared: 60,
  signed: 80,
  verified: 100,
}

function identityLabels({ status, provider, product, purpose }: SessionAgent): AttributionLabel[] {
  const confidence = identityConfidence[status]
  const values = { provider, product, purpose: purpose === 'other' ? 'crawling' : purpose }
  const kinds = ['provider', 'product', 'purpose'] as const
  return kinds.flatMap((kind) => {
    const value = values[kind]
    return value === null || confidence === 0
      ? []
      : { kind, value: slugOf(value), label: value, confidence }
  })
}

function trustLabels({ status }: SessionAgent): AttributionLabel[] {
  if (status !== 'verified') return []
  const confidence = identityConfidence.verified
  return [{ kind: 'trust', value: 'verified', label: 'Verified', confidence }]
}

function environmentLabels(fired: FiredSignal[]): AttributionLabel[] {
  return fired.flatMap(({ slug }) => {
    const label = environments[slug]
    return label ? [{ kind: 'environment', ...label }] : []
  })
}

function toolLabels(fired: FiredSignal[], facts: Facts): AttributionLabel[] {
  const detected = fired.flatMap(({ slug }) => tools[slug] ?? [])
  return [...detected, ...declaredTools(fired, facts)].map((tool) => ({ kind: 'tool', ...tool }))
}

// Returns the tools that declare themselves in a user agent string or client-hint brand.
function declaredTools(fired: FiredSignal[], facts: Facts): NamedLabel[] {
  const has = (name: Slug) => fired.some(({ slug }) => slug === name)
  if (has('http_client_user_agent')) return [httpClient(facts)]
  if (has('declared_bot_user_agent') && facts.agent.browser) return [crawler(facts.agent.browser)]
  return has('headless_user_agent') ? [headlessBrowser(facts)] : []
}

function httpClient({ headerUserAgent, userAgent }: Facts): NamedLabel {
  const label = /^[\w-]+/.exec(headerUserAgent || userAgent)?.[0] ?? 'HTTP client'
  return { value: slugOf(label), label, confidence: 90 }
}

function crawler(label: string): NamedLabel {
  return { value: slugOf(label), label, confidence: 60 }
}

function headlessBrowser({ agent }: Facts): NamedLabel {
  if (agent.engine === 'blink')
    return { value: 'headless_chrome', label: 'Headless Chrome', confidence: 95 }
  return { value: 'headless_browser', label: 'Headless browser', confidence: 90 }
}

function slugOf(label: string): string {
  return label.toLowerCase().replace(/[^a-z0-9]+/g, '_')
}

function evasionLabels(fired: FiredSignal[]): AttributionLabel[] {
  const hiding = fired.filter(({ slug }) => evasions.includes(slug))
  const [strongest] = hiding.sort((a, b) => b.points - a.points)
  if (!strongest) return []
  const confidence = Math.min(95, strongest.points + 5 * (hiding.length - 1))
  return [{ kind: 'evasion', value: 'stealth', label: 'Stealth', confidence }]
}
