import type { Observations, Snapshot } from '../../../../schemas/observations.ts'
import { behaviorOf } from './behavior.ts'
import {
  type AttackName,
  addAutomationTraces,
  attacks,
  botWeights,
  type SimulatedActor,
} from './bots.ts'
import { type Client, clientNames, type DeviceFamily, families } from './families.ts'
import { createSeededRandom, type SeededRandom } from './random.ts'
import { deviceSnapshot } from './snapshot.ts'

/** Composition of the traffic, as weights by client and shares from 0 to 1. */
export interface TrafficMix {
  clients: Record<Client, number>
  bots: number
  /** Share of sessions from returning visitors, which present the continuity token of an earlier session. */
  returning: number
  /** All sessions are new visitors that make this attack in a browser. */
  attack?: AttackName | undefined
}

export const defaultMix: TrafficMix = {
  clients: { web: 70, ios: 15, android: 15 },
  bots: 0.3,
  returning: 0.2,
}

/** Mix for callers that only have a key for web clients. */
export const webOnlyMix: TrafficMix = { ...defaultMix, clients: { web: 1, ios: 0, android: 0 } }

export const attackMix = (attack: AttackName): TrafficMix => ({
  ...webOnlyMix,
  bots: 1,
  returning: 0,
  attack,
})

export interface SessionPlan {
  index: number
  /** The index of the visitor's first session; equal to `index` for a new visitor. */
  visitor: number
  client: Client
  family: string
  actor: SimulatedActor
  sdk: { name: string; version: string; platform: Client }
  page: { url: string; referrer: string | null }
  /** The first batch has the snapshot, the others have behavior. */
  batches: [PlannedObservations, ...PlannedObservations[]]
  closing: PlannedObservations
}

export type PlannedObservations = Omit<Observations, 'snapshot'> & { snapshot?: Snapshot }

// Minimum number of sessions between two visits of a visitor, so that the first has ended before the second starts.
const minVisitGap = 64

/** Returns session `index` of the traffic. The same arguments return the same session, byte for byte. */
export function planSession(
  seed: string,
  index: number,
  mix: TrafficMix = defaultMix,
): SessionPlan {
  const visitor = visitorOf(seed, index, mix)
  const { client, family, actor, snapshot } = deviceOf(seed, visitor, mix)
  const random = createSeededRandom(seed, 'session', index)
  const steps = observationsOf({ actor, mobile: family.mobile, random })
  return {
    index,
    visitor,
    client,
    family: family.name,
    actor,
    sdk: { name: `tidegate-${client}`, version: '1.0.0', platform: client },
    page: pageOf(client, random, mix.attack),
    batches: [{ version: 1, elapsed_ms: random.int(80, 400), snapshot }, ...steps.batches],
    closing: steps.closing,
  }
}

// A returning session takes over the visitor of a random earlier session, which may have been a returning one, too.
function visitorOf(seed: string, index: number, mix: TrafficMix): number {
  const random = createSeededRandom(seed, 'visitor', index)
  if (index <= minVisitGap || !random.chance(mix.returning)) return index
  return visitorOf(seed, random.int(0, index - minVisitGap - 1), mix)
}

function deviceOf(seed: string, visitor: number, { clients, bots, attack }: TrafficMix) {
  const random = createSeededRandom(seed, 'device', visitor)
  const client = random.weighted(clientNames.map((name) => [name, clients[name]] as const))
  const bot = random.chance(bots) ? random.weighted(botWeights[client]) : 'human'
  const actor: SimulatedActor = attack ? attacks[attack].actor : bot
  const family = random.weighted(
    families.filter(([option]) => option.client === client && canRun(actor, option)),
  )
  return {
    client,
    family,
    actor,
    snapshot: addAutomationTraces(actor, deviceSnapshot(family, random)),
  }
}

// Automation tools drive desktop Chromium only.
function canRun(actor: SimulatedActor, family: DeviceFamily): boolean {
  const needsChromium = ['headless', 'selenium', 'playwright', 'stealth'].includes(actor)
  return !needsChromium || (family.engine === 'V8' && !family.mobile)
}

function pageOf(
  client: Client,
  random: SeededRandom,
  attack: AttackName | undefined,
): SessionPlan['page'] {
  const visited = random.pick(['/', '/login', '/signup', '/checkout', '/search'])
  const path = attack ? attacks[attack].path : visited
  if (client !== 'web') return { url: `app://com.example.shop${path}`, referrer: null }
  const referrer = random.chance(0.5) ? 'https://www.example.org/' : null
  return { url: `https://shop.example.com${path}`, referrer }
}

function observationsOf({
  actor,
  mobile,
  random,
}: {
  actor: SimulatedActor
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
