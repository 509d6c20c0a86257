import type { Attribution, AttributionBehavior, AttributionLabel } from '../../../schemas/events.ts'
import type { Facts } from '../facts.ts'
import type { Signal } from '../signals/signal.ts'

/** The tool that a signal is the mark of. */
type Named = Pick<AttributionLabel, 'value' | 'label' | 'confidence'>

const tools: Record<string, Named> = {
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

const evasions = [
  'webdriver_property_overridden',
  'stealth_iframe_proxy',
  'faked_chrome_runtime',
  'imitated_plugins',
  'patched_stealth_functions',
]

const behaviors: Record<string, AttributionBehavior> = {
  uniform_typing: { channel: 'typing', value: 'synthetic-typing', label: 'Synthetic Typing', confidence: 70 },
  superhuman_typing: {
    channel: 'typing',
    value: 'superhuman-typing',
    label: 'Superhuman Typing',
    confidence: 75,
  },
  untrusted_input: { channel: 'mouse', value: 'scripted-events', label: 'Scripted Events', confidence: 80 },
  exact_center_clicks: { channel: 'mouse', value: 'exact-clicks', label: 'Exact Clicks', confidence: 70 },
  clicks_without_movement: {
    channel: 'mouse',
    value: 'teleporting-pointer',
    label: 'Teleporting Pointer',
    confidence: 70,
  },
  protocol_pointer_coordinates: {
    channel: 'mouse',
    value: 'protocol-input',
    label: 'Protocol Input',
    confidence: 75,
  },
  straight_pointer_paths: {
    channel: 'mouse',
    value: 'straight-paths',
    label: 'Straight Paths',
    confidence: 55,
  },
  silent_form_fill: { channel: 'form', value: 'silent-fill', label: 'Silent Fill', confidence: 55 },
  instant_submit: { channel: 'form', value: 'instant-submit', label: 'Instant Submit', confidence: 50 },
}

/** Who or what acted, as far as there is evidence; null when there is nothing to attribute. */
export function attributionOf(fired: Signal[], facts: Facts, isBot: boolean): Attribution | null {
  const labels = [...actorLabels(fired, isBot), ...toolLabels(fired, facts), ...evasionLabels(fired)]
  const observed = fired.flatMap(({ slug }) => behaviors[slug] ?? [])
  return labels.length > 0 || observed.length > 0 ? { labels, behaviors: observed } : null
}

function actorLabels(fired: Signal[], isBot: boolean): AttributionLabel[] {
  if (!isBot) return []
  const risks = fired.filter(({ role }) => role === 'risk')
  const confidence = Math.max(...risks.map((signal) => signal.score), 70)
  const actor = { kind: 'actor', value: 'automation', label: 'Automation', confidence } as const
  const crawls = fired.some(({ slug }) => slug === 'declared_bot_user_agent')
  if (!crawls) return [actor]
  return [actor, { kind: 'purpose', value: 'crawling', label: 'Crawling', confidence: 60 }]
}

function toolLabels(fired: Signal[], facts: Facts): AttributionLabel[] {
  const marked = fired.flatMap(({ slug }) => tools[slug] ?? [])
  return [...marked, ...namedTools(fired, facts)].map((tool) => ({ kind: 'tool', ...tool }))
}

/** Tools that name themselves in a user agent string or a client-hint brand. */
function namedTools(fired: Signal[], facts: Facts): Named[] {
  const has = (wanted: string) => fired.some(({ slug }) => slug === wanted)
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

function evasionLabels(fired: Signal[]): AttributionLabel[] {
  const hiding = fired.filter(({ slug }) => evasions.includes(slug))
  const [strongest] = hiding.sort((one, other) => other.score - one.score)
  if (!strongest) return []
  const confidence = Math.min(95, strongest.score + 5 * (hiding.length - 1))
  return [{ kind: 'evasion', value: 'stealth', label: 'Stealth', confidence }]
}
