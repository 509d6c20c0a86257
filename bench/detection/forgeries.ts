import { deflateRawSync } from 'node:zlib'
import {
  createCollectClient,
  type HandoffAnswer,
  type OpenedSession,
} from '../../infra/wire/collect/client.ts'
import { answerMac } from '../../infra/wire/collect/client-crypto.ts'
import { nodeClientCrypto } from '../../infra/wire/collect/node-client-crypto.ts'
import { observationsSchema, type SentObservations, type Snapshot } from '../../schemas/observations.ts'
import { clientHints } from '../../services/cli/simulate/generate/headers.ts'
import { planSession, webOnly } from '../../services/cli/simulate/generate/plan.ts'
import { answersOf } from '../recorded-answers.ts'
import type { Case, Outcome, Stage } from './cases.ts'
import type { Tidegate } from './tidegate.ts'

interface Forgery {
  name: string
  /** The bodies in their order; the last one asks for the result. */
  bodies(stage: Stage): Promise<SentObservations[]> | SentObservations[]
  answers: Answering
  times?: number
  isFresh?: boolean
}

/**
 * `echoed`: gives the texts of its own document back; `known`: looks its questions up in this repository.
 * `harvested`: also in what a real browser answered in one visit, and guesses what is not there.
 */
type Answering = 'none' | 'echoed' | 'known' | 'harvested'

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
    bodies: async (stage) => (await recorded(stage)).slice(0, 1),
    answers: 'echoed',
    times: 5,
  },
  { name: 'replayed-visit', bodies: recorded, answers: 'echoed', times: 5 },
  { name: 'replayed-as-it-was', bodies: recorded, answers: 'none' },
  { name: 'edited', bodies: async (stage) => (await recorded(stage)).map(edited), answers: 'echoed' },
  { name: 'informed', bodies: ({ seed }) => [invented(seed)], answers: 'known' },
  { name: 'informed-acting', bodies: ({ seed }) => inventedVisit(seed), answers: 'known' },
  { name: 'informed-edited', bodies: async (stage) => (await recorded(stage)).map(edited), answers: 'known' },
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
  { name: 'harvested', bodies: ({ seed }) => [invented(seed)], answers: 'harvested' },
  { name: 'harvested-acting', bodies: ({ seed }) => inventedVisit(seed), answers: 'harvested' },
  {
    name: 'harvested-edited',
    bodies: async (stage) => (await recorded(stage)).map(edited),
    answers: 'harvested',
  },
  { name: 'fresh-informed', bodies: ({ seed }) => [invented(seed)], answers: 'known', isFresh: true },
  {
    name: 'fresh-informed-acting',
    bodies: ({ seed }) => inventedVisit(seed),
    answers: 'known',
    isFresh: true,
  },
  {
    name: 'fresh-informed-blocked',
    bodies: ({ seed }) => inventedVisit(seed).map(withOneSurface).map(sayingBlocked),
    ...{ answers: 'known', isFresh: true },
  },
]

// Until SDK 0.3 one of four was enough.
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

const userAgent =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/155.0.0.0 Safari/537.36'

/** As a client may send them: partial groups, which the types of whole snapshots do not know. */
const read = (observations: object): SentObservations => JSON.parse(JSON.stringify(observations))

const fourValues = read({
  version: 1,
  elapsed_ms: 320,
  snapshot: {
    navigator: { user_agent: userAgent, language: 'en-US' },
    environment: { screen_width: 1920, screen_height: 1080, timezone: 'Europe/Berlin' },
  },
})
const nativeOnWeb = read({ version: 1, elapsed_ms: 320, snapshot: { native: {} } })

/** The first session of the traffic generator that is a Windows Chrome of a person. */
function inventedVisit(seed: string): SentObservations[] {
  for (let index = 0; index < 1000; index++) {
    const { batches, closing, actor } = planSession(seed, index, { ...webOnly, bots: 0 })
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

/** What a person's browser sent in this run. */
async function recorded({ tidegate, recordedSession }: Stage): Promise<SentObservations[]> {
  if (!recordedSession) throw new Error('no person acted before it: run it with person-chromium')
  const bodies = await tidegate.observations(recordedSession)
  return bodies.map((body) => read(Object(body)))
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
  run: (stage, onOutcome) => forge(forgery, { stage, onOutcome }),
}))

