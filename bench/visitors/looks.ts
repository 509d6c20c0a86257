import { FingerprintGenerator } from 'fingerprint-generator'
import type { Snapshot } from '../../schemas/observations.ts'
import { families } from '../../services/cli/simulate/generate/families.ts'
import {
  createSeededRandom,
  type SeededRandom,
} from '../../services/cli/simulate/generate/random.ts'
import { deviceSnapshot } from '../../services/cli/simulate/generate/snapshot.ts'

/** Observations of a browser at a visit. */
export interface Look {
  snapshot: Snapshot
  ip: string
}

export type Kind = 'desktop' | 'phone' | 'hardened'

/** Number of different drawings by browsers with the same card, system and engine, due to fonts and drivers. */
const drawings = 12
const zones = [
  ...[...Array(6)].map(() => ['America/New_York', 240] as const),
  ['America/Chicago', 300],
  ['America/Los_Angeles', 420],
  ['Europe/Berlin', -120],
  ['Europe/London', -60],
  ['Asia/Tokyo', -540],
] as const
const languages = [
  'en-US',
  'en-US',
  'en-US',
  'en-US',
  'en-GB',
  'de-DE',
  'fr-FR',
  'es-ES',
  'ja-JP',
  'pt-BR',
]

type Fingerprint = ReturnType<FingerprintGenerator['getFingerprint']>['fingerprint']

/**
 * Looks of browsers as the public generator finds them in the wild, with what it does not know made of what it knows.
 */
export function createLooks(seed: string) {
  const random = createSeededRandom(seed, 'looks')
  const generators = {
    desktop: new FingerprintGenerator({ devices: ['desktop'] }),
    phone: new FingerprintGenerator({ devices: ['mobile'] }),
  }
  return (kind: Kind): Look => {
    const { fingerprint } = seeded(random, () =>
      generators[kind === 'phone' ? 'phone' : 'desktop'].getFingerprint(),
    )
    return kind === 'hardened' ? hardened(lookOf(fingerprint, random)) : lookOf(fingerprint, random)
  }
}

// The generator has no seed of its own.
function seeded<T>(random: SeededRandom, work: () => T): T {
  const before = Math.random
  Math.random = random.next
  try {
    return work()
  } finally {
    Math.random = before
  }
}

function lookOf(found: Fingerprint, random: SeededRandom): Look {
  const { navigator: n, screen: s, videoCard, fonts, multimediaDevices: media } = found
  const base = deviceSnapshot(
    familyOf(n.userAgent),
    createSeededRandom('base', familyOf(n.userAgent).name),
  )
  const [timezone, offset] = random.pick(zones)
  const main = random.pick(languages)
  const card = videoCard?.renderer ?? 'none'
  const machine = [card, n.platform, engineOf(n.userAgent)].join()
  const drawing = Math.floor(drawings * random.next() ** 2)
  const snapshot: Snapshot = {
    ...base,
    navigator: {
      ...base.navigator,
      user_agent: n.userAgent,
      app_version: n.appVersion,
      platform: n.platform,
      language: main,
      languages: main.startsWith('en')
        ? [main, 'en']
        : random.pick([
            [main, main.slice(0, 2)],
            [main, main.slice(0, 2), 'en-US', 'en'],
          ]),
      hardware_concurrency: n.hardwareConcurrency,
      device_memory: n.deviceMemory ?? null,
      max_touch_points: n.maxTouchPoints ?? 0,
      ua_data_platform_version: n.userAgentData?.platformVersion ?? null,
    },
    environment: {
      ...base.environment,
      screen_width: s.width,
      screen_height: s.height,
      color_depth: s.colorDepth,
      pixel_ratio: s.devicePixelRatio,
      timezone,
      timezone_offset_min: offset,
    },
    webgl: {
      ...base.webgl,
      vendor: videoCard?.vendor ?? null,
      renderer: card,
      parameters_hash: digest('parameters', machine),
      extensions_hash: digest('extensions', machine),
    },
    canvas: {
      ...base.canvas,
      hash: digest('canvas', machine, String(drawing)),
      noise_detected: false,
    },
    audio: {
      ...base.audio,
      hash: digest('audio', n.platform, engineOf(n.userAgent)),
      noise_detected: false,
      voice_count: fonts.length % 9,
    },
    fonts: { ...base.fonts, enumeration_hash: digest('fonts', [...fonts].sort().join()) },
    media: {
      ...base.media,
      topology_hash: digest(
        'media',
        Object.values(media ?? {})
          .map((some) => some.length)
          .join(),
      ),
    },
  }
  return { snapshot, ip: address(random) }
}

export const address = (random: SeededRandom): string =>
  [random.int(11, 99), random.int(0, 255), random.int(0, 255), random.int(1, 254)].join('.')

export const digest = (...parts: string[]): string => createSeededRandom('digest', ...parts).hash()

const engineOf = (userAgent: string) =>
  /Firefox/.test(userAgent) ? 'firefox' : /Chrome/.test(userAgent) ? 'chromium' : 'webkit'

function familyOf(userAgent: string) {
  const name = /iPhone|iPad/.test(userAgent)
    ? 'safari-iphone'
    : /Android/.test(userAgent)
      ? 'chrome-android'
      : { firefox: 'firefox-windows', chromium: 'chrome-windows', webkit: 'safari-macos' }[
          engineOf(userAgent)
        ]
  const family = families.map(([one]) => one).find((one) => one.name === name)
  if (!family) throw new Error(`no family ${name}`)
  return family
}

// Firefox that resists fingerprinting: every one says the same.
function hardened({ snapshot: s, ip }: Look): Look {
  return {
    ip,
    snapshot: {
      ...s,
      navigator: {
        ...s.navigator,
        languages: ['en-US', 'en'],
        language: 'en-US',
        hardware_concurrency: 2,
        device_memory: null,
      },
      environment: {
        ...s.environment,
        timezone: 'UTC',
        timezone_offset_min: 0,
        screen_width: 1400,
        screen_height: 900,
        pixel_ratio: 1,
      },
      webgl: { ...s.webgl, renderer: 'Mozilla', vendor: 'Mozilla' },
      canvas: { ...s.canvas, noise_detected: true },
      audio: { ...s.audio, noise_detected: true },
      fonts: { ...s.fonts, enumeration_hash: digest('fonts', 'base') },
    },
  }
}
