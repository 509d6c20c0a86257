import type { Snapshot } from '../../../schemas/observations.ts'
import { readAgent } from '../session/agent.ts'
import type { Facts } from '../session/facts.ts'
import { defineSignals, ifBrowser, type SignalText } from './signal.ts'
import { replacesUserAgent } from './tamper.ts'

// Portrait sizes in points by scale, including Display Zoom. Source up to the iPhone 15:
// gist.github.com/ricsantos/e7baee6885626b9cb87c021a5097623f. Newer iPhones may have other sizes.
const iphoneScreens: Record<number, string> = {
  2: '320x480 320x568 375x667 375x812 414x896',
  3: '320x693 320x694 375x667 375x812 390x844 393x852 402x874 414x736 414x896 420x912 428x926 430x932 440x956',
}

// iPads, and iPhones that request desktop sites, claim to be Macs.
const platforms = { iPhone: /^(iPhone|iPod)/, iPad: /^(iPad|MacIntel$)/, Mac: /^MacIntel$/ }

function appleDevice({ agent, userAgent }: Facts): keyof typeof platforms | null {
  if (agent.system === 'ios') return /\biPad\b/.test(userAgent) ? 'iPad' : 'iPhone'
  return agent.system === 'macos' && agent.engine === 'webkit' ? 'Mac' : null
}

// Fonts of Windows and Linux, which iOS lacks.
const foreignFonts =
  /^(Bahnschrift|Cantarell|DejaVu Sans|Gadugi|Liberation Sans|Nirmala UI|Segoe UI)$/
const [anyValue, noValue] = [/(?:)/, /(?!)/]
// Macs can have any external screen.
const scales = { iPhone: /^[23]$/, iPad: /^[12]$/, Mac: anyValue }

/**
 * Returns the members with values that the claimed Apple device can't have. Ignores missing values, because lockdown
 * mode disables some interfaces, and WebKit lacks others (see MDN's browser compatibility data).
 */
function appleContradictions(s: Snapshot, facts: Facts): string[] {
  const device = appleDevice(facts)
  if (device === null) return []
  const { navigator: n, environment: e, webgl, fonts } = s
  const isMac = device === 'Mac'
  // Safari on Macs has masked the renderer since version 14.
  const graphics = isMac && !(Number(facts.agent.major) >= 15) ? anyValue : /^Apple /
  const font = isMac ? undefined : fonts.detected.find((name) => foreignFonts.test(name))
  const members: [name: string, value: string | number | null | undefined, possible: RegExp][] = [
    ['engine.name', s.engine.name, /^JavaScriptCore$/],
    ['navigator.vendor', n.vendor, /^Apple Computer, Inc\.$/],
    ['navigator.platform', n.platform, platforms[device]],
    ['navigator.max_touch_points', n.max_touch_points, isMac ? /^[05]$/ : /^5$/],
    ['navigator.hardware_concurrency', n.hardware_concurrency, isMac ? anyValue : /^[1-8]$/],
    ['navigator.device_memory', n.device_memory, noValue],
    ['navigator.connection_rtt', n.connection_rtt, noValue],
    ['navigator.brands', n.brands[0]?.brand, noValue],
    ['webgl.renderer', webgl.renderer, graphics],
    ['environment.pixel_ratio', e.pixel_ratio, facts.agent.webView ? anyValue : scales[device]],
    ['fonts.detected', font, noValue],
  ]
  return members.flatMap(([name, value, possible]) =>
    (value ?? null) === null || possible.test(String(value)) ? [] : [name],
  )
}

function hasUnknownScreen({ environment: e }: Snapshot, facts: Facts): boolean {
  const sides = [e.screen_width, e.screen_height].filter((side) => side !== null)
  if (appleDevice(facts) !== 'iPhone' || sides.length < 2) return false
  const size = sides.toSorted((a, b) => a - b).join('x')
  return !(iphoneScreens[e.pixel_ratio ?? 0] ?? '').split(' ').includes(size)
}

