import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { engineVersionOf } from '../../infra/challenges/challenges.ts'
import type { EngineQuestion } from '../../infra/wire/collect/protocol.ts'
import type { Behavior, SentObservations, Snapshot } from '../../schemas/observations.ts'
import {
  createSeededRandom,
  type SeededRandom,
} from '../../services/cli/simulate/generate/random.ts'
import { deviceSnapshot } from '../../services/cli/simulate/generate/snapshot.ts'
import type { Attack, AttackClass } from './attacks.ts'
import type { Case, Outcome, Stage } from './cases.ts'
import { claims } from './claims.ts'
import { read } from './forgeries.ts'
import { type AnswerTable, addressOf, openForged, sendForged, visitForged } from './forging.ts'
import type { OracleBrowser } from './oracle.ts'

/** `copied`: input of a person's visit, with each number changed by up to this many percent. */
type Input = 'none' | { copied: number }

/** Creates the answers. `harvester`: IP address of the harvesting browser. */
type TableOf = (stage: Stage, harvester: string) => AnswerTable | Promise<AnswerTable>

interface Forger {
  class: AttackClass
  /** Name within its class. */
  way: string
  claim: string
  input: Input
  isFresh?: boolean
  /** True to send the unchanged snapshot of the recorded person, too. */
  isReplay?: boolean
  table?: TableOf
  /** Number of sessions, and the milliseconds between their starts. Each has its own address, except in a mass run. */
  sessions?: { count: number; everyMs: number }
  sharesAddress?: boolean
}

const always = (answer: (id: number) => string) => (): AnswerTable => (questions) =>
  new Map(questions.map(({ id }) => [id, answer(id)]))

const junk = {
  x: always(() => 'x'),
  empty: always(() => ''),
  constant: always(() => 'TypeError: undefined is not a function'),
  hashes: always((id) => `#${hash('sha256', String(id)).slice(0, 16)}`),
}

const oracle = (browser: OracleBrowser) => (stage: Stage) => stage.oracle(browser)

/** Returns answers of a Chromium elsewhere to the questions of many documents. */
const harvest =
  (count: number, questionsOf: typeof openForged): TableOf =>
  async ({ seed, tidegate, oracle }, address) => {
    const snapshot = snapshotOf('chrome', `${seed}/harvest`)
    const questions: EngineQuestion[] = []
    for (let i = 0; i < count; i++)
      questions.push(...(await questionsOf(snapshot, { tidegate, address })))
    const ask = await oracle('chromium')
    const table = await ask([...new Map(questions.map((one) => [one.id, one])).values()])
    return () => table
  }
const openings = harvest(100, openForged)
const visits = harvest(30, visitForged)

// Other cases are in between, so that replays of one recording are not measured.
const own = { copied: 30 }
const inputs = [['load', 'none'] as const, ['input', own] as const]
const deployments = [true, false]

const uninformed = Object.entries(junk).map(([way, table]) => ({
  class: 'junk' as const,
  way,
  table,
}))
const informed = { class: 'repository' as const, way: 'repository' }
const single: Forger[] = [...uninformed, informed].flatMap((how) =>
  Object.keys(claims).flatMap((claim) =>
    inputs.flatMap(([name, input]) =>
      deployments.map((isFresh) => ({ ...how, claim, input, isFresh, way: `${how.way}-${name}` })),
    ),
  ),
)

const oracles: Record<OracleBrowser, string[]> = {
  chromium: ['chrome', 'opera', 'samsung', 'chrome-old', 'chrome-future'],
  firefox: ['firefox-android'],
  webkitgtk: ['webkitgtk', 'iphone', 'mac-safari'],
}
const live: Forger[] = (['chromium', 'firefox', 'webkitgtk'] as const).flatMap((browser) =>
  oracles[browser].flatMap((claim) =>
    inputs.map(([name, input]) => ({
      class: 'oracle' as const,
      claim,
      input,
      table: oracle(browser),
      way: `oracle-${name}`,
    })),
  ),
)

const five = { count: 5, everyMs: 0 }
const harvested: Forger[] = ['chrome', 'chrome-future', 'opera', 'samsung'].flatMap((claim) =>
  [false, true].map((sharesAddress) => ({
    class: 'harvested' as const,
    claim,
    input: own,
    table: openings,
    sessions: five,
    sharesAddress,
    way: `harvested-${sharesAddress ? 'here' : 'elsewhere'}`,
  })),
)
const collected: Forger[] = ['chrome', 'samsung'].flatMap((claim) => {
  const of = { claim, input: own, table: visits, sessions: five }
  return [
    { ...of, class: 'collected' as const, way: 'collected-here', sharesAddress: true },
    { ...of, class: 'harvested' as const, way: 'collected-elsewhere' },
  ]
})

const replays: Forger[] = [0, 5, 15].flatMap((copied) => {
  const of = { claim: 'chrome', input: { copied }, isReplay: true }
  return [
    ...deployments.map((isFresh) => ({
      ...of,
      class: 'replay' as const,
      way: `replay-${copied}`,
      isFresh,
    })),
    { ...of, class: 'oracle' as const, way: `replay-oracle-${copied}`, table: oracle('chromium') },
  ]
})

const mass = (way: string, more: Partial<Forger>): Forger => ({
  class: 'mass',
  way: `mass-${way}`,
  claim: 'iphone',
  input: { copied: 15 },
  sharesAddress: true,
  sessions: { count: 40, everyMs: 250 },
  ...more,
})
const massRuns: Forger[] = [
  mass('junk', { input: 'none', table: junk.x }),
  mass('junk-input', { table: junk.hashes }),
  mass('load', { input: 'none' }),
  mass('input', {}),
  mass('equal-input', { input: { copied: 0 } }),
  mass('varied', { input: own }),
  mass('fresh', { claim: 'chrome', isFresh: true }),
  mass('oracle', { claim: 'chrome', table: oracle('chromium') }),
  mass('oracle-webkitgtk', { claim: 'webkitgtk', table: oracle('webkitgtk') }),
]

