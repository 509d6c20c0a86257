import type { Attribution, AttributionBehavior, AttributionLabel } from '../../../schemas/events.ts'
import type { Facts } from '../facts.ts'
import type { Signal } from '../signals/signal.ts'

/** The tool that a signal is the mark of. */
const tools: Record<string, [value: string, label: string, confidence: number]> = {
  playwright_globals: ['playwright', 'Playwright', 97],
  puppeteer_globals: ['puppeteer', 'Puppeteer', 95],
  selenium_globals: ['selenium', 'Selenium', 96],
  chromedriver_markers: ['chromedriver', 'ChromeDriver', 96],
  phantom_globals: ['phantomjs', 'PhantomJS', 96],
  sequentum_external: ['sequentum', 'Sequentum', 96],
  stealth_iframe_proxy: ['puppeteer_extra_stealth', 'Puppeteer Extra Stealth', 80],
}

const evasions = [
  'webdriver_property_overridden',
  'stealth_iframe_proxy',
  'faked_chrome_runtime',
  'imitated_plugins',
  'patched_stealth_functions',
]

const behaviors: Record<string, Omit<AttributionBehavior, 'confidence'> & { confidence: number }> = {
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
  const named = [...marked, ...namedTools(fired, facts)]
  return named.map(([value, label, confidence]) => ({ kind: 'tool', value, label, confidence }))
}

/** Tools that name themselves in a user agent string or a client-hint brand. */
function namedTools(fired: Signal[], facts: Facts): [string, string, number][] {
  const slugs = fired.map(({ slug }) => slug)
  const agent = facts.headerUserAgent || facts.userAgent
  if (slugs.includes('http_client_user_agent')) {
    const name = /^[\w-]+/.exec(agent)?.[0] ?? 'http_client'
    return [[name.toLowerCase(), name, 90]]
  }
  if (slugs.includes('declared_bot_user_agent') && facts.agent.browser) {
    return [[facts.agent.browser.toLowerCase().replaceAll(' ', '_'), facts.agent.browser, 60]]
  }
  if (slugs.includes('headless_user_agent')) return [headlessTool(facts)]
  return []
}

function headlessTool({ agent }: Facts): [string, string, number] {
  return agent.engine === 'blink'
    ? ['headless_chrome', 'Headless Chrome', 95]
    : ['headless_browser', 'Headless Browser', 90]
}

function evasionLabels(fired: Signal[]): AttributionLabel[] {
  const hiding = fired.filter(({ slug }) => evasions.includes(slug))
  const [strongest] = hiding.sort((one, other) => other.score - one.score)
  if (!strongest) return []
  const confidence = Math.min(95, strongest.score + 5 * (hiding.length - 1))
  return [{ kind: 'evasion', value: 'stealth', label: 'Stealth', confidence }]
}
