import {
  createSeededRandom,
  type SeededRandom,
} from '../../services/cli/simulate/generate/random.ts'
import { createLooks, digest, type Look } from './looks.ts'

export type DeviceKind = 'phone' | 'desktop' | 'office'

interface Country {
  id: number
  timezone: string
  offset: number
  languages: string[]
}

/** Networks of a device, as prefixes of IPv4 /24. */
interface Networks {
  home: string
  office: string | null
  /** Networks of the mobile carrier. */
  carrier: string[]
}

export interface Device {
  id: number
  kind: DeviceKind
  person: number
  /** Its home is of those whose phones are all one model. */
  hasTwins: boolean
  isJudged: boolean
  isPrivate: boolean
  snapshot: Look['snapshot']
  /** Snapshot of an office machine in a dock. */
  docked: Look['snapshot'] | null
  networks: Networks
}

const offices = 16
const sharedCarriers = 6
const countries: [Country, number][] = [
  [{ id: 1, timezone: 'America/New_York', offset: 240, languages: ['en-US', 'en'] }, 30],
  [{ id: 2, timezone: 'America/Los_Angeles', offset: 420, languages: ['en-US', 'en'] }, 12],
  [{ id: 3, timezone: 'Europe/London', offset: -60, languages: ['en-GB', 'en-US', 'en'] }, 12],
  [
    { id: 4, timezone: 'Europe/Berlin', offset: -120, languages: ['de-DE', 'de', 'en-US', 'en'] },
    16,
  ],
  [
    { id: 5, timezone: 'Europe/Paris', offset: -120, languages: ['fr-FR', 'fr', 'en-US', 'en'] },
    10,
  ],
  [
    {
      id: 6,
      timezone: 'America/Sao_Paulo',
      offset: 180,
      languages: ['pt-BR', 'pt', 'en-US', 'en'],
    },
    10,
  ],
  [{ id: 7, timezone: 'Asia/Tokyo', offset: -540, languages: ['ja', 'en-US', 'en'] }, 10],
]
const otherLanguages = [
  ['es-ES', 'es'],
  ['pl', 'en'],
  ['it-IT', 'it', 'en'],
  ['en-GB', 'en'],
  ['zh-CN', 'zh'],
]
/** Weights of a machine's render variants. */
const variants = [40, 25, 15, 10, 6, 4].map((weight, variant) => [variant, weight] as const)

interface Office {
  country: Country
  network: string
  image: Look['snapshot']
  docks: Look['snapshot'][]
}

type Models = ReturnType<typeof createLooks>

/**
 * People with phones, desktops and office machines; half of the homes are for judging what was fitted on the others.
 */
export function populationOf(seed: string, homes = 400): Device[] {
  const models = createLooks(`${seed} models`)
  const random = createSeededRandom(seed, 'population')
  const places = Array.from({ length: offices }, (_, id) => officeOf(id, { models, random }))
  const devices: Device[] = []
  let persons = 0
  for (let home = 0; home < homes; home++) {
    const household = householdOf(home, { models, random })
    for (let person = random.int(1, 4); person > 0; person--) {
      const owned = devicesOf(household, { models, random, places })
      for (const device of owned) devices.push({ ...device, id: devices.length, person: persons })
      persons += 1
    }
  }
  return devices
}

interface Household {
  country: Country
  network: string
  phone: Look['snapshot'] | null
  isJudged: boolean
}

interface Making {
  models: Models
  random: SeededRandom
}

function householdOf(home: number, { models, random }: Making): Household {
  const country = random.weighted(countries)
  const isShared = random.chance(0.1)
  const network = isShared
    ? `30.0.${random.int(1, sharedCarriers)}`
    : `20.${home >> 8}.${home & 255}`
  const phone = random.chance(0.35) ? phoneOf(models) : null
  return { country, network, phone, isJudged: random.chance(0.5) }
}

function officeOf(id: number, { models, random }: Making): Office {
  const country = random.weighted(countries)
  const image = spoken(desktopOf(models, random), country, country.languages)
  const docks = [
    { width: 2560, height: 1440, ratio: 1 },
    { width: 1920, height: 1080, ratio: 1 },
  ].map((screen, dock) =>
    withDock(image, { ...screen, media: digest('dock', String(id), String(dock)) }),
  )
  return { country, network: `50.0.${id}`, image, docks }
}

function devicesOf(home: Household, { models, random, places }: Making & { places: Office[] }) {
  const { country, phone, isJudged } = home
  const languages = random.chance(0.15) ? random.pick(otherLanguages) : country.languages
  const carrier = Array.from({ length: 4 }, (_, i) => `40.${country.id}.${i}`)
  const about = { hasTwins: phone !== null, isJudged, isPrivate: random.chance(0.06), docked: null }
  const networks = { home: home.network, office: null, carrier }
  const devices: Omit<Device, 'id' | 'person'>[] = []
  if (random.chance(0.9)) {
    const snapshot = spoken(phone ?? phoneOf(models), country, languages)
    devices.push({ ...about, kind: 'phone', networks, snapshot })
  }
  if (random.chance(0.55)) {
    const snapshot = spoken(desktopOf(models, random), country, languages)
    devices.push({ ...about, kind: 'desktop', networks, snapshot })
  }
  if (random.chance(0.3) && random.chance(0.65)) {
    const office = random.pick(places)
    const docked = random.pick([null, ...office.docks])
    const there = { ...networks, office: office.network }
    devices.push({ ...about, kind: 'office', networks: there, snapshot: office.image, docked })
  }
  return devices
}

// Phones of one model and system draw the same.
function phoneOf(models: Models): Look['snapshot'] {
  const { snapshot: s } = models('phone')
  const { screen_width: width, screen_height: height } = s.environment
  const model = [s.navigator.platform, s.webgl.renderer, width, height].join()
  return { ...s, canvas: { ...s.canvas, hash: digest('phone', model) } }
}

function desktopOf(models: Models, random: SeededRandom): Look['snapshot'] {
  const { snapshot: s } = models('desktop')
  const variant = random.weighted(variants)
  const hash = digest('desktop', String(s.webgl.parameters_hash), String(variant))
  return { ...s, canvas: { ...s.canvas, hash } }
}

function spoken(
  s: Look['snapshot'],
  { timezone, offset }: Country,
  languages: string[],
): Look['snapshot'] {
  return {
    ...s,
    navigator: { ...s.navigator, languages, language: languages[0] ?? null },
    environment: { ...s.environment, timezone, timezone_offset_min: offset },
  }
}

interface Dock {
  width: number
  height: number
  ratio: number
  media: string
}

function withDock(s: Look['snapshot'], { width, height, ratio, media }: Dock): Look['snapshot'] {
  const environment = {
    ...s.environment,
    screen_width: width,
    screen_height: height,
    pixel_ratio: ratio,
  }
  return { ...s, environment, media: { ...s.media, topology_hash: media } }
}
