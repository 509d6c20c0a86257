import type { SeededRandom } from '../../services/cli/simulate/generate/random.ts'
import { address, digest, type Kind, type Look } from './looks.ts'

/**
 * After how many days an attribute changes. First of the browser in the middle, then of one that is less stable than 90
 * of 100, then than 95. null = never. Source: Vastel et al., FP-STALKER, IEEE S&P 2018, table of attribute stability.
 */
const published = {
  resolution: [null, 3.1, 1.8],
  version: [52.2, 33.3, 23.5],
  fonts: [null, 11.8, 5.4],
  canvas: [290, 35.3, 17.2],
  timezone: [206.3, 53.8, 26.8],
  renderer: [null, 81.2, 30.3],
  language: [null, 215.1, 56.7],
} as const
// Not in the table; assumed to be as stable as similar attributes.
const assumed = {
  network: [30, 4, 2],
  voices: [290, 35.3, 17.2],
  media: [206.3, 53.8, 26.8],
} as const

type Attribute = keyof typeof published | keyof typeof assumed
export type Habits = Record<Attribute, { days: number | null; other: string[] }>

/** Returns how often the browser changes each part. */
export function habitsOf(random: SeededRandom): Habits {
  const of = ([middle, p90, p95]: readonly [number | null, number, number]) => {
    const at = random.next()
    const days =
      at < 0.5 ? middle && middle * (1 + (0.5 - at) * 4) : between(at, { middle, p90, p95 })
    return { days, other: [random.hash(), random.hash()] }
  }
  const entries = Object.entries({ ...published, ...assumed }).map(([name, days]) => [
    name,
    of(days),
  ])
  return Object.fromEntries(entries)
}

// If the median browser never changes, neither do most of those between it and the unstable ones.
function between(
  at: number,
  { middle, p90, p95 }: { middle: number | null; p90: number; p95: number },
) {
  if (at >= 0.95) return p95
  if (at >= 0.9) return p90
  if (middle === null) return at < 0.8 ? null : p90 * 10 ** ((0.9 - at) / 0.1)
  return middle * (p90 / middle) ** ((at - 0.5) / 0.4)
}

const screens = [
  [1920, 1080, 1],
  [2560, 1440, 1],
  [1536, 864, 1.25],
  [1280, 720, 1.5],
] as const
const travels = [
  ['Europe/Paris', -120],
  ['America/Denver', 360],
  ['Asia/Singapore', -480],
] as const

/** Returns the look some days later. */
export function evolve(
  look: Look,
  {
    habits,
    days,
    kind,
    random,
  }: { habits: Habits; days: number; kind: Kind; random: SeededRandom },
): Look {
  const changes = (name: Attribute) => {
    const { days: every } = habits[name]
    return every !== null && random.chance(1 - Math.exp(-days / every))
  }
  let { snapshot: s, ip } = look
  if (changes('network')) ip = random.chance(0.7) ? placeOf(habits, random) : address(random)
  if (kind === 'hardened') return { snapshot: changes('version') ? newer(s) : s, ip }
  if (changes('version')) s = newer(s)
  if (changes('timezone')) {
    const [timezone, offset] = random.pick(travels)
    s = { ...s, environment: { ...s.environment, timezone, timezone_offset_min: offset } }
  }
  if (changes('language'))
    s = {
      ...s,
      navigator: {
        ...s.navigator,
        languages: [...s.navigator.languages, random.pick(['it', 'nl', 'pl'])],
      },
    }
  if (kind === 'phone') return { snapshot: s, ip }
  if (changes('resolution')) {
    const [width, height, ratio] = random.pick(screens)
    s = {
      ...s,
      environment: {
        ...s.environment,
        screen_width: width,
        screen_height: height,
        pixel_ratio: ratio,
      },
    }
  }
  if (changes('fonts')) s = { ...s, fonts: { ...s.fonts, enumeration_hash: random.hash() } }
  if (changes('canvas')) s = { ...s, canvas: { ...s.canvas, hash: random.hash() } }
  if (changes('renderer'))
    s = {
      ...s,
      webgl: {
        ...s.webgl,
        renderer: `${s.webgl.renderer} ${random.hash(2)}`,
        parameters_hash: random.hash(),
        extensions_hash: random.hash(),
      },
    }
  if (changes('voices')) s = { ...s, audio: { ...s.audio, voice_count: random.int(1, 30) } }
  if (changes('media'))
    s = { ...s, media: { ...s.media, topology_hash: digest('media', String(random.int(0, 5))) } }
  return { snapshot: s, ip }
}

// Most devices move between a few places.
function placeOf(habits: Habits, random: SeededRandom): string {
  const known = random.pick(habits.network.other)
  return [
    11 + (Number.parseInt(known.slice(0, 2), 16) % 80),
    Number.parseInt(known.slice(2, 4), 16),
    Number.parseInt(known.slice(4, 6), 16),
    7,
  ].join('.')
}

export function newer(s: Look['snapshot']): Look['snapshot'] {
  const userAgent = (s.navigator.user_agent ?? '').replace(
    /((?:Chrome|Firefox|Version|Edg|rv)[/:])(\d+)/g,
    (_, name, version) => `${name}${Number(version) + 1}`,
  )
  return { ...s, navigator: { ...s.navigator, user_agent: userAgent } }
}
