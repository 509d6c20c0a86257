import type { Snapshot } from '../../../schemas/observations.ts'
import type { Agent, Engine, System } from '../session/agent.ts'
import type { Facts } from '../session/facts.ts'
import type { DocumentState } from '../session/state.ts'
import { isSoftwareRendered, softwareGpus } from './headless.ts'
import { defineSignals, ifBrowser } from './signal.ts'
import { replacesUserAgent } from './tamper.ts'

const engineNames: Record<string, Engine> = {
  V8: 'blink',
  SpiderMonkey: 'gecko',
  JavaScriptCore: 'webkit',
}

// Returns true if the user agent may be wrong for innocent reasons: web views set their own, and phones and tablets
// that request desktop sites claim to be desktops (iPads Macs, Android Linux). A claim to be a phone has no such
// excuse.
function mayHaveOtherUserAgent({ snapshot, agent }: Facts): boolean {
  const isTouched = (snapshot?.navigator.max_touch_points ?? 0) > 1
  return agent.webView || (isTouched && !isPhone(agent))
}

/** Returns true for the user agent of an iPhone or Android device, except in web views, which can set any. */
const isPhone = ({ system, formFactor, webView }: Agent) =>
  !webView && (system === 'android' || (system === 'ios' && formFactor === 'mobile'))

function engineDiffers(snapshot: Snapshot, facts: Facts): boolean {
  const real = engineNames[snapshot.engine.name ?? '']
  // All browsers on iOS use Apple's engine, regardless of their user agent.
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
  if (system === 'other' || mayHaveOtherUserAgent(facts)) return false
  const possible = systemsOfPlatform(navigator.platform ?? '')
  const hinted = systemOfHint(navigator.ua_data_platform)
  return (
    (possible.length > 0 && !possible.includes(system)) ||
    (hinted !== undefined && hinted !== system)
  )
}

function realmDiffers(realm: Snapshot['worker'], { navigator }: Snapshot, facts: Facts): boolean {
  if (realm.available !== true || mayHaveOtherUserAgent(facts)) return false
  return (
    differ(realm.user_agent, navigator.user_agent) ||
    differ(realm.platform, navigator.platform) ||
    differ(realm.languages.join(), navigator.languages.join())
  )
}

function differ(a: string | null, b: string | null): boolean {
  return !!a && !!b && a !== b
}

function gpuSystemDiffers({ webgl }: Snapshot, { agent, ...facts }: Facts): boolean {
  if (mayHaveOtherUserAgent({ agent, ...facts })) return false
  const renderer = webgl.renderer ?? ''
  if (/Direct3D|D3D1[12]/.test(renderer))
    return agent.system !== 'windows' && agent.system !== 'other'
  // WebKit reports "Apple GPU" on every system.
  if (agent.engine === 'webkit' && renderer === 'Apple GPU') return false
  return (
    /Apple (M\d|GPU)|Metal Renderer/.test(renderer) &&
    agent.system !== 'macos' &&
    agent.system !== 'other'
  )
}

// Without a graphics card, page and worker may use different software renderers.
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

// GPUs of physical mobile devices. Samsung's Xclipse is based on AMD's, but has its own name.
const mobileGraphics =
  /Adreno|Mali|Immortalis|PowerVR|Xclipse|Tegra|Maleoon|VideoCore|Vivante|Apple GPU|Apple A\d/i
const desktopGraphics = /NVIDIA|GeForce|Quadro|Radeon|AMD|Intel|Direct3D|D3D1[12]|Mesa/i

export function isPhoneWithDesktopGraphics({ webgl, worker }: Snapshot, { agent }: Facts): boolean {
  if (!isPhone(agent)) return false
  const isDesktopGpu = (name: string) => softwareGpus.test(name) || desktopGraphics.test(name)
  const names = [webgl.renderer, worker.webgl_renderer].filter((name) => name !== null)
  return names.some((name) => isDesktopGpu(name) && !mobileGraphics.test(name))
}

export function isPhoneOnPc({ navigator, worker, iframe }: Snapshot, { agent }: Facts): boolean {
  if (!isPhone(agent)) return false
  return [navigator, worker, iframe].some(({ platform }) =>
    /^(Win|Mac|Linux (x86_64|i\d86)|CrOS)/.test(platform ?? ''),
  )
}

// On phones, the browser has an address bar and the system a status bar.
function hasNoBars({ environment: e }: Snapshot, { agent }: Facts): boolean {
  const fillsScreen = e.inner_width === e.screen_width && e.inner_height === e.screen_height
  return isPhone(agent) && e.inner_height !== null && fillsScreen
}

function phoneWithoutTouch({ navigator, environment }: Snapshot, { agent }: Facts): boolean {
  return (
    agent.formFactor === 'mobile' &&
    navigator.max_touch_points === 0 &&
    environment.pointer_coarse !== true
  )
}

const isDesktop = ({ formFactor, webView }: Agent) => formFactor === 'desktop' && !webView

