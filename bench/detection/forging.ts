import { deflateRawSync } from 'node:zlib'
import {
  createCollectClient,
  type HandoffAnswer,
  type OpenedSession,
} from '../../infra/wire/collect/client.ts'
import { answerMac } from '../../infra/wire/collect/client-crypto.ts'
import { nodeClientCrypto } from '../../infra/wire/collect/node-client-crypto.ts'
import type { Platform } from '../../schemas/events.ts'
import { observationsSchema, type SentObservations, type Snapshot } from '../../schemas/observations.ts'
import { clientHints } from '../../services/cli/simulate/generate/headers.ts'
import { answersOf } from '../recorded-answers.ts'
import type { Tidegate } from './tidegate.ts'

/**
 * `echoed`: gives the texts of its own document back; `known`: looks its questions up in this repository.
 * `harvested`: also in what a real browser answered in one visit, and guesses what is not there.
 */
export type Answering = 'none' | 'echoed' | 'known' | 'harvested'

/** What a browser answered in one visit, by question. */
export type Harvest = ReadonlyMap<number, string>

export function harvestOf(bodies: SentObservations[]): Harvest {
  const given = bodies.flatMap(({ snapshot }) => snapshot?.proofs?.engine_answers ?? [])
  return new Map(given.flatMap((one) => (one ? [[one.id, one.answer] as const] : [])))
}

export const userAgent =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/155.0.0.0 Safari/537.36'

const appAgent = 'Shop/4.2.0'

interface Sending {
  answers: Answering
  harvest?: Harvest | undefined
  tidegate: Pick<Tidegate, 'url' | 'keys'>
  /** Default: web. */
  platform?: Platform | undefined
  /** Default: the one of the snapshot. */
  userAgent?: string | undefined
}

/** A whole session by HTTP; of several bodies the last one asks for the result. */
export async function sendForged(
  bodies: SentObservations[],
  { answers, harvest, tidegate, platform = 'web', userAgent }: Sending,
): Promise<HandoffAnswer> {
  const snapshot = observationsSchema.parse(bodies[0]).snapshot ?? undefined
  const client = createCollectClient({
    endpoint: tidegate.url,
    publishableKey: keyOf(tidegate, platform),
    fetch: (url, request) => fetch(url, request),
    headers: platform === 'web' ? headersOf(snapshot) : { 'User-Agent': userAgent ?? appAgent },
    sdk: { name: `tidegate-${platform}`, version: '1.0.0', platform },
    ...(platform === 'web' ? { page: { url: 'https://shop.example.com/login' } } : {}),
    crypto: nodeClientCrypto,
    deflate: (bytes) => deflateRawSync(bytes),
  })
  const opened = await client.open()
  const sent = bodies.map((body) => answered(body, { answers, harvest, opened }))
  const closing = sent.length > 1 ? sent.pop() : undefined
  for (const body of sent) await client.sendBatch(body)
  return client.requestResult(closing ?? { version: 1, elapsed_ms: 900 })
}

function keyOf({ keys }: Pick<Tidegate, 'keys'>, platform: Platform): string {
  if (platform === 'ios') return keys.ios_publishable_key
  return platform === 'android' ? keys.android_publishable_key : keys.publishable_key
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
