import type { Snapshot } from '../../../schemas/observations.ts'
import { readAgent } from '../session/agent.ts'
import { type Facts, userAgentsOf } from '../session/facts.ts'
import { defineSignals, ifBrowser } from './signal.ts'

export const headless = /headless|SlimerJS|PhantomJS/i
export const httpClient =
  /^(curl|Wget|python-requests|python-urllib|Python|aiohttp|httpx|Go-http-client|node|node-fetch|undici|axios|got|Java|okhttp|Apache-HttpClient|libwww-perl|PostmanRuntime|Ruby|Scrapy|reqwest|insomnia)\b/i

// `appVersion` lacks the leading `Mozilla/`, so isbot takes that of every real browser for a bot.
function isOnBotList(facts: Facts): boolean {
  const appVersion = facts.snapshot?.navigator.app_version
  return userAgentsOf(facts).some((text) => text !== appVersion && readAgent(text).isOnBotList)
}

function brandNames({ snapshot, document }: Facts): string[] {
  const inPage = snapshot?.navigator.brands.map(({ brand }) => brand ?? '') ?? []
  return [...inPage, document?.client_hints['sec-ch-ua'] ?? '']
}

function namesHeadless(facts: Facts): boolean {
  return [...userAgentsOf(facts), ...brandNames(facts)].some((text) => headless.test(text))
}

const isDesktopBlink = ({ agent }: Facts) =>
  agent.engine === 'blink' && agent.formFactor === 'desktop' && !agent.webView

function hasDefaultScreen({ navigator, environment }: Snapshot): boolean {
  return (
    environment.screen_width === 800 &&
    environment.screen_height === 600 &&
    navigator.user_agent !== null
  )
}

// Defaults of Puppeteer and Playwright.
const defaultViewports = ['800x600', '1280x720']

function hasDefaultViewport({ environment: e }: Snapshot): boolean {
  return (
    defaultViewports.includes(`${e.inner_width}x${e.inner_height}`) &&
    (e.inner_width !== e.outer_width || e.inner_height !== e.outer_height) &&
    !fillsScreenZoomed(e)
  )
}

// True for a zoomed page in full screen, as on a TV.
function fillsScreenZoomed({ pixel_ratio: ratio, ...e }: Snapshot['environment']): boolean {
  const fills = (page: number | null, screen: number | null) =>
    Math.abs((page ?? 0) * (ratio ?? 1) - (screen ?? 0)) <= 2
  return (
    ratio !== 1 && fills(e.inner_width, e.screen_width) && fills(e.inner_height, e.screen_height)
  )
}

function hasEmulatedScreen({ environment: e }: Snapshot): boolean {
  const fills = e.inner_width === e.screen_width && e.inner_height === e.screen_height
  const { outer_width: width, outer_height: height } = e
  return fills && (exceeds(width, e.screen_width) || exceeds(height, e.screen_height))
}

const exceeds = (size: number | null, limit: number | null) =>
  size !== null && limit !== null && size > limit

function hasNoHints({ navigator: n }: Snapshot): boolean {
  return n.brands.length > 0 && n.ua_data_architecture === '' && n.ua_full_version === null
}

