import {
  createSeededRandom,
  type SeededRandom,
} from '../../services/cli/simulate/generate/random.ts'
import { newer } from './evolution.ts'
import type { Look } from './looks.ts'
import type { Device } from './population.ts'
import type { Visit } from './replay.ts'

export type Loss = 'realistic' | 'never' | 'always' | number

const hour = 60 * 60 * 1000
const day = 24 * hour
const weeks = 8
const abroad = [
  ['Europe/Madrid', -120],
  ['America/Denver', 360],
  ['Asia/Singapore', -480],
] as const

interface Journey {
  loss: Loss
  /** True if devices start at different times instead of all in the first week. */
  isStaggered?: boolean
}

/** Eight weeks of visits, in the order of their time. */
export function journeysOf(
  devices: Device[],
  seed: string,
  { loss, isStaggered = false }: Journey,
): Visit[] {
  return devices
    .flatMap((device) => {
      const begins = isStaggered
        ? createSeededRandom(seed, 'begins', device.id).int(0, weeks - 2)
        : 0
      const seen = looksOf(device, seed).filter(({ at }) => at >= begins * 7 * day)
      return withStorage(seen, { device, seed, loss })
    })
    .sort((one, other) => one.at - other.at)
}

interface Seen {
  at: number
  look: Look
}

/** Returns the observations of the device, regardless of its storage. */
function looksOf(device: Device, seed: string): Seen[] {
  const random = createSeededRandom(seed, 'device', device.id)
  const travels = createSeededRandom(seed, 'person', device.person)
  const updatesOn = random.int(0, 27)
  const changes = new Map<string, Look['snapshot']>()
  let language: string | null = null
  let fonts: string | null = null
  let driver: string | null = null
  const seen: Seen[] = []
  for (let week = 0; week < weeks; week++) {
    const place = travels.chance(0.04)
      ? { network: networkOf(travels), zone: travels.pick(abroad) }
      : null
    if (random.chance(0.01)) language = random.pick(['it', 'nl', 'sv'])
    if (random.chance(0.02)) fonts = random.hash()
    if (random.chance(0.015)) driver = random.hash(4)
    for (let visit = random.chance(0.2) ? 0 : random.int(1, 2); visit > 0; visit--) {
      const at = (week * 7 + dayOf(device, random)) * day + (8 + random.next() * 12) * hour
      const updates = Math.floor((at / day + updatesOn) / 28)
      const where = place ? { network: place.network, isDocked: false } : placeOf(device, random)
      const isPhone = device.kind === 'phone'
      const now = {
        updates,
        language,
        fonts: isPhone ? null : fonts,
        driver: isPhone ? null : driver,
        zone: place?.zone ?? null,
        isDocked: where.isDocked,
      }
      const name = JSON.stringify(now)
      const snapshot = changes.get(name) ?? changed(device, now)
      changes.set(name, snapshot)
      seen.push({ at, look: { snapshot, ip: `${where.network}.${random.int(1, 254)}` } })
    }
  }
  return seen.sort((one, other) => one.at - other.at)
}

const networkOf = (random: SeededRandom) =>
  [random.int(60, 90), random.int(0, 255), random.int(0, 255)].join('.')

// Offices are closed on two days.
const dayOf = ({ kind }: Device, random: SeededRandom) => random.int(0, kind === 'office' ? 4 : 6)

function placeOf({ kind, networks }: Device, random: SeededRandom) {
  if (kind === 'phone' && random.chance(0.45))
    return { network: random.pick(networks.carrier), isDocked: false }
  if (networks.office !== null && random.chance(0.7))
    return { network: networks.office, isDocked: true }
  return { network: networks.home, isDocked: false }
}

interface Now {
  updates: number
  language: string | null
  fonts: string | null
  driver: string | null
  zone: (typeof abroad)[number] | null
  isDocked: boolean
}

function changed({ snapshot, docked }: Device, now: Now): Look['snapshot'] {
  let s = now.isDocked && docked ? docked : snapshot
  for (let update = 0; update < now.updates; update++) s = newer(s)
  if (now.language)
    s = { ...s, navigator: { ...s.navigator, languages: [...s.navigator.languages, now.language] } }
  if (now.fonts) s = { ...s, fonts: { ...s.fonts, enumeration_hash: now.fonts } }
  if (now.driver) {
    const renderer = `${s.webgl.renderer} ${now.driver}`
    s = {
      ...s,
      webgl: { ...s.webgl, renderer, parameters_hash: now.driver, extensions_hash: now.driver },
    }
  }
  if (now.zone) {
    const [timezone, timezone_offset_min] = now.zone
    s = { ...s, environment: { ...s.environment, timezone, timezone_offset_min } }
  }
  return s
}

function withStorage(
  seen: Seen[],
  { device, seed, loss }: { device: Device; seed: string; loss: Loss },
): Visit[] {
  const random = createSeededRandom(seed, 'storage', device.id)
  const share = lossOf(device, loss)
  let kept: string | null = null
  return seen.map(({ at, look }, visit) => {
    if (random.chance(share)) kept = null
    const presented = kept
    const issued: string = kept ?? random.hash(32)
    kept = issued
    return {
      browser: device.id,
      look,
      at,
      presented,
      issued,
      sessionId: `sid_${device.id}_${visit}`,
    }
  })
}

function lossOf({ isPrivate, snapshot }: Device, loss: Loss): number {
  if (loss === 'never') return 0
  if (loss === 'always') return 1
  if (loss !== 'realistic') return loss
  if (isPrivate) return 1
  return /Version\/\d+/.test(snapshot.navigator.user_agent ?? '') ? 0.1 : 0.05
}
