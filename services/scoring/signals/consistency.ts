import type { Snapshot } from '../../../schemas/observations.ts'
import type { Agent, Engine, System } from '../session/agent.ts'
import type { Facts } from '../session/facts.ts'
import type { DocumentState } from '../session/state.ts'
import { isSoftwareRendered, softwareGraphics } from './headless.ts'
import { inBrowser, signals } from './signal.ts'
import { replacesUserAgent } from './tamper.ts'

const engineNames: Record<string, Engine> = {
  V8: 'blink',
  SpiderMonkey: 'gecko',
  JavaScriptCore: 'webkit',
}

// Phones and tablets ask for desktop sites under a desktop name: iPads as Macs, Android as Linux. What calls itself a
// phone has no reason to.
function mayPretend({ snapshot, agent }: Facts): boolean {
  const isTouched = (snapshot?.navigator.max_touch_points ?? 0) > 1
  return agent.webView || (isTouched && !isPhone(agent))
}

/** The user agent is of an iPhone or an Android device. A web view does not count, because its user agent may be anything. */
const isPhone = ({ system, formFactor, webView }: Agent) =>
  !webView && (system === 'android' || (system === 'ios' && formFactor === 'mobile'))

function engineDiffers(snapshot: Snapshot, facts: Facts): boolean {
  const real = engineNames[snapshot.engine.name ?? '']
  // Every browser of iOS has Apple's engine, whatever it calls itself.
  const claimed = facts.agent.system === 'ios' ? 'webkit' : facts.agent.engine
  return real !== undefined && claimed !== 'unknown' && real !== claimed
}

function systemsOfPlatform(platform: string): System[] {
  if (/^Win/.test(platform)) return ['windows']
  if (/^Mac/.test(platform)) return ['macos', 'ios']
  if (/^(iPhone|iPad|iPod)/.test(platform)) return ['ios', 'macos']
  if (/^Linux (arm|aarch)/.test(platform)) return ['android', 'linux', 'chromeos']
  if (/^Linux/.test(platform)) return ['linux', 'android', 'chromeos']
  if (/^Android/.test(platform)) return ['android']
  return []
}

const hintSystems: Record<string, System> = {
  Windows: 'windows',
  macOS: 'macos',
  Linux: 'linux',
  Android: 'android',
  'Chrome OS': 'chromeos',
  'Chromium OS': 'chromeos',
  iOS: 'ios',
}

function systemOfHint(platform: string | null): System | undefined {
  return hintSystems[platform?.replaceAll('"', '') ?? '']
}

function platformDiffers({ navigator }: Snapshot, facts: Facts): boolean {
  const { system } = facts.agent
  if (system === 'other' || mayPretend(facts)) return false
  const possible = systemsOfPlatform(navigator.platform ?? '')
  const hinted = systemOfHint(navigator.ua_data_platform)
  return (
    (possible.length > 0 && !possible.includes(system)) ||
    (hinted !== undefined && hinted !== system)
  )
}

function realmDiffers(realm: Snapshot['worker'], { navigator }: Snapshot, facts: Facts): boolean {
  if (realm.available !== true || mayPretend(facts)) return false
  return (
    differ(realm.user_agent, navigator.user_agent) ||
    differ(realm.platform, navigator.platform) ||
    differ(realm.languages.join(), navigator.languages.join())
  )
}

function differ(one: string | null, other: string | null): boolean {
  return !!one && !!other && one !== other
}

function gpuSystemDiffers({ webgl }: Snapshot, { agent, ...facts }: Facts): boolean {
  if (mayPretend({ agent, ...facts })) return false
  const renderer = webgl.renderer ?? ''
  if (/Direct3D|D3D1[12]/.test(renderer))
    return agent.system !== 'windows' && agent.system !== 'other'
  // Every WebKit says "Apple GPU", on any system.
  if (agent.engine === 'webkit' && renderer === 'Apple GPU') return false
  return (
    /Apple (M\d|GPU)|Metal Renderer/.test(renderer) &&
    agent.system !== 'macos' &&
    agent.system !== 'other'
  )
}

// Without a graphics card, page and worker may fall back to different software.
function workerGpuDiffers({ worker, webgl }: Snapshot, facts: Facts): boolean {
  if (facts.agent.engine !== 'blink' || worker.available !== true || isSoftwareRendered(facts))
    return false
  return differ(worker.webgl_renderer, webgl.renderer)
}

function productSubDiffers({ navigator }: Snapshot, { agent }: Facts): boolean {
  const expected: Partial<Record<Engine, string>> = {
    blink: '20030107',
    webkit: '20030107',
    gecko: '20100101',
  }
  return differ(navigator.product_sub, expected[agent.engine] ?? null)
}

