import type { Observations, Snapshot } from '../../../../schemas/observations.ts'
import { behaviorOf } from './behavior.ts'
import { botKinds, type Driver, markAs } from './bots.ts'
import { type Client, clientNames, type DeviceFamily, families } from './families.ts'
import { createSeededRandom, type SeededRandom } from './random.ts'
import { deviceSnapshot } from './snapshot.ts'

/** What the traffic is made of. Shares are between 0 and 1. */
export interface TrafficMix {
  clients: Record<Client, number>
  bots: number
  /** Sessions of a visitor that was there before, and presents the continuity token that it got then. */
  returning: number
}

export const defaultMix: TrafficMix = {
  clients: { web: 70, ios: 15, android: 15 },
  bots: 0.3,
  returning: 0.2,
}

/** The mix for who has only a key of browsers. */
export const webOnly: TrafficMix = { ...defaultMix, clients: { web: 1, ios: 0, android: 0 } }

export interface SessionPlan {
  index: number
  /** The index of the visitor's first session; equal to `index` for a new visitor. */
  visitor: number
  client: Client
  family: string
  actor: Driver
  sdk: { name: string; version: string; platform: Client }
  page: { url: string; referrer: string | null }
  /** The first carries the snapshot, the others behaviour. */
  batches: [PlannedObservations, ...PlannedObservations[]]
  closing: PlannedObservations
}

export type PlannedObservations = Omit<Observations, 'snapshot'> & { snapshot?: Snapshot }

// Sessions between a visitor's visits at the least, so that the earlier one has ended when the next begins.
const visitGap = 64

/** Session `index` of the traffic that the seed names. The same arguments give the same session, byte for byte. */
export function planSession(
  seed: string,
  index: number,
  mix: TrafficMix = defaultMix,
): SessionPlan {
  const visitor = visitorOf(seed, index, mix)
  const { client, family, actor, snapshot } = deviceOf(seed, visitor, mix)
  const random = createSeededRandom(seed, 'session', index)
  const steps = stepsOf({ actor, mobile: family.mobile, random })
  return {
    index,
    visitor,
    client,
    family: family.name,
    actor,
    sdk: { name: `tidegate-${client}`, version: '1.0.0', platform: client },
    page: pageOf(client, random),
    batches: [{ version: 1, elapsed_ms: random.int(80, 400), snapshot }, ...steps.batches],
    closing: steps.closing,
  }
}

// A returning session picks an earlier one and is of the same visitor, however that one came to be.
function visitorOf(seed: string, index: number, mix: TrafficMix): number {
  const random = createSeededRandom(seed, 'visitor', index)
  if (index <= visitGap || !random.chance(mix.returning)) return index
  return visitorOf(seed, random.int(0, index - visitGap - 1), mix)
}

function deviceOf(seed: string, visitor: number, { clients, bots }: TrafficMix) {
  const random = createSeededRandom(seed, 'device', visitor)
  const client = random.weighted(clientNames.map((name) => [name, clients[name]] as const))
  const actor: Driver = random.chance(bots) ? random.weighted(botKinds[client]) : 'human'
  const family = random.weighted(
    families.filter(([option]) => option.client === client && fits(actor, option)),
  )
  return { client, family, actor, snapshot: markAs(actor, deviceSnapshot(family, random)) }
}

// What is driven by a program is a desktop Chromium.
function fits(actor: Driver, family: DeviceFamily): boolean {
  const drivesChromium = ['headless', 'selenium', 'playwright', 'stealth'].includes(actor)
  return !drivesChromium || (family.engine === 'V8' && !family.mobile)
}

function pageOf(client: Client, random: SeededRandom): SessionPlan['page'] {
  const path = random.pick(['/', '/login', '/signup', '/checkout', '/search'])
  if (client !== 'web') return { url: `app://com.example.shop${path}`, referrer: null }
  const referrer = random.chance(0.5) ? 'https://www.example.org/' : null
  return { url: `https://shop.example.com${path}`, referrer }
}

function stepsOf({
  actor,
  mobile,
  random,
}: {
  actor: Driver
  mobile: boolean
  random: SeededRandom
}) {
  let elapsed = 400
  const step = (): PlannedObservations => {
    const durationMs = random.int(1800, 2200)
    elapsed += durationMs
    return {
      version: 1,
      elapsed_ms: elapsed,
      behavior: behaviorOf({ actor, mobile, durationMs, random }),
    }
  }
  const batches = Array.from({ length: random.int(1, 3) }, step)
  return { batches, closing: step() }
}
