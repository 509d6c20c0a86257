import { engineVersionOf } from '../../../infra/challenges/challenges.ts'
import { createLru } from '../../../infra/lru.ts'
import type { Platform } from '../../../schemas/events.ts'
import type { Behavior, Snapshot, Withheld } from '../../../schemas/observations.ts'
import type { Engine } from './agent.ts'

type Members = { [G in keyof Snapshot]?: readonly string[] }

// Members by group that every SDK version reads in every browser, regardless of settings.
const firstMembers = {
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

// Members that an SDK version and all later ones send. Unknown clients must send all of them.
const alwaysSent: readonly { since: string; members: Members }[] = [
  { since: '0.1', members: firstMembers },
  { since: '0.3', members: { tamper: ['examined'] } },
]

/** A part of the snapshot that a browser or its settings may refuse. The SDK sends it, or the reason why not. */
interface RefusablePart {
  members: Members
  /** True if it is also required in minimal mode. */
  isMinimal: boolean
  /** Engines in which each reason is possible. */
  reasons: Partial<Record<Withheld['reason'], readonly Engine[]>>
  /** Parts with the same cause fail together and count as one refusal. */
  cause: string
}

const engines = ['blink', 'gecko', 'webkit'] as const
// Settings, policies and extensions can block a part in any browser, and any machine can be slow.
const commonReasons = { blocked: engines, late: engines }

// For the meaning of the reasons see docs/reference/observations.md.
const refusableParts: Record<Withheld['group'], RefusablePart> = {
  worker: {
    members: { worker: ['user_agent'] },
    isMinimal: true,
    reasons: commonReasons,
    cause: 'worker',
  },
  iframe: {
    members: { iframe: ['user_agent'] },
    isMinimal: true,
    reasons: commonReasons,
    cause: 'iframe',
  },
  webgl: {
    members: { webgl: ['renderer'] },
    isMinimal: false,
    reasons: { ...commonReasons, unsupported: engines },
    cause: 'webgl',
  },
  canvas: {
    members: { canvas: ['hash'], proofs: ['canvas_challenge_hash'] },
    isMinimal: false,
    reasons: commonReasons,
    cause: 'canvas',
  },
  // Fonts are measured in a canvas.
  fonts: {
    members: { fonts: ['detected_count'] },
    isMinimal: false,
    reasons: commonReasons,
    cause: 'canvas',
  },
  // WebKitGTK has no audio if it was built without GStreamer.
  audio: {
    members: { audio: ['hash'] },
    isMinimal: false,
    reasons: { ...commonReasons, unsupported: ['webkit'] },
    cause: 'audio',
  },
}

interface CompletenessInput {
  snapshot: Snapshot | null
  platform: Platform
  sdk?: { name: string; version: string } | null | undefined
  isMinimal: boolean
  engine: Engine
}

export interface Completeness {
  /** Paths of required members that are missing without a possible reason. */
  missing: string[]
  /** Parts that are missing for a reason that is possible in this engine. */
  withheld: Withheld[]
}

/** Returns the required members that are missing in a page's snapshot. Other platforms have no required members. */
export function completenessOf(input: CompletenessInput): Completeness {
  const { snapshot, platform, sdk, isMinimal, engine } = input
  if (!snapshot || platform !== 'web') return { missing: [], withheld: [] }
  const version = sdk?.name === 'tidegate-web' ? sdk.version : null
  const always = alwaysSent
    .filter(({ since }) => version === null || versionOrder.compare(version, since) >= 0)
    .flatMap(({ members }) => missingMembers(snapshot, members))
  const parts = Object.entries(refusableParts)
    .filter(([, part]) => part.isMinimal || !isMinimal)
    .map(([group, part]) => checkPart(snapshot, { group, part, engine }))
  const withheld = parts.flatMap((part) => part.withheld)
  // Parts are computed one after another, so everything after a late part is late as well.
  const isLate = withheld.some(({ reason }) => reason === 'late')
  return {
    missing: [...(isLate ? [] : always), ...parts.flatMap(({ missing }) => missing)],
    withheld,
  }
}

function checkPart(
  snapshot: Snapshot,
  { group, part, engine }: { group: string; part: RefusablePart; engine: Engine },
): Completeness {
  const missing = missingMembers(snapshot, part.members)
  const reported = snapshot.collection.withheld.find((part) => part.group === group)
  if (missing.length === 0 || !reported) return { missing, withheld: [] }
  const isPossible = engine === 'unknown' || part.reasons[reported.reason]?.includes(engine)
  return isPossible ? { missing: [], withheld: [reported] } : { missing, withheld: [] }
}

/**
 * Returns the number of distinct causes for refused parts. Late parts don't count, because they still arrive, nor does
 * the worker, which is usually blocked by the page's policy and not by the visitor.
 */
export function refusalCount(withheld: Withheld[]): number {
  const refusedParts = withheld.filter(
    ({ group, reason }) => reason !== 'late' && group !== 'worker',
  )
  return new Set(refusedParts.map(({ group }) => refusableParts[group].cause)).size
}

/** Returns true if the page reports that it collected no fingerprints. */
export function hasMinimalMode(snapshot: Snapshot | null): boolean {
  return snapshot?.collection.mode === 'minimal'
}

function missingMembers(snapshot: Snapshot, required: Members): string[] {
  return Object.entries(required).flatMap(([group, names]) => {
    const members: Record<string, unknown> = Object(Reflect.get(snapshot, group))
    return names
      .filter((name) => (members[name] ?? null) === null)
      .map((name) => `${group}.${name}`)
  })
}

const versionOrder = new Intl.Collator('en', { numeric: true })

const evalLengths = new Map([
  ['V8', 33],
  ['SpiderMonkey', 37],
  ['JavaScriptCore', 37],
])

interface ObservedValues {
  snapshot: Snapshot | null
  behavior: Behavior | null
  userAgent: string
}
type Check = (snapshot: Snapshot, values: ObservedValues) => boolean

const between = (value: number | null, min: number, max: number) =>
  value === null || (value >= min && value <= max)

// Checks by member. Each returns true for a value that no browser has.
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
  'navigator.brands': hasForeignBrands,
  'engine.eval_length': hasForeignEval,
  'behavior.mouse': (_, { behavior }) =>
    behavior !== null && behavior.mouse.moves + behavior.mouse.clicks > behavior.mouse.events,
  'behavior.keyboard': (_, { behavior }) =>
    behavior !== null && behavior.keyboard.keys > behavior.keyboard.events,
  'behavior.mouse.duration_ms': (_, { behavior }) => behavior !== null && isTooFast(behavior.mouse),
} satisfies Record<string, Check>)