export const consistencySignals = defineSignals({
  engine_mismatch: {
    name: 'Engine contradicts the user agent',
    looksAt: 'the detected JavaScript engine differs from the one in the user agent string',
    falsePositives: 'none',
    fires: ifBrowser(engineDiffers),
  },
  platform_mismatch: {
    name: 'Operating system contradicts the user agent',
    looksAt: '`navigator.platform` or the client-hint platform contradicts the user agent string',
    falsePositives: 'desktop-site mode',
    fires: ifBrowser(platformDiffers),
  },
  worker_mismatch: {
    name: 'Worker contradicts the page',
    looksAt:
      'user agent, platform or languages in a worker differ from the page; processor counts are ignored, because Brave varies them',
    falsePositives: 'iPads',
    fires: ifBrowser((s, facts) => realmDiffers(s.worker, s, facts)),
  },
  iframe_mismatch: {
    name: 'Iframe contradicts the page',
    looksAt: 'user agent, platform or languages in a clean iframe differ from the page',
    falsePositives: 'user agent switchers that skip frames',
    fires: ifBrowser((s, facts) => realmDiffers(s.iframe, s, facts)),
  },
  gpu_system_mismatch: {
    name: 'Graphics driver of another operating system',
    looksAt: 'Direct3D outside Windows, or Metal or Apple GPUs outside Apple systems',
    falsePositives: 'in-app browsers with shortened user agents',
    fires: ifBrowser(gpuSystemDiffers),
  },
  worker_gpu_mismatch: {
    name: 'Worker sees another graphics card',
    looksAt: 'in desktop Chromium, the WebGL renderer in a worker differs from the page',
    falsePositives: 'laptops with two graphics cards',
    fires: ifBrowser((s, facts) => isDesktop(facts.agent) && workerGpuDiffers(s, facts)),
  },
  languages_mismatch: {
    name: 'Contradictory languages',
    looksAt: '`navigator.languages[0]` differs from `navigator.language`',
    falsePositives: 'language extensions',
    fires: ifBrowser(({ navigator: n }) => differ(n.languages[0] ?? null, n.language)),
  },
  product_sub_mismatch: {
    name: 'Build constant contradicts the engine',
    looksAt: "`navigator.productSub` is not the engine's constant",
    falsePositives: 'device emulation in developer tools',
    fires: ifBrowser(productSubDiffers),
  },
  phone_without_touch: {
    name: 'Phone without touch',
    looksAt: 'the user agent is a phone, but there are no touch points and no coarse pointer',
    falsePositives: 'phones in desktop docks, device emulation in developer tools',
    fires: ifBrowser(phoneWithoutTouch),
  },
  phone_with_desktop_graphics: {
    name: 'Phone with desktop graphics',
    looksAt:
      'the user agent is a phone or tablet, but the graphics are SwiftShader or a desktop graphics card',
    falsePositives: 'Android on a Chromebook or a PC, device emulation in developer tools',
    // A replaced user agent has its own signal.
    fires: ifBrowser((s, facts) => !replacesUserAgent(s) && isPhoneWithDesktopGraphics(s, facts)),
  },
  phone_on_desktop_system: {
    name: 'Phone on a desktop system',
    looksAt:
      'the user agent is a phone or tablet, but page, worker or frame report a desktop platform',
    falsePositives: 'Android on a Chromebook or a PC, device emulation in developer tools',
    fires: ifBrowser(isPhoneOnPc),
  },
  phone_without_bars: {
    name: 'Phone page without browser bars',
    looksAt: 'on a phone, the page fills the whole screen, with no browser or system bar',
    falsePositives: 'installed web apps, full screen',
    fires: ifBrowser(hasNoBars),
  },
  timezone_contradiction: {
    name: 'Contradictory time zone',
    looksAt: 'the time zone of `Intl` contradicts the offsets of `Date`',
    falsePositives: 'time zone extensions, outdated zone data',
    details: () => 'Intl and Date have different zones',
    fires: ifBrowser((s, { privacyTool }) => !privacyTool && s.tamper.timezone_mismatch === true),
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
    facts.snapshot?.navigator.languages.map((tag) => tag.toLowerCase().split('-')[0]) ?? []
  return header !== null && languages.length > 0 && !languages.includes(header)
}

// All current browsers send these with a fetch, and proxies rarely remove both.
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

// Returns true if worker, frame and engine agree with the page, as behind a proxy that rewrites only headers.
function realmsConfirmPage({ navigator, worker, iframe }: Snapshot, { answers }: Facts): boolean {
  const isSame = [worker, iframe].every(({ user_agent }) => user_agent === navigator.user_agent)
  return isSame && /^(as_claimed|unrecorded)$/.test(answers.engine)
}

export const headerSignals = defineSignals({
  user_agent_header_mismatch: {
    name: 'Request and page name different browsers',
    looksAt:
      'the User-Agent header differs from `navigator.userAgent`, and worker, frame or engine do not confirm the page',
    falsePositives: 'user agent switchers that change only one of them',
    fires: ifBrowser((s, facts) => headerDiffers(s, facts) && !realmsConfirmPage(s, facts)),
  },
  user_agent_rewritten_on_the_way: {
    name: 'User agent rewritten in transit',
    looksAt:
      'the User-Agent header differs from `navigator.userAgent`, while worker, frame and engine confirm the page',
    falsePositives: 'no risk: office and carrier proxies rewrite or shorten the header',
    fires: ifBrowser((s, facts) => headerDiffers(s, facts) && realmsConfirmPage(s, facts)),
  },
  client_hints_mismatch: {
    name: 'Client hints contradict the user agent',
    looksAt: 'Sec-CH-UA-Platform or Sec-CH-UA-Mobile contradicts the user agent string',
    falsePositives: 'desktop-site mode on Android',
    fires: ifBrowser((s, facts) => (s.navigator.max_touch_points ?? 0) === 0 && hintsDiffer(facts)),
  },
  accept_language_mismatch: {
    name: 'Request language contradicts the page',
    looksAt: 'the first language of Accept-Language is not in `navigator.languages`',
    falsePositives: 'privacy settings, proxies that rewrite headers',
    fires: ifBrowser((_, facts) => !facts.privacyTool && languageDiffers(facts)),
  },
  sparse_request_headers: {
    name: 'Common request headers missing',
    looksAt: 'the request that opened the document has neither Accept-Language nor Accept-Encoding',
    falsePositives: 'corporate proxies',
    fires: ifBrowser((_, facts) => facts.platform === 'web' && headersMissing(facts)),
  },
})
