import { expect, it } from 'vitest'
import { attribute } from '../../../services/scoring/explain/attribution.ts'
import { runtimeIntegrityOf } from '../../../services/scoring/explain/findings.ts'
import { highlightsOf } from '../../../services/scoring/explain/highlights.ts'
import { evaluateClient, slugs } from './support/sessions.ts'
import * as clients from './support/snapshots.ts'

/** Human input. */
const person = {
  mouse: { events: 120, moves: 110, clicks: 4, straightness: 1.12, speed_std: 0.6 },
  keyboard: {
    events: 40,
    keys: 20,
    interval_mean: 160,
    interval_std: 70,
    rollovers: 4,
    corrections: 1,
  },
}
/** Input by xdotool: trusted, straight, all clicks on exact centers. */
const xdotool = {
  mouse: {
    events: 64,
    moves: 60,
    clicks: 3,
    clicks_exact_center: 3,
    straightness: 1,
    speed_std: 0.01,
  },
}

it.each([
  ['desktop Chrome', clients.desktopChrome],
  ['desktop Safari', clients.desktopSafari],
  ['desktop Firefox', clients.desktopFirefox],
  ['a Chromebook', clients.chromebook],
  ['Firefox with fingerprinting resistance', clients.resistingFirefox],
  ['Brave', clients.brave],
  ['Safari on an iPhone', clients.iphoneSafari],
  ['Chrome on Android', clients.androidChrome],
  ['an Android web view', clients.androidWebView],
])('%s is human, with and without input', (_, client) => {
  const silent = evaluateClient(client)
  expect([silent.score.verdict, slugs(silent)]).toEqual(['human', slugs(silent)])
  expect(silent.score.risk).toBeLessThan(20)
  expect(evaluateClient(client, { behavior: person }).score.verdict).toBe('human')
})

const { user_agent: ownAgent = null } = clients.desktopChrome.snapshot.navigator ?? {}
const switched = (claimed: clients.Client) => {
  const { user_agent = null } = claimed.snapshot.navigator ?? {}
  const own = { available: true, user_agent: ownAgent, platform: 'MacIntel' }
  return clients.withParts(clients.desktopChrome, {
    navigator: { user_agent, platform: claimed.snapshot.navigator?.platform ?? null },
    tamper: { navigator_own_properties: ['userAgent', 'platform'] },
    worker: own,
    iframe: own,
    webgl: { renderer: 'ANGLE (Intel Inc., Intel(R) Iris(TM) Plus Graphics, OpenGL 4.1)' },
  })
}

it.each([
  ['an iPhone', clients.iphoneSafari],
  ['Safari on a Mac', clients.desktopSafari],
  ['Chrome on Android', clients.androidChrome],
  ['Firefox', clients.desktopFirefox],
])(
  'a user agent switcher that claims %s is inconclusive, with a highlight that names the real browser',
  (_, claimed) => {
    const evaluation = evaluateClient(switched(claimed))
    expect([evaluation.score.verdict, slugs(evaluation)]).toEqual([
      'inconclusive',
      slugs(evaluation),
    ])
    const shown = highlightsOf(evaluation).flatMap(({ evidence }) => evidence ?? [])
    const said = shown.find(({ signal }) => signal === 'user_agent_replaced')
    expect(said?.name).toBe('User agent replaced by a script: its workers say blink on macos')
  },
)

it('Firefox with default settings has no privacy highlight', () => {
  const evaluation = evaluateClient(clients.desktopFirefox)
  const { fired, facts } = evaluation
  expect(slugs(evaluation)).not.toContain('privacy_hardening_indicators')
  expect(highlightsOf(evaluation).map(({ key }) => key)).not.toContain('privacy_tools')
  expect(runtimeIntegrityOf(fired, facts).privacy_hardening_suspected).toBe('clean')
})

const labelsOf = (client: clients.Client) => {
  const { fired, facts } = evaluateClient(client)
  return attribute(fired, facts, true)?.labels ?? []
}
const valuesOf = (client: clients.Client) => labelsOf(client).map(({ value }) => value)

it('headless Chrome is a bot, and attributed', () => {
  const evaluation = evaluateClient(clients.headlessChrome)
  expect(evaluation.score).toMatchObject({ verdict: 'bot', risk: 100 })
  expect(slugs(evaluation)).toEqual(
    expect.arrayContaining(['webdriver_detected', 'headless_user_agent']),
  )
  const actor = { kind: 'actor', value: 'automation', label: 'Automation', confidence: 100 }
  expect(labelsOf(clients.headlessChrome)).toContainEqual(actor)
  expect(valuesOf(clients.headlessChrome)).toContain('headless_chrome')
})

