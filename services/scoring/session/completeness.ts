import { engineVersionOf } from '../../../infra/challenges/challenges.ts'
import { createLru } from '../../../infra/lru.ts'
import type { Platform } from '../../../schemas/events.ts'
import type { Behavior, Snapshot, Withheld } from '../../../schemas/observations.ts'
import type { Engine } from './agent.ts'

type Members = { [G in keyof Snapshot]?: readonly string[] }

// Members, by group, that every version of the SDK gets from every browser, whatever its settings.
const sinceFirst = {
  navigator: [
    'user_agent',
    'app_version',
    'platform',
    'vendor',
    'product_sub',
    'language',
    'cookie_enabled',
  ],
  environment: [
    'outer_width',
    'outer_height',
    'inner_width',
    'inner_height',
    'screen_width',
    'screen_height',
    'avail_width',
    'avail_height',
    'color_depth',
    'pixel_ratio',
    'timezone',
    'timezone_offset_min',
    'has_focus',
    'has_chrome_object',
  ],
  automation: ['webdriver_own_property', 'cdp_runtime'],
  tamper: ['iframe_srcdoc_proxy', 'timezone_mismatch'],
  engine: ['eval_length', 'null_property_message'],
  storage: ['cookies', 'local_storage', 'session_storage', 'indexed_db'],
  capabilities: ['touch', 'webgpu'],
} as const satisfies Members
const sinceReasons = { tamper: ['examined'] } as const satisfies Members

// By the first version of the browser SDK that sends them. Any other client of pages has to send as much.
const alwaysSent: readonly { since: string; members: Members }[] = [
  { since: '0.1', members: sinceFirst },
  { since: '0.3', members: sinceReasons },
]

/** A part of the snapshot that a browser or its settings may refuse. It is there, or the SDK says why not. */
interface Owed {
  members: Members
  /** Also where the page leaves fingerprints out. */
  isMinimal: boolean
  /** Why it may be missing, and in which engines. */
  reasons: Partial<Record<Withheld['reason'], readonly Engine[]>>
  /** Parts that fail together count as one. */
  cause: string
}

const engines = ['blink', 'gecko', 'webkit'] as const
// Settings, policies and extensions of any browser can refuse a part, and any machine can be slow.
const refused = { blocked: engines, late: engines }

// docs/reference/observations.md says what the reasons mean.
const owed: Record<Withheld['group'], Owed> = {
  worker: {
    members: { worker: ['user_agent'] },
    isMinimal: true,
    reasons: refused,
    cause: 'worker',
  },
  iframe: {
    members: { iframe: ['user_agent'] },
    isMinimal: true,
    reasons: refused,
    cause: 'iframe',
  },
  webgl: {
    members: { webgl: ['renderer'] },
    isMinimal: false,
    reasons: { ...refused, unsupported: engines },
    cause: 'webgl',
  },
  canvas: {
    members: { canvas: ['hash'], proofs: ['canvas_challenge_hash'] },
    isMinimal: false,
    reasons: refused,
    cause: 'canvas',
  },
  // They are measured in a canvas.
  fonts: {
    members: { fonts: ['detected_count'] },
    isMinimal: false,
    reasons: refused,
    cause: 'canvas',
  },
  // WebKitGTK is built without it where there is no GStreamer.
  audio: {
    members: { audio: ['hash'] },
    isMinimal: false,
    reasons: { ...refused, unsupported: ['webkit'] },
    cause: 'audio',
  },
}

interface Sent {
  snapshot: Snapshot | null
  platform: Platform
  sdk?: { name: string; version: string } | null | undefined
  isMinimal: boolean
  engine: Engine
}

export interface Completeness {
  /** Paths of members that the SDK owes and that are not there, without a reason or with one that cannot be. */
  missing: string[]
  /** Parts that are not there, for a reason that such a browser may have. */
  withheld: Withheld[]
}

