import type { Snapshot } from '../../../schemas/observations.ts'
import { readAgent } from '../agent.ts'
import type { Facts } from '../facts.ts'
import { browser, type Signal } from './signal.ts'

const base = { family: 'headless', role: 'risk', category: 'environment' } as const

const headless = /headless|SlimerJS|PhantomJS/i
const declared =
  /\b(Googlebot|Google-InspectionTool|GoogleOther|AdsBot-Google|bingbot|BingPreview|Slurp|DuckDuckBot|Baiduspider|YandexBot|Applebot|facebookexternalhit|Twitterbot|LinkedInBot|Slackbot|Discordbot|GPTBot|OAI-SearchBot|ChatGPT-User|ClaudeBot|Claude-User|anthropic-ai|PerplexityBot|CCBot|Bytespider|Amazonbot|AhrefsBot|SemrushBot|MJ12bot|DotBot|PetalBot|SeznamBot)\b/i
const httpClient =
  /^(curl|Wget|python-requests|python-urllib|Python|aiohttp|httpx|Go-http-client|node|node-fetch|undici|axios|got|Java|okhttp|Apache-HttpClient|libwww-perl|PostmanRuntime|Ruby|Scrapy|reqwest|insomnia)\b/i

/** Every different user agent string of the session: page, iframe, worker, request. */
function userAgents({ snapshot, userAgent, headerUserAgent }: Facts): string[] {
  const inner = snapshot
    ? [snapshot.navigator.app_version, snapshot.worker.user_agent, snapshot.iframe.user_agent]
    : []
  return [...new Set([userAgent, headerUserAgent, ...inner])].filter((text) => text !== null)
}

/** The isbot list takes every real browser's `appVersion` for a bot: it lacks the leading `Mozilla/`. */
function onBotList(facts: Facts): boolean {
  const appVersion = facts.snapshot?.navigator.app_version
  return userAgents(facts).some((text) => text !== appVersion && readAgent(text).listed)
}

/** Brand names of the client hints, from the page and from the request. */
function brandNames({ snapshot, document }: Facts): string[] {
  const inPage = snapshot?.navigator.brands.map(({ brand }) => brand ?? '') ?? []
  return [...inPage, document?.client_hints['sec-ch-ua'] ?? '']
}

export function saysHeadless(facts: Facts): boolean {
  return [...userAgents(facts), ...brandNames(facts)].some((text) => headless.test(text))
}

const desktopChromium = ({ agent }: Facts) =>
  agent.engine === 'blink' && agent.formFactor === 'desktop' && !agent.webView

function isBare({ navigator, environment }: Snapshot): boolean {
  return (
    environment.screen_width === 800 && environment.screen_height === 600 && navigator.user_agent !== null
  )
}

/** Traits of browsers that run without a window. */
export const headlessSignals: Signal[] = [
  {
    ...base,
    slug: 'headless_user_agent',
    name: 'Headless browser by its own account',
    strength: 'definitive',
    score: 99,
    looksAt:
      '`Headless`, `SlimerJS`, `PhantomJS` in a user agent string or client-hint brand of page, iframe, worker or request',
    falsePositives: 'none known',
    fires: saysHeadless,
  },
  {
    ...base,
    slug: 'declared_bot_user_agent',
    name: 'Declared crawler',
    strength: 'definitive',
    score: 95,
    looksAt: 'the name of a well-known crawler or AI agent in a user agent string',
    falsePositives: 'none known; anyone may claim the name, which is automation too',
    fires: (facts) => userAgents(facts).some((text) => declared.test(text)),
  },
  {
    ...base,
    slug: 'http_client_user_agent',
    name: 'HTTP library instead of a browser',
    strength: 'definitive',
    score: 95,
    looksAt: 'the user agent of a web session starts with the name of an HTTP library or command-line client',
    falsePositives: 'none known; apps open their sessions as ios or android',
    fires: (facts) => facts.platform === 'web' && userAgents(facts).some((text) => httpClient.test(text)),
  },
  {
    ...base,
    slug: 'bot_like_user_agent',
    name: 'User agent on a list of bots',
    strength: 'strong',
    score: 45,
    looksAt: 'the isbot list',
    falsePositives: 'in-app browsers that the list mistook for crawlers in the past',
    fires: (facts) => facts.platform === 'web' && !facts.agent.webView && onBotList(facts),
  },
  {
    ...base,
    slug: 'chrome_object_missing',
    name: 'Chrome without its own object',
    strength: 'moderate',
    score: 25,
    looksAt: 'no `window.chrome` in desktop Chromium',
    falsePositives: 'web views and mobile lack it and are not looked at; rare embedded Chromium shells',
    fires: browser(
      (s, facts) =>
        desktopChromium(facts) && s.environment.has_chrome_object === false && s.automation.electron !== true,
    ),
  },
  {
    ...base,
    slug: 'permissions_contradiction',
    name: 'Contradictory notification permission',
    strength: 'moderate',
    score: 25,
    looksAt: '`Notification.permission` is denied while the permissions API says prompt, in Chromium',
    falsePositives: 'a few Chromium forks',
    fires: browser(
      ({ environment: e }, { agent }) =>
        agent.engine === 'blink' &&
        e.notification_permission === 'denied' &&
        e.permissions_query_state === 'prompt',
    ),
  },
  {
    ...base,
    slug: 'languages_empty',
    name: 'No language',
    strength: 'moderate',
    score: 20,
    looksAt: '`navigator.language` is the empty string',
    falsePositives: 'none known; an unreported language does not count',
    fires: browser((s) => s.navigator.language === '' && s.navigator.languages.length === 0),
  },
  {
    ...base,
    slug: 'window_without_size',
    name: 'Focused window without a size',
    strength: 'moderate',
    score: 25,
    looksAt: 'outer width and height are 0 while the document has focus, on a desktop',
    falsePositives: 'background tabs have no focus and are not looked at',
    fires: browser(
      ({ environment: e }, { agent }) =>
        agent.formFactor === 'desktop' && e.has_focus === true && e.outer_width === 0 && e.outer_height === 0,
    ),
  },
  {
    ...base,
    slug: 'default_headless_screen',
    name: 'Default screen of headless browsers',
    strength: 'weak',
    score: 10,
    looksAt: 'a screen of 800x600',
    falsePositives: 'remote desktops and very old machines',
    fires: browser(isBare),
  },
]