// More than ten events per millisecond, or more than 5000 if the duration is unknown.
const isTooFast = ({ events, duration_ms }: { events: number; duration_ms: number | null }) =>
  events > (duration_ms === null ? 5000 : 100 + 10 * duration_ms)

/** Returns the paths of members in a page's snapshot and behavior with values that no browser has. */
export function impossibleMembers(values: ObservedValues): string[] {
  const { snapshot } = values
  if (!snapshot || snapshot.native !== null) return []
  return impossible.flatMap(([path, isWrong]) => (isWrong(snapshot, values) ? [path] : []))
}

// The Chromium version in the brands must equal that in the user agent string.
function hasForeignBrands({ navigator }: Snapshot, { userAgent }: ObservedValues): boolean {
  const chromium = navigator.brands.find(({ brand }) => brand === 'Chromium')?.version
  const version = engineVersionOf(userAgent)
  if (!chromium || version?.family !== 'blink') return false
  return Number.parseInt(chromium, 10) !== version.major
}

// Compares with the detected engine, not with the user agent, which people may switch.
function hasForeignEval({ engine }: Snapshot): boolean {
  const length = evalLengths.get(engine.name ?? '')
  return length !== undefined && engine.eval_length !== null && engine.eval_length !== length
}

const zones = createLru<string, boolean>(1000)

// Returns true if this server's zone data has the zone. Most browsers have older data.
function isZone(name: string): boolean {
  const cached = zones.get(name)
  if (cached !== undefined) return cached
  const isKnown = isServerZone(name)
  zones.set(name, isKnown)
  return isKnown
}

function isServerZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: name })
    return true
  } catch {
    return false
  }
}

const languageTag = /^[a-z]{1,8}([-_][a-z\d]{1,8})*$/i