// Graphics of Android devices that are not virtual. Samsung's Xclipse is AMD's, and has a name of its own.
const mobileGraphics =
  /Adreno|Mali|Immortalis|PowerVR|Xclipse|Tegra|Maleoon|VideoCore|Vivante|Apple GPU|Apple A\d/i
const desktopGraphics = /NVIDIA|GeForce|Quadro|Radeon|AMD|Intel|Direct3D|D3D1[12]|Mesa/i

export function hasDesktopGraphics({ webgl, worker }: Snapshot, { agent }: Facts): boolean {
  if (!isPhone(agent)) return false
  const isOfComputer = (name: string) => softwareGraphics.test(name) || desktopGraphics.test(name)
  const names = [webgl.renderer, worker.webgl_renderer].filter((name) => name !== null)
  return names.some((name) => isOfComputer(name) && !mobileGraphics.test(name))
}

export function runsOnDesktop({ navigator, worker, iframe }: Snapshot, { agent }: Facts): boolean {
  if (!isPhone(agent)) return false
  return [navigator, worker, iframe].some(({ platform }) =>
    /^(Win|Mac|Linux (x86_64|i\d86)|CrOS)/.test(platform ?? ''),
  )
}

// A browser on a phone has an address bar, and the system a bar for the time.
function hasNoBars({ environment: e }: Snapshot, { agent }: Facts): boolean {
  const isWhole = e.inner_width === e.screen_width && e.inner_height === e.screen_height
  return isPhone(agent) && e.inner_height !== null && isWhole
}

function phoneWithoutTouch({ navigator, environment }: Snapshot, { agent }: Facts): boolean {
  return (
    agent.formFactor === 'mobile' &&
    navigator.max_touch_points === 0 &&
    environment.pointer_coarse !== true
  )
}

const isDesktop = ({ formFactor, webView }: Agent) => formFactor === 'desktop' && !webView

export const consistencySignals = signals({
  engine_mismatch: {
    name: 'Engine contradicts the user agent',
    looksAt:
      'the JavaScript engine by its features against the engine that the user agent string names',
    falsePositives: 'none',
    fires: inBrowser(engineDiffers),
  },
  platform_mismatch: {
    name: 'Operating system contradicts the user agent',
    looksAt: '`navigator.platform` and client-hint platform against the user agent string',
    falsePositives: 'desktop-site mode',
    fires: inBrowser(platformDiffers),
  },
  worker_mismatch: {
    name: 'Worker contradicts the page',
    looksAt:
      'user agent, platform and languages inside a worker; not processor counts, which Brave varies',
    falsePositives: 'iPads',
    fires: inBrowser((s, facts) => realmDiffers(s.worker, s, facts)),
  },
  iframe_mismatch: {
    name: 'Iframe contradicts the page',
    looksAt: 'user agent, platform and languages inside a clean iframe',
    falsePositives: 'user agent switching extensions that skip frames',
    fires: inBrowser((s, facts) => realmDiffers(s.iframe, s, facts)),
  },
  gpu_system_mismatch: {
    name: 'Graphics driver of another operating system',
    looksAt: 'Direct3D outside Windows, Metal or Apple GPUs outside Apple systems',
    falsePositives: 'in-app browsers with shortened user agents',
    fires: inBrowser(gpuSystemDiffers),
  },
  worker_gpu_mismatch: {
    name: 'Worker sees another graphics card',
    looksAt: 'WebGL renderer in a worker against the page, in Chromium',
    falsePositives: 'laptops with two graphics cards',
    fires: inBrowser((s, facts) => isDesktop(facts.agent) && workerGpuDiffers(s, facts)),
  },
  languages_mismatch: {
    name: 'First language is not the language',
    looksAt: '`navigator.languages[0]` against `navigator.language`',
    falsePositives: 'language extensions',
    fires: inBrowser(({ navigator: n }) => differ(n.languages[0] ?? null, n.language)),
  },
  product_sub_mismatch: {
    name: 'Build constant contradicts the engine',
    looksAt: '`navigator.productSub` against the constant of the engine',
    falsePositives: 'device emulation in developer tools',
    fires: inBrowser(productSubDiffers),
  },
  phone_without_touch: {
    name: 'Phone without touch',
    looksAt: 'a phone by user agent with no touch points and no coarse pointer',
    falsePositives: 'phones in desktop docks, device emulation in developer tools',
    fires: inBrowser(phoneWithoutTouch),
  },
  phone_with_desktop_graphics: {
    name: 'Phone with the graphics of a computer',
    looksAt: 'a phone or tablet by user agent with SwiftShader, or a graphics card of computers',
    falsePositives: 'Android on a Chromebook or a PC, device emulation in developer tools',
    // A switched user agent has signals of its own.
    fires: inBrowser((s, facts) => !replacesUserAgent(s) && hasDesktopGraphics(s, facts)),
  },
  phone_on_desktop_system: {
    name: 'Phone on the system of a computer',
    looksAt:
      'a phone or tablet by user agent with the platform of a computer in page, worker or frame',
    falsePositives: 'Android on a Chromebook or a PC, device emulation in developer tools',
    fires: inBrowser(runsOnDesktop),
  },
  phone_without_bars: {
    name: 'Phone whose page fills the screen',
    looksAt:
      'on a phone, the page is as large as the screen: no bar of the browser or the system is there',
    falsePositives: 'pages that were installed, full screen',
    fires: inBrowser(hasNoBars),
  },
  timezone_contradiction: {
    name: 'Contradictory time zone',
    looksAt: 'the zone of `Intl` against the offsets of `Date`',
    falsePositives: 'time zone extensions, outdated zone data',
    details: () => 'Intl and Date are of different zones',
    fires: inBrowser((s, { privacyTool }) => !privacyTool && s.tamper.timezone_mismatch === true),
  },
})