export const headlessSignals = defineSignals({
  headless_user_agent: {
    name: 'Headless user agent',
    looksAt: 'a user agent string or client-hint brand has `Headless`, `SlimerJS` or `PhantomJS`',
    falsePositives: 'none',
    fires: namesHeadless,
  },
  http_client_user_agent: {
    name: 'HTTP library instead of a browser',
    looksAt: "a page's user agent starts with the name of an HTTP library or command-line client",
    falsePositives: 'none; apps open sessions as ios or android',
    fires: (facts) =>
      facts.platform === 'web' && userAgentsOf(facts).some((text) => httpClient.test(text)),
  },
  bot_like_user_agent: {
    name: 'User agent on a bot list',
    looksAt: 'the user agent matches the isbot list',
    falsePositives: 'in-app browsers that the list mistakes for crawlers',
    fires: (facts) => facts.platform === 'web' && !facts.agent.webView && isOnBotList(facts),
  },
  chrome_object_missing: {
    name: 'Chrome without window.chrome',
    looksAt: 'desktop Chromium has no `window.chrome`',
    falsePositives: 'rare embedded Chromium shells',
    fires: ifBrowser(
      (s, facts) =>
        isDesktopBlink(facts) &&
        s.environment.has_chrome_object === false &&
        s.automation.electron !== true,
    ),
  },
  permissions_contradiction: {
    name: 'Contradictory notification permission',
    looksAt:
      'in Chromium, `Notification.permission` is denied, but the permissions API says prompt',
    falsePositives: 'a few Chromium forks',
    fires: ifBrowser(
      ({ environment: e }, { agent }) =>
        agent.engine === 'blink' &&
        e.notification_permission === 'denied' &&
        e.permissions_query_state === 'prompt',
    ),
  },
  languages_empty: {
    name: 'No language',
    looksAt: '`navigator.language` is the empty string',
    falsePositives: 'none; an unreported language does not count',
    fires: ifBrowser((s) => s.navigator.language === '' && s.navigator.languages.length === 0),
  },
  window_without_size: {
    name: 'Focused window without a size',
    looksAt: 'on a desktop, outer width and height are 0 although the document has focus',
    falsePositives: 'none; background tabs have no focus',
    fires: ifBrowser(
      ({ environment: e }, { agent }) =>
        agent.formFactor === 'desktop' &&
        e.has_focus === true &&
        e.outer_width === 0 &&
        e.outer_height === 0,
    ),
  },
  default_headless_screen: {
    name: 'Default headless screen',
    looksAt: 'the screen is 800x600',
    falsePositives: 'remote desktops and very old machines',
    fires: ifBrowser(hasDefaultScreen),
  },
  default_viewport: {
    name: 'Default automation viewport',
    looksAt: 'on a desktop, the page is 800x600 or 1280x720 in a window of another size',
    falsePositives: 'windows of that size, device emulation in developer tools',
    fires: ifBrowser((s, { agent }) => agent.formFactor === 'desktop' && hasDefaultViewport(s)),
  },
  screen_smaller_than_window: {
    name: 'Emulated screen',
    looksAt: 'on a desktop, the page is as large as the screen, but the window is larger',
    falsePositives: 'device emulation in developer tools',
    fires: ifBrowser((s, { agent }) => agent.formFactor === 'desktop' && hasEmulatedScreen(s)),
  },
  no_pointing_device: {
    name: 'Desktop without a pointing device',
    looksAt: 'desktop Chromium has no mouse, touchpad, pen or touch screen',
    falsePositives: 'computers with only a keyboard, remote desktops',
    fires: ifBrowser(
      (s, facts) =>
        isDesktopBlink(facts) && !facts.agent.embedded && s.environment.pointing_device === false,
    ),
  },
  user_agent_overridden: {
    name: 'User agent override',
    looksAt:
      'desktop Chromium has brands, but no architecture and no full version, as after a user agent override',
    falsePositives: 'a user agent set in developer tools or on the command line',
    fires: ifBrowser((s, facts) => isDesktopBlink(facts) && hasNoHints(s)),
  },
})

/** Names of software renderers. */
export const softwareGpus =
  /swiftshader|llvmpipe|softpipe|mesa offscreen|software|basic render|microsoft basic/i
const memorySizes = [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64]

export function isSoftwareRendered({ snapshot }: Facts): boolean {
  return (
    snapshot !== null &&
    softwareGpus.test(`${snapshot.webgl.vendor ?? ''} ${snapshot.webgl.renderer ?? ''}`)
  )
}

function bareMachineTraits({ snapshot, agent }: Facts): number {
  if (!snapshot) return 0
  const { navigator, fonts, media, audio } = snapshot
  const isDesktop = agent.engine === 'blink' && agent.formFactor === 'desktop'
  return [
    isDesktop && navigator.pdf_viewer_enabled !== null && navigator.plugins.length === 0,
    fonts.detected_count !== null && fonts.detected_count < 4,
    media.device_count === 0,
    audio.voice_count === 0,
  ].filter(Boolean).length
}

/**
 * Signals of unattended machines. Together they can't reach `bot`, because thin clients and virtual desktops look
 * the same.
 */
export const machineSignals = defineSignals({
  software_rendered_graphics_path: {
    name: 'Software-rendered graphics',
    looksAt: 'the WebGL renderer is SwiftShader, llvmpipe or another software renderer',
    falsePositives: 'virtual machines, remote desktops, blocklisted GPU drivers',
    fires: isSoftwareRendered,
  },
  utc_timezone: {
    name: 'Clock set to UTC',
    looksAt: 'the time zone is UTC',
    falsePositives: 'people in UTC, servers used as desktops',
    fires: ifBrowser(
      (s, { privacyTool }) =>
        !privacyTool && /^(UTC|Etc\/UTC|Etc\/GMT|GMT|Etc\/UCT)$/.test(s.environment.timezone ?? ''),
    ),
  },
  bare_machine: {
    name: 'Bare machine',
    looksAt:
      'at least two of: no plugins in desktop Chromium, almost no fonts, no media devices, no voices',
    falsePositives: 'fresh installs, virtual desktops, the "download PDFs" setting',
    fires: ifBrowser((_, facts) => !facts.privacyTool && bareMachineTraits(facts) >= 2),
  },
  very_many_cores: {
    name: 'Very many processor cores',
    looksAt: 'more than 64 logical processors',
    falsePositives: 'large workstations',
    fires: ifBrowser((s) => (s.navigator.hardware_concurrency ?? 0) > 64),
  },
  impossible_device_memory: {
    name: 'Impossible amount of memory',
    looksAt: '`navigator.deviceMemory` is not one of the rounded values that browsers report',
    falsePositives: 'none',
    fires: ifBrowser(
      (s) => s.navigator.device_memory !== null && !memorySizes.includes(s.navigator.device_memory),
    ),
  },
})
