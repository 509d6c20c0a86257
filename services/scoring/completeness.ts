import { LRUCache } from 'lru-cache'
import { engineVersionOf } from '../../infra/challenges/challenges.ts'
import type { Platform } from '../../schemas/events.ts'
import type { Behavior, Snapshot } from '../../schemas/observations.ts'

// What every browser tells every version of the SDK, whatever it is set to: members by group.
const sinceFirst = {
  navigator: ['user_agent', 'app_version', 'platform', 'vendor', 'product_sub', 'language', 'cookie_enabled'],
  environment: [
    ...['outer_width', 'outer_height', 'inner_width', 'inner_height', 'screen_width', 'screen_height'],
    ...['avail_width', 'avail_height', 'color_depth', 'pixel_ratio', 'timezone', 'timezone_offset_min'],
    ...['has_focus', 'has_chrome_object'],
  ],
  automation: ['webdriver_own_property', 'cdp_runtime'],
  tamper: ['iframe_srcdoc_proxy', 'timezone_mismatch'],
  engine: ['eval_length', 'null_property_message'],
  storage: ['cookies', 'local_storage', 'session_storage', 'indexed_db'],
  capabilities: ['touch', 'webgpu'],
} as const satisfies { [G in keyof Snapshot]?: readonly string[] }

// By the first version of the browser SDK that sends them. Any other client of pages has to send as much.
const alwaysSent: readonly { since: string; members: readonly (readonly [string, readonly string[]])[] }[] = [
  { since: '0.1', members: Object.entries(sinceFirst) },
]

// What is drawn, played and measured. People block some of it, and no browser blocks all.
const surface = {
  canvas: ['hash'],
  webgl: ['renderer'],
  audio: ['hash'],
  fonts: ['detected_count'],
} as const satisfies { [G in keyof Snapshot]?: readonly string[] }

interface Sent {
  snapshot: Snapshot | null
  platform: Platform
  sdk?: { name: string; version: string } | null | undefined
  isMinimal: boolean
}

/** Members of a page's snapshot that its SDK always sends and that are not there, by path. */
export function missingMembers({ snapshot, platform, sdk, isMinimal }: Sent): string[] {
  if (!snapshot || platform !== 'web') return []
  const version = sdk?.name === 'tidegate-web' ? sdk.version : null
  const always = alwaysSent
    .filter(({ since }) => version === null || !isBefore(version, since))
    .flatMap(({ members }) => members.flatMap(([group, names]) => absent(snapshot, group, names)))
  return isMinimal ? always : [...always, ...hiddenSurface(snapshot)]
}

function hiddenSurface(snapshot: Snapshot): string[] {
  const missing = Object.entries(surface).flatMap(([group, names]) => absent(snapshot, group, names))
  return missing.length === Object.keys(surface).length ? missing : []
}

// Whether the page says that it left fingerprints out. States of before that was said have no such group.
export function saysMinimal(snapshot: Snapshot | null): boolean {
  return snapshot?.collection?.mode === 'minimal'
}

function absent(snapshot: Snapshot, group: string, names: readonly string[]): string[] {
  const members: Record<string, unknown> = Object(Reflect.get(snapshot, group))
  return names.filter((name) => (members[name] ?? null) === null).map((name) => `${group}.${name}`)
}

const byNumber = new Intl.Collator('en', { numeric: true })
const isBefore = (version: string, other: string) => byNumber.compare(version, other) < 0

const evalLengths = new Map([
  ['V8', 33],
  ['SpiderMonkey', 37],
  ['JavaScriptCore', 37],
])

interface Seen {
  snapshot: Snapshot | null
  behavior: Behavior | null
  userAgent: string
}
type Check = (snapshot: Snapshot, seen: Seen) => boolean

const between = (value: number | null, least: number, most: number) =>
  value === null || (value >= least && value <= most)

// What no browser says of itself, by the member that says it.
const impossible: [path: string, isWrong: Check][] = Object.entries({
  'environment.timezone_offset_min': ({ environment: e }) => !between(e.timezone_offset_min, -840, 720),
  'environment.timezone': ({ environment: e }) => e.timezone !== null && !isZone(e.timezone),
  'environment.color_depth': ({ environment: e }) => !between(e.color_depth, 1, 64),
  'environment.pixel_ratio': ({ environment: e }) => !between(e.pixel_ratio, 0.05, 20),
  'environment.screen_width': ({ environment: e }) => !between(e.screen_width, 1, 100_000),
  'environment.screen_height': ({ environment: e }) => !between(e.screen_height, 1, 100_000),
  'environment.inner_width': ({ environment: e }) => !between(e.inner_width, 0, 100_000),
  'environment.outer_width': ({ environment: e }) => !between(e.outer_width, 0, 100_000),
  'navigator.hardware_concurrency': ({ navigator: n }) => !between(n.hardware_concurrency, 1, 2048),
  'navigator.max_touch_points': ({ navigator: n }) => !between(n.max_touch_points, 0, 256),
  'navigator.languages': ({ navigator: n }) => n.languages.some((tag) => !isLanguage(tag)),
  'navigator.brands': brandsOfAnother,
  'engine.eval_length': evalOfAnother,
  'behavior.mouse': (_, { behavior }) =>
    behavior !== null && behavior.mouse.moves + behavior.mouse.clicks > behavior.mouse.events,
  'behavior.keyboard': (_, { behavior }) =>
    behavior !== null && behavior.keyboard.keys > behavior.keyboard.events,
  'behavior.mouse.duration_ms': (_, { behavior }) => behavior !== null && isTooFast(behavior.mouse),
} satisfies Record<string, Check>)

// Ten events a millisecond; some thousands, where a client does not say how long they took.
const isTooFast = ({ events, duration_ms }: { events: number; duration_ms: number | null }) =>
  events > (duration_ms === null ? 5000 : 100 + 10 * duration_ms)

/** Members of a page's snapshot and behaviour whose values no browser has, by path. */
export function impossibleMembers(facts: Seen): string[] {
  const { snapshot } = facts
  if (!snapshot || snapshot.native !== null) return []
  return impossible.flatMap(([path, isWrong]) => (isWrong(snapshot, facts) ? [path] : []))
}

// The list of brands names the version of Chromium that the user agent string has.
function brandsOfAnother({ navigator }: Snapshot, { userAgent }: Seen): boolean {
  const chromium = navigator.brands.find(({ brand }) => brand === 'Chromium')?.version
  const version = engineVersionOf(userAgent)
  if (!chromium || version?.family !== 'blink') return false
  return Number.parseInt(chromium, 10) !== version.major
}

// Its own engine's length: another than the user agent's is another matter, of people who switch that.
function evalOfAnother({ engine }: Snapshot): boolean {
  const length = evalLengths.get(engine.name ?? '')
  return length !== undefined && engine.eval_length !== null && engine.eval_length !== length
}

const zones = new LRUCache<string, boolean>({ max: 1000 })

// Whether the data of this server has the zone, which is newer than that of most browsers.
function isZone(name: string): boolean {
  const known = zones.get(name)
  if (known !== undefined) return known
  const isKnown = isKnownZone(name)
  zones.set(name, isKnown)
  return isKnown
}

function isKnownZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

function isLanguage(tag: string): boolean {
  return /^[a-z]{1,8}([-_][a-z\d]{1,8})*$/i.test(tag)
}