/** Which members of a page's snapshot are missing that its SDK always sends. */
export function completenessOf({ snapshot, platform, sdk, isMinimal, engine }: Sent): Completeness {
  if (!snapshot || platform !== 'web') return { missing: [], withheld: [] }
  const version = sdk?.name === 'tidegate-web' ? sdk.version : null
  const always = alwaysSent
    .filter(({ since }) => version === null || byNumber.compare(version, since) >= 0)
    .flatMap(({ members }) => absent(snapshot, members))
  const parts = Object.entries(owed)
    .filter(([, part]) => part.isMinimal || !isMinimal)
    .map(([group, part]) => partOf(snapshot, { group, part, engine }))
  const withheld = parts.flatMap((part) => part.withheld)
  // Parts are computed one after another, so that what follows one that is late is late as well.
  const isLate = withheld.some(({ reason }) => reason === 'late')
  return {
    missing: [...(isLate ? [] : always), ...parts.flatMap(({ missing }) => missing)],
    withheld,
  }
}

function partOf(
  snapshot: Snapshot,
  { group, part, engine }: { group: string; part: Owed; engine: Engine },
): Completeness {
  const missing = absent(snapshot, part.members)
  const said = snapshot.collection.withheld.find((one) => one.group === group)
  if (missing.length === 0 || !said) return { missing, withheld: [] }
  const isPossible = engine === 'unknown' || part.reasons[said.reason]?.includes(engine)
  return isPossible ? { missing: [], withheld: [said] } : { missing, withheld: [] }
}

/**
 * In how many ways parts were refused. What is late is there another time, and a worker is blocked by the policy of the
 * page more often than by its visitor.
 */
export function refusals(withheld: Withheld[]): number {
  const refusedParts = withheld.filter(
    ({ group, reason }) => reason !== 'late' && group !== 'worker',
  )
  return new Set(refusedParts.map(({ group }) => owed[group].cause)).size
}

/** Whether the page says that it left fingerprints out. */
export function saysMinimal(snapshot: Snapshot | null): boolean {
  return snapshot?.collection.mode === 'minimal'
}

function absent(snapshot: Snapshot, owedMembers: Members): string[] {
  return Object.entries(owedMembers).flatMap(([group, names]) => {
    const members: Record<string, unknown> = Object(Reflect.get(snapshot, group))
    return names
      .filter((name) => (members[name] ?? null) === null)
      .map((name) => `${group}.${name}`)
  })
}

const byNumber = new Intl.Collator('en', { numeric: true })

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

// By member, values that no browser has.
const impossible: [path: string, isWrong: Check][] = Object.entries({
  'environment.timezone_offset_min': ({ environment: e }) =>
    !between(e.timezone_offset_min, -840, 720),
  'environment.timezone': ({ environment: e }) => e.timezone !== null && !isZone(e.timezone),
  'environment.color_depth': ({ environment: e }) => !between(e.color_depth, 1, 64),
  'environment.pixel_ratio': ({ environment: e }) => !between(e.pixel_ratio, 0.05, 20),
  'environment.screen_width': ({ environment: e }) => !between(e.screen_width, 1, 100_000),
  'environment.screen_height': ({ environment: e }) => !between(e.screen_height, 1, 100_000),
  'environment.inner_width': ({ environment: e }) => !between(e.inner_width, 0, 100_000),
  'environment.outer_width': ({ environment: e }) => !between(e.outer_width, 0, 100_000),
  'navigator.hardware_concurrency': ({ navigator: n }) => !between(n.hardware_concurrency, 1, 2048),
  'navigator.max_touch_points': ({ navigator: n }) => !between(n.max_touch_points, 0, 256),
  'navigator.languages': ({ navigator: n }) => n.languages.some((tag) => !languageTag.test(tag)),
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

const zones = createLru<string, boolean>(1000)

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

const languageTag = /^[a-z]{1,8}([-_][a-z\d]{1,8})*$/i