const hint = (document: DocumentState, name: string) => document.client_hints[name] ?? null

function hintsDiffer({ document, agent }: Facts): boolean {
  if (!document || agent.system === 'other') return false
  const platform = systemOfHint(hint(document, 'sec-ch-ua-platform'))
  if (platform !== undefined && platform !== agent.system) return true
  return hint(document, 'sec-ch-ua-mobile') === '?1' && agent.formFactor === 'desktop'
}

function headerLanguage({ document }: Facts): string | null {
  const first = document?.accept_language?.split(/[,;]/)[0]?.trim().toLowerCase() ?? ''
  return /^[a-z]{2,3}\b/.test(first) ? (first.split('-')[0] ?? null) : null
}

function languageDiffers(facts: Facts): boolean {
  const header = headerLanguage(facts)
  const languages =
    facts.snapshot?.navigator.languages.map((one) => one.toLowerCase().split('-')[0]) ?? []
  return header !== null && languages.length > 0 && !languages.includes(header)
}

// Every browser of the last years sends these with a fetch; a proxy rarely removes both.
function headersMissing({ document }: Facts): boolean {
  if (!document || document.header_order.length === 0) return false
  const names = document.header_order.map((name) => name.toLowerCase())
  return !names.includes('accept-language') && !names.includes('accept-encoding')
}

function headerDiffers({ navigator }: Snapshot, { headerUserAgent }: Facts): boolean {
  return (
    !!navigator.user_agent && headerUserAgent !== '' && navigator.user_agent !== headerUserAgent
  )
}

// A proxy rewrites headers but nothing within the browser, so worker, frame and engine confirm the page.
function agreesWithin({ navigator, worker, iframe }: Snapshot, { answers }: Facts): boolean {
  const isSame = [worker, iframe].every(({ user_agent }) => user_agent === navigator.user_agent)
  return isSame && /^(as_claimed|unrecorded)$/.test(answers.engine)
}

export const headerSignals = signals({
  user_agent_header_mismatch: {
    name: 'Request and page name different browsers',
    looksAt:
      'the User-Agent header differs from `navigator.userAgent`, which worker, frame or engine do not confirm',
    falsePositives: 'user agent switchers that change only one of them',
    fires: inBrowser((s, facts) => headerDiffers(s, facts) && !agreesWithin(s, facts)),
  },
  user_agent_rewritten_on_the_way: {
    name: 'User agent rewritten on the way',
    looksAt:
      'the User-Agent header differs from `navigator.userAgent`, while worker, frame and engine confirm the page',
    falsePositives: 'no risk: proxies of offices and carriers rewrite or shorten the header',
    fires: inBrowser((s, facts) => headerDiffers(s, facts) && agreesWithin(s, facts)),
  },
  client_hints_mismatch: {
    name: 'Client hints contradict the user agent',
    looksAt: 'Sec-CH-UA-Platform and Sec-CH-UA-Mobile against the user agent string',
    falsePositives: 'desktop-site mode on Android',
    fires: inBrowser((s, facts) => (s.navigator.max_touch_points ?? 0) === 0 && hintsDiffer(facts)),
  },
  accept_language_mismatch: {
    name: 'Request language is not one of the page',
    looksAt: 'the first language of Accept-Language against `navigator.languages`',
    falsePositives: 'privacy settings, proxies that rewrite headers',
    fires: inBrowser((_, facts) => !facts.privacyTool && languageDiffers(facts)),
  },
  sparse_request_headers: {
    name: 'Headers that every browser sends are missing',
    looksAt: 'neither Accept-Language nor Accept-Encoding in the request that opened the document',
    falsePositives: 'corporate proxies',
    fires: inBrowser((_, facts) => facts.platform === 'web' && headersMissing(facts)),
  },
})