it('attributes Playwright only by its own globals', () => {
  const automation = { globals: ['__pwInitScripts'] }
  expect(valuesOf(clients.withParts(clients.headlessChrome, { automation }))).toContain(
    'playwright',
  )
  expect(valuesOf(clients.headlessChrome)).not.toContain('playwright')
})

it('a stealth plugin is a bot because of its patches', () => {
  expect(evaluateClient(clients.stealthPuppeteer).score.verdict).toBe('bot')
  expect(valuesOf(clients.stealthPuppeteer)).toEqual(
    expect.arrayContaining(['stealth', 'puppeteer_extra_stealth']),
  )
})

it.each([
  ['without input', undefined],
  ['moved by xdotool', xdotool],
  ['used by a person', person],
])('a windowed Chromium in a bare container, %s, is not a bot', (_, behavior) => {
  const { score } = evaluateClient(clients.bareChromium, behavior ? { behavior } : {})
  expect(score.verdict).not.toBe('bot')
})

it('software rendering, UTC and a bare machine together stay human', () => {
  const evaluation = evaluateClient(clients.bareChromium)
  expect(slugs(evaluation)).toEqual(
    expect.arrayContaining(['software_rendered_graphics_path', 'utc_timezone', 'bare_machine']),
  )
  expect(evaluation.score.verdict).toBe('human')
})

it('the worst input alone is not a bot', () => {
  const behavior = {
    mouse: { ...xdotool.mouse, untrusted: 64, clicks_without_move: 3, screen_equals_client: 60 },
    keyboard: { events: 60, untrusted: 60, keys: 30, interval_mean: 2, interval_std: 0 },
    form: { events: 5, silent_changes: 3, submits: 1, time_to_submit_ms: 20 },
  }
  expect(evaluateClient(clients.desktopChrome, { behavior }).score.verdict).not.toBe('bot')
})

it('remote debugging is inconclusive before natural input, or if input came through it', () => {
  const debugged = clients.withParts(clients.desktopChrome, { automation: { cdp_runtime: true } })
  const verdictOf = (behavior: object) => evaluateClient(debugged, { behavior }).score.verdict
  expect(verdictOf({})).toBe('inconclusive')
  expect(verdictOf({ ...person, mouse: { ...person.mouse, coalesced: 30 } })).toBe('human')
  const clicks = { clicks: 4, clicks_exact_center: 4, clicks_without_move: 4 }
  expect(verdictOf({ mouse: { events: 8, moves: 4, ...clicks } })).toBe('inconclusive')
})

it('an empty snapshot is inconclusive', () => {
  expect(evaluateClient({ snapshot: {} }).score.verdict).toBe('inconclusive')
})

const flags = [
  'hooks',
  'simulator_or_emulator',
  'code_signing_invalid',
  'jailbreak_or_root',
  'debugger',
]

it.each([
  ['every flag', flags, 'bot'],
  ['hooks in an emulator', ['hooks', 'simulator_or_emulator'], 'bot'],
  ['hooks in a changed app', ['hooks', 'code_signing_invalid'], 'bot'],
  [
    "a developer's emulator, build and debugger",
    ['simulator_or_emulator', 'code_signing_invalid', 'debugger'],
    'inconclusive',
  ],
  ['a rooted phone', ['jailbreak_or_root'], 'inconclusive'],
  ['no flag', [], 'inconclusive'],
  ['no observation at all', null, 'inconclusive'],
])('judges the checks of an app: %s', (_, raised, verdict) => {
  const checks = raised && Object.fromEntries(flags.map((name) => [name, raised.includes(name)]))
  const app = { device_model: 'Pixel 8', bundle_id: 'com.example.shop', install_id: 'i-1' }
  const client = { snapshot: { native: { ...app, ...checks } } }
  expect(evaluateClient(client).score.verdict).toBe(verdict)
})

it('explains a bot with at most five highlights, automation first', () => {
  const evaluation = evaluateClient(clients.headlessChrome, { behavior: xdotool })
  const highlights = highlightsOf(evaluation)
  expect(highlights.length).toBeLessThanOrEqual(5)
  expect(highlights[0]).toMatchObject({
    key: 'browser_automation',
    effect: 'increases_risk',
    importance: 'high',
  })
  const driver = { signal: 'webdriver_detected', name: 'WebDriver detected' }
  expect(highlights[0]?.evidence).toContainEqual(driver)
})
