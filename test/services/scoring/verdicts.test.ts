import { describe, expect, it } from 'vitest'
import { attribute } from '../../../services/scoring/explain/attribution.ts'
import { runtimeIntegrityOf } from '../../../services/scoring/explain/findings.ts'
import { highlightsOf } from '../../../services/scoring/explain/highlights.ts'
import { evaluateClient, slugs } from './support/sessions.ts'
import * as clients from './support/snapshots.ts'

/** Input as a person produces it. */
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
/** Pointer moved by xdotool: trusted, straight, each click on a centre. */
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

describe('verdicts on synthetic snapshots', () => {
  it.each([
    ['desktop Chrome', clients.desktopChrome],
    ['desktop Safari', clients.desktopSafari],
    ['desktop Firefox', clients.desktopFirefox],
    ['a Chromebook', clients.chromebook],
    ['Firefox with resistance to fingerprinting', clients.resistingFirefox],
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

  describe('a user agent switcher on a computer', () => {
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
    ])('that claims %s is inconclusive, and the reason says what it does', (_, claimed) => {
      const evaluation = evaluateClient(switched(claimed))
      expect([evaluation.score.verdict, slugs(evaluation)]).toEqual([
        'inconclusive',
        slugs(evaluation),
      ])
      const shown = highlightsOf(evaluation).flatMap(({ evidence }) => evidence ?? [])
      const said = shown.find(({ signal }) => signal === 'user_agent_replaced')
      expect(said?.name).toBe('User agent replaced by a script: its workers say blink on macos')
    })
  })

  it('Firefox as it is installed is not called hardened for privacy', () => {
    const evaluation = evaluateClient(clients.desktopFirefox)
    const { fired, facts } = evaluation
    expect(fired.map(({ slug }) => slug)).not.toContain('privacy_hardening_indicators')
    expect(highlightsOf(evaluation).map(({ key }) => key)).not.toContain('privacy_tools')
    expect(runtimeIntegrityOf(fired, facts).privacy_hardening_suspected).toBe('clean')
  })

  it('headless Chrome driven over the protocol is a bot, attributed to it', () => {
    const evaluation = evaluateClient(clients.headlessChrome)
    expect(evaluation.score).toMatchObject({ verdict: 'bot', risk: 100 })
    expect(slugs(evaluation)).toEqual(
      expect.arrayContaining(['webdriver_detected', 'headless_user_agent']),
    )
    const attribution = attribute(evaluation.fired, evaluation.facts, true)
    expect(attribution?.labels).toContainEqual({
      kind: 'actor',
      value: 'automation',
      label: 'Automation',
      confidence: 100,
    })
    expect(attribution?.labels.map(({ value }) => value)).toContain('headless_chrome')
    expect(attribution?.labels.map(({ value }) => value)).not.toContain('playwright')
  })

  it('names Playwright only where its own globals are seen', () => {
    const marked = clients.withParts(clients.headlessChrome, {
      automation: { globals: ['__pwInitScripts'] },
    })
    const { fired, facts } = evaluateClient(marked)
    expect(attribute(fired, facts, true)?.labels.map(({ value }) => value)).toContain('playwright')
  })

  it('a stealth plugin is a bot by the marks of its patches', () => {
    const evaluation = evaluateClient(clients.stealthPuppeteer)
    expect(evaluation.score.verdict).toBe('bot')
    const labels = attribute(evaluation.fired, evaluation.facts, true)?.labels ?? []
    expect(labels.map(({ value }) => value)).toEqual(
      expect.arrayContaining(['stealth', 'puppeteer_extra_stealth']),
    )
  })

  it.each([
    ['silent', undefined],
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

  it('the worst behaviour alone makes no bot', () => {
    const mouse = {
      events: 40,
      untrusted: 40,
      moves: 30,
      clicks: 6,
      clicks_exact_center: 6,
      clicks_without_move: 6,
      screen_equals_client: 30,
      straightness: 1,
      speed_std: 0,
    }
    const keyboard = { events: 60, untrusted: 60, keys: 30, interval_mean: 2, interval_std: 0 }
    const form = { events: 5, silent_changes: 3, submits: 1, time_to_submit_ms: 20 }
    const { score } = evaluateClient(clients.desktopChrome, { behavior: { mouse, keyboard, form } })
    expect(score.verdict).not.toBe('bot')
  })

  it('remote debugging is doubtful until a person has acted, and when input came through it', () => {
    const debugged = clients.withParts(clients.desktopChrome, { automation: { cdp_runtime: true } })
    expect(evaluateClient(debugged).score.verdict).toBe('inconclusive')
    const moved = { ...person, mouse: { ...person.mouse, coalesced: 30 } }
    expect(evaluateClient(debugged, { behavior: moved }).score.verdict).toBe('human')
    const driven = {
      mouse: {
        events: 8,
        moves: 4,
        untrusted: 0,
        clicks: 4,
        clicks_exact_center: 4,
        clicks_without_move: 4,
      },
    }
    expect(evaluateClient(debugged, { behavior: driven }).score.verdict).toBe('inconclusive')
  })

  it('a snapshot that says next to nothing is inconclusive, not human and not a bot', () => {
    expect(evaluateClient({ snapshot: {} }).score.verdict).toBe('inconclusive')
  })

  const flags = {
    hooks: true,
    simulator_or_emulator: true,
    code_signing_invalid: true,
    jailbreak_or_root: true,
    debugger: true,
  }
  const without = (...names: (keyof typeof flags)[]) => ({
    ...flags,
    ...Object.fromEntries(names.map((name) => [name, false])),
  })

  it.each([
    ['every flag', flags, 'bot'],
    [
      'hooks in an emulator',
      without('code_signing_invalid', 'jailbreak_or_root', 'debugger'),
      'bot',
    ],
    [
      'hooks in a changed app',
      without('simulator_or_emulator', 'jailbreak_or_root', 'debugger'),
      'bot',
    ],
    [
      "a developer's emulator, build and debugger",
      without('hooks', 'jailbreak_or_root'),
      'inconclusive',
    ],
    ['a rooted phone', { jailbreak_or_root: true }, 'inconclusive'],
    [
      'no flag',
      without(
        'hooks',
        'simulator_or_emulator',
        'code_signing_invalid',
        'jailbreak_or_root',
        'debugger',
      ),
      'inconclusive',
    ],
    ['no observation at all', {}, 'inconclusive'],
  ])('of an app: %s', (_, given, verdict) => {
    const native = {
      ...given,
      device_model: 'Pixel 8',
      bundle_id: 'com.example.shop',
      install_id: 'i-1',
    }
    expect(evaluateClient({ snapshot: { native } }).score.verdict).toBe(verdict)
  })

  it('explains a bot with at most five highlights, the automation first', () => {
    const evaluation = evaluateClient(clients.headlessChrome, { behavior: xdotool })
    const highlights = highlightsOf(evaluation)
    expect(highlights.length).toBeLessThanOrEqual(5)
    expect(highlights[0]).toMatchObject({
      key: 'browser_automation',
      effect: 'increases_risk',
      importance: 'high',
    })
    expect(highlights[0]?.evidence).toContainEqual({
      signal: 'webdriver_detected',
      name: 'WebDriver detected',
    })
  })
})
