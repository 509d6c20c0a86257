import type { HandoffResult } from '../../infra/wire/collect/client.ts'
import { observationsSchema, type SentObservations } from '../../schemas/observations.ts'
import { planSession, webOnlyMix } from '../../services/cli/simulate/generate/plan.ts'
import type { Case, Outcome, Stage } from './cases.ts'
import { type Answering, addressOf, sendForged, userAgent } from './forging.ts'

interface Forgery {
  name: string
  /** Returns the bodies in order. The last one requests the result. */
  bodies(stage: Stage): Promise<SentObservations[]> | SentObservations[]
  answers: Answering
  times?: number
  isFresh?: boolean
}

const forgeries: Forgery[] = [
  { name: 'four-values', bodies: () => [fourValues], answers: 'none' },
  { name: 'four-values-echoed', bodies: () => [fourValues], answers: 'echoed' },
  { name: 'native-on-web', bodies: () => [nativeOnWeb], answers: 'none' },
  { name: 'native-on-web-echoed', bodies: () => [nativeOnWeb], answers: 'echoed' },
  { name: 'complete', bodies: ({ seed }) => [invented(seed)], answers: 'none' },
  { name: 'complete-echoed', bodies: ({ seed }) => [invented(seed)], answers: 'echoed' },
  { name: 'complete-acting', bodies: ({ seed }) => inventedVisit(seed), answers: 'echoed' },
  {
    name: 'replayed-snapshot',
    bodies: async (stage) => (await stage.recording()).slice(0, 1),
    answers: 'echoed',
    times: 5,
  },
  { name: 'replayed-visit', bodies: ({ recording }) => recording(), answers: 'echoed', times: 5 },
  { name: 'replayed-as-it-was', bodies: ({ recording }) => recording(), answers: 'none' },
  {
    name: 'edited',
    bodies: async (stage) => (await stage.recording()).map(edited),
    answers: 'echoed',
  },
  { name: 'informed', bodies: ({ seed }) => [invented(seed)], answers: 'known' },
  { name: 'informed-acting', bodies: ({ seed }) => inventedVisit(seed), answers: 'known' },
  {
    name: 'informed-edited',
    bodies: async (stage) => (await stage.recording()).map(edited),
    answers: 'known',
  },
  {
    name: 'informed-one-surface',
    bodies: ({ seed }) => inventedVisit(seed).map(withOneSurface),
    answers: 'known',
  },
  {
    name: 'informed-blocked',
    bodies: ({ seed }) => inventedVisit(seed).map(withOneSurface).map(sayingBlocked),
    answers: 'known',
  },
  {
    name: 'fresh-informed-blocked',
    bodies: ({ seed }) => inventedVisit(seed).map(withOneSurface).map(sayingBlocked),
    answers: 'known',
    isFresh: true,
  },
]

// Before SDK 0.3, one of four surfaces was enough.
function withOneSurface(body: SentObservations): SentObservations {
  if (!body.snapshot) return body
  const { canvas: _, fonts: __, audio: ___, ...snapshot } = body.snapshot
  return { ...body, snapshot }
}

function sayingBlocked(body: SentObservations): SentObservations {
  if (!body.snapshot) return body
  const refused = ['canvas', 'fonts', 'audio'] as const
  const withheld = refused.map((group) => ({ group, reason: 'blocked' as const }))
  return { ...body, snapshot: { ...body.snapshot, collection: { mode: 'full', withheld } } }
}

/** Casts observations with partial groups, as clients may send them. */
export const read = (observations: object): SentObservations =>
  JSON.parse(JSON.stringify(observations))

const fourValues = read({
  version: 1,
  elapsed_ms: 320,
  snapshot: {
    navigator: { user_agent: userAgent, language: 'en-US' },
    environment: { screen_width: 1920, screen_height: 1080, timezone: 'Europe/Berlin' },
  },
})
const nativeOnWeb = read({ version: 1, elapsed_ms: 320, snapshot: { native: {} } })

/** Returns the first session of the traffic generator by a person with Chrome on Windows. */
export function inventedVisit(seed: string): SentObservations[] {
  for (let index = 0; index < 1000; index++) {
    const { batches, closing, actor } = planSession(seed, index, { ...webOnlyMix, bots: 0 })
    const { brands = [], platform } = batches[0].snapshot?.navigator ?? {}
    if (actor === 'human' && platform === 'Win32' && brands.length > 0) return [...batches, closing]
  }
  throw new Error('the generator made no Windows Chrome')
}

function invented(seed: string): SentObservations {
  const [first] = inventedVisit(seed)
  if (!first) throw new Error('a visit has a first body')
  return first
}

function edited(body: SentObservations): SentObservations {
  if (!body.snapshot) return body
  const { environment, canvas, audio, navigator } = observationsSchema.parse(body).snapshot ?? {}
  const screen = { screen_width: 2560, screen_height: 1440, avail_width: 2560, avail_height: 1400 }
  return read({
    ...body,
    snapshot: {
      ...body.snapshot,
      environment: { ...environment, ...screen },
      canvas: { ...canvas, hash: 'd1c4b2a09f8e7d6c' },
      audio: { ...audio, sum: 124.0434 },
      navigator: { ...navigator, hardware_concurrency: 12 },
    },
  })
}

export const forgeryCases: Case[] = forgeries.map((forgery) => ({
  name: `forgery-${forgery.name}`,
  kind: kindOf(forgery),
  family: 'no browser',
  framework: 'raw HTTP',
  version: '',
  isFresh: forgery.isFresh === true,
  run: (stage, onOutcome) => forge(forgery, { stage, onOutcome }),
}))

function kindOf({ answers, isFresh }: Forgery): Case['kind'] {
  if (isFresh) return 'informed-fresh'
  return answers === 'known' ? 'informed' : 'forgery'
}

interface Forging {
  stage: Stage
  onOutcome: (outcome: Outcome) => void
}

/** Sends the forgery. If it is sent several times, only the last one is judged. */
async function forge(forgery: Forgery, { stage, onOutcome }: Forging): Promise<void> {
  const bodies = await forgery.bodies(stage)
  const of = { answers: forgery.answers, address: addressOf(stage.seed), tidegate: stage.tidegate }
  let last: HandoffResult | undefined
  for (let time = 0; time < (forgery.times ?? 1); time++) {
    last = await sendForged(bodies, of)
  }
  if (!last) throw new Error('nothing was sent')
  const judgement = await stage.tidegate.judgement(last)
  const phase = bodies.length > 1 ? 'act' : 'load'
  onOutcome({ ...judgement, phase, sessionId: last.sessionId, botd: null, fpscanner: null })
}