function kindOf({ answers, isFresh }: Forgery): Case['kind'] {
  if (isFresh) return 'informed-fresh'
  return answers === 'known' || answers === 'harvested' ? 'informed' : 'forgery'
}

interface Forging {
  stage: Stage
  onOutcome: (outcome: Outcome) => void
}

/** Of a forgery that is sent several times the last one is judged. */
async function forge(forgery: Forgery, { stage, onOutcome }: Forging): Promise<void> {
  const bodies = await forgery.bodies(stage)
  const harvest = forgery.answers === 'harvested' ? harvestOf(await recorded(stage)) : undefined
  let last: HandoffAnswer | undefined
  for (let time = 0; time < (forgery.times ?? 1); time++) {
    last = await sendForged(bodies, { answers: forgery.answers, harvest, tidegate: stage.tidegate })
  }
  if (!last) throw new Error('nothing was sent')
  const judgement = await stage.tidegate.judgement(last)
  const phase = bodies.length > 1 ? 'act' : 'load'
  onOutcome({ ...judgement, phase, sessionId: last.sessionId, botd: null, fpscanner: null })
}

/** What a browser answered in one visit, by question. */
type Harvest = ReadonlyMap<number, string>

function harvestOf(bodies: SentObservations[]): Harvest {
  const given = bodies.flatMap(({ snapshot }) => snapshot?.proofs?.engine_answers ?? [])
  return new Map(given.flatMap((one) => (one ? [[one.id, one.answer] as const] : [])))
}

interface Sending {
  answers: Answering
  harvest?: Harvest | undefined
  tidegate: Pick<Tidegate, 'url' | 'keys'>
}

/** A whole session by HTTP; of several bodies the last one asks for the result. */
export async function sendForged(
  bodies: SentObservations[],
  { answers, harvest, tidegate }: Sending,
): Promise<HandoffAnswer> {
  const snapshot = observationsSchema.parse(bodies[0]).snapshot ?? undefined
  const client = createCollectClient({
    endpoint: tidegate.url,
    publishableKey: tidegate.keys.publishable_key,
    fetch: (url, request) => fetch(url, request),
    headers: headersOf(snapshot),
    sdk: { name: 'tidegate-web', version: '1.0.0', platform: 'web' },
    page: { url: 'https://shop.example.com/login' },
    crypto: nodeClientCrypto,
    deflate: (bytes) => deflateRawSync(bytes),
  })
  const opened = await client.open()
  const sent = bodies.map((body) => answered(body, { answers, harvest, opened }))
  const closing = sent.length > 1 ? sent.pop() : undefined
  for (const body of sent) await client.sendBatch(body)
  return client.requestResult(closing ?? { version: 1, elapsed_ms: 900 })
}

function answered(
  body: SentObservations,
  { answers, harvest, opened }: Pick<Sending, 'answers' | 'harvest'> & { opened: OpenedSession },
): SentObservations {
  const { snapshot } = body
  if (!snapshot || answers === 'none') return body
  const { challenge, timingNonce } = opened
  const hash = snapshot.proofs?.canvas_challenge_hash ?? null
  const echoed = { challenge, timing_nonce: timingNonce, canvas_challenge_hash: hash }
  const known = () => answersOf(snapshot.navigator?.user_agent ?? '', opened)
  if (harvest)
    return { ...body, snapshot: { ...snapshot, proofs: withHarvest(known(), { harvest, opened }) } }
  return { ...body, snapshot: { ...snapshot, proofs: answers === 'known' ? known() : echoed } }
}

function withHarvest(
  proofs: ReturnType<typeof answersOf>,
  { harvest, opened }: { harvest: Harvest; opened: OpenedSession },
): ReturnType<typeof answersOf> {
  const looked = new Map(proofs.engine_answers.map(({ id, answer }) => [id, answer]))
  const engine = opened.engineQuestions.map(({ id }) => ({
    id,
    answer: harvest.get(id) ?? looked.get(id) ?? 'number 9',
  }))
  const answer_mac = answerMac(opened, { canvas: proofs.canvas_challenge_hash, engine })
  return { ...proofs, engine_answers: engine, answer_mac }
}

function headersOf(snapshot: Snapshot | undefined): Record<string, string> {
  const { navigator } = snapshot ?? {}
  return {
    'User-Agent': navigator?.user_agent ?? userAgent,
    Origin: 'https://shop.example.com',
    'Accept-Language': navigator?.languages.join() || 'en-US',
    ...(navigator ? clientHints(navigator) : {}),
  }
}