// Desktop fonts that Android lacks, and for which it has no alias.
const desktopFonts =
  /^(Bahnschrift|Calibri|Cambria Math|Cantarell|Consolas|DejaVu Sans|Gadugi|Helvetica Neue|Liberation Sans|Lucida Grande|Menlo|Segoe UI|Ubuntu)$/

/** Returns the desktop traits that Chromium shows on a claimed Android device. */
export function desktopTraitsOf(s: Snapshot, { agent, withheld }: Facts): string[] {
  if (agent.system !== 'android' || agent.engine !== 'blink') return []
  const { navigator: n, environment: e, fonts, tamper } = s
  const shape = (e.screen_width ?? 0) <= (e.screen_height ?? 0) ? 'portrait' : 'landscape'
  const font = fonts.detected.find((name) => desktopFonts.test(name))
  const parts: [part: string, isThere: boolean][] = [
    ['PDF plugins', n.plugins.length > 0],
    // Chromium on Android reports at most 8.
    ['more than 8 GB of memory', (n.device_memory ?? 0) > 8],
    [`font ${font}`, font !== undefined],
    ['no graphics', withheld.some(({ group, reason }) => group === 'webgl' && reason !== 'late')],
    [
      'replaced values',
      tamper.foreign_primitives.some((name) => /^(frame|worker)\.navigator\./.test(name)),
    ],
    [`a ${shape} screen turned otherwise`, e.orientation_type?.startsWith(shape) === false],
  ]
  return parts.flatMap(([part, isThere]) => (isThere ? [part] : []))
}

/** Returns the browser that headers or workers name, if a script replaced it in the page's `navigator`. */
function replacedUserAgent(s: Snapshot, facts: Facts): string | null {
  if (facts.privacyTool || !replacesUserAgent(s)) return null
  const sources = {
    "the browser's own headers": facts.headerUserAgent,
    'its workers': s.worker.user_agent,
  }
  const [source, text] =
    Object.entries(sources).find(([, text]) => text && text !== s.navigator.user_agent) ?? []
  if (!text) return null
  const { engine, system } = readAgent(text)
  return `${source} say ${engine} on ${system}`
}

const inSnapshot = (text: (s: Snapshot, facts: Facts) => string | null): SignalText => {
  return (facts) => facts.snapshot && text(facts.snapshot, facts)
}

export const deviceSignals = defineSignals({
  apple_device_contradicted: {
    name: 'Impossible values for an Apple device',
    looksAt:
      'a claimed iPhone, iPad or Mac with Safari has an impossible engine, vendor, platform, number of touch points or processors, graphics, pixel ratio or font, or an interface that only Chromium has',
    falsePositives: 'user agent switchers, device emulation in developer tools',
    details: inSnapshot((s, facts) => appleContradictions(s, facts).slice(0, 3).join(', ')),
    fires: ifBrowser((s, facts) => appleContradictions(s, facts).length > 0),
  },
  apple_screen_unknown: {
    name: 'Unknown iPhone screen size',
    looksAt: 'the size and pixel ratio of the screen of a claimed iPhone match no iPhone',
    falsePositives: 'iPhones newer than the table, iPhone apps on other devices',
    fires: ifBrowser(hasUnknownScreen),
  },
  phone_with_computer_parts: {
    name: 'Phone with desktop traits',
    looksAt:
      'Chromium that claims Android has two or more of: PDF plugins, more than 8 GB of memory, a desktop font, no graphics, replaced values in frames or workers, an orientation that contradicts the screen',
    falsePositives: 'Android on a Chromebook or a PC, device emulation in developer tools',
    details: inSnapshot((s, facts) => desktopTraitsOf(s, facts).join(', ')),
    fires: ifBrowser((s, facts) => !replacesUserAgent(s) && desktopTraitsOf(s, facts).length >= 2),
  },
  user_agent_replaced: {
    name: 'User agent replaced by a script',
    looksAt:
      '`navigator.userAgent`, `appVersion` or `platform` was replaced, and headers or workers name another browser',
    falsePositives: 'user agent switchers',
    details: inSnapshot(replacedUserAgent),
    fires: ifBrowser((s, facts) => replacedUserAgent(s, facts) !== null),
  },
})