const forgers = [...single, ...live, ...harvested, ...collected, ...replays, ...massRuns]

export const forgerCases: Case[] = forgers.map((forger) => ({
  name: `forger-${forger.way}-${forger.claim}${forger.isFresh ? '-fresh' : ''}`,
  kind: 'forger',
  family: 'no browser',
  framework: 'raw HTTP',
  version: '',
  isFresh: forger.isFresh === true,
  attack: attackOf(forger),
  run: (stage, onOutcome) => forge(forger, { stage, onOutcome }),
}))

function attackOf({ claim, input, isFresh, table, ...forger }: Forger): Attack {
  const { navigator } = snapshotOf(claim, 'any')
  const isApples = engineVersionOf(navigator.user_agent ?? '')?.family === 'webkit'
  const isJunk = Object.values<TableOf | undefined>(junk).includes(table)
  const about = {
    isTaught: !isFresh && !isApples,
    hasInput: input !== 'none',
    isPlausible: !isJunk,
  }
  return { class: forger.class, claim, ...about }
}

async function forge(
  forger: Forger,
  { stage, onOutcome }: { stage: Stage; onOutcome: (outcome: Outcome) => void },
): Promise<void> {
  const { input, sharesAddress, sessions = { count: 1, everyMs: 0 } } = forger
  const { seed, tidegate } = stage
  const isMass = forger.class === 'mass'
  const source = addressOf(seed)
  const table = await forger.table?.(stage, source)
  const started = performance.now()
  let handedOff = 0
  const session = async (index: number) => {
    await delay(Math.max(0, started + index * sessions.everyMs - performance.now()))
    const own = `${seed}/${index}`
    const bodies = await bodiesOf(forger, { stage, seed: own, hand: isMass ? seed : own })
    const address = sharesAddress ? source : addressOf(own)
    const handed = await sendForged(bodies, { answers: 'known', table, tidegate, address })
    const nth = ++handedOff
    const judgement = await tidegate.judgement(handed)
    onOutcome({
      ...judgement,
      phase: input === 'none' ? 'load' : 'act',
      sessionId: handed.sessionId,
      botd: null,
      fpscanner: null,
      ...(sessions.count > 1 && { nth }),
    })
  }
  const indexes = Array.from({ length: sessions.count }, (_, index) => index)
  if (!isMass) for (const index of indexes) await session(index)
  else await settled(indexes.map(session))
}

/** Waits for all sessions. Throws the last failure, because a server may reject some of a flood. */
async function settled(sessions: Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(sessions)).filter(({ status }) => status === 'rejected')
  const last = failed.at(-1)
  if (last?.status === 'rejected')
    throw new Error(`${failed.length} sessions failed: ${last.reason}`)
}

interface Session {
  stage: Stage
  seed: string
  /** Seed of the touches that are copied. */
  hand: string
}

async function bodiesOf(
  { claim, input, isReplay }: Forger,
  { stage, seed, hand }: Session,
): Promise<SentObservations[]> {
  const random = createSeededRandom(seed, 'hand')
  const changed = (body: SentObservations) => inputChanged(body, { input, random })
  if (isReplay) return (await stage.recording()).map(changed)
  const first = { version: 1, elapsed_ms: 300, snapshot: snapshotOf(claim, seed) } as const
  if (input === 'none') return [first]
  const acted = claims[claim]?.mobile ? touchesOf(hand) : await stage.recording()
  const copied = acted
    .filter(({ behavior }) => behavior)
    .map(({ snapshot: _, ...body }) => changed(body))
  return [first, ...copied]
}

function snapshotOf(claim: string, seed: string): Snapshot {
  const family = claims[claim]
  if (!family) throw new Error(`nobody claims ${claim}`)
  return deviceSnapshot(family, createSeededRandom(seed, 'device'))
}

/** Returns simulated touch input of a person who fills in a form, because no phone could be recorded. */
function touchesOf(seed: string): SentObservations[] {
  const random = createSeededRandom(seed, 'touches')
  return [1, 2].map((body) => {
    const touches = random.int(4, 14)
    const touch = {
      touches,
      events: touches * random.int(3, 6),
      duration_ms: random.int(4000, 9000),
      interval_mean: random.between(120, 420),
      interval_std: random.between(60, 320),
      radius_std: random.between(1.2, 6),
    }
    return read({ version: 1, elapsed_ms: 9000 * body, behavior: { touch } })
  })
}

interface Changing {
  input: Input
  random: SeededRandom
}

/** Changes the numbers of the input. Integers of a channel change by the same factor, so that they stay consistent. */
function inputChanged(body: SentObservations, { input, random }: Changing): SentObservations {
  if (!body.behavior || input === 'none' || input.copied === 0) return body
  const factor = () => random.between(1 - input.copied / 100, 1 + input.copied / 100)
  const channelChanged = (channel: Behavior[keyof Behavior]) => {
    const counts = factor()
    const changed = (value: unknown) => {
      if (typeof value !== 'number') return value
      return Number.isInteger(value) ? Math.floor(value * counts) : value * factor()
    }
    return Object.fromEntries(
      Object.entries(channel).map(([name, value]) => [name, changed(value)]),
    )
  }
  const channels = Object.entries<Behavior[keyof Behavior]>(body.behavior)
  const behavior = Object.fromEntries(
    channels.map(([name, channel]) => [name, channelChanged(channel)]),
  )
  return read({ ...body, behavior })
}
