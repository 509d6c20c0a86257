import { hash } from 'node:crypto'
import { deflateRawSync } from 'node:zlib'
import {
  type CollectClient,
  createCollectClient,
  type HandoffResult,
  type OpenedSession,
} from '../../infra/wire/collect/client.ts'
import { answerMac } from '../../infra/wire/collect/client-crypto.ts'
import { nodeClientCrypto } from '../../infra/wire/collect/node-client-crypto.ts'
import type { EngineQuestion } from '../../infra/wire/collect/protocol.ts'
import type { Platform } from '../../schemas/events.ts'
import {
  observationsSchema,
  type SentObservations,
  type Snapshot,
} from '../../schemas/observations.ts'
import { clientHints } from '../../services/cli/simulate/generate/headers.ts'
import { answersOf } from '../recorded-answers.ts'
import type { Tidegate } from './tidegate.ts'

/** `echoed`: returns texts of its own document. `known`: looks up answers in this repository. */
export type Answering = 'none' | 'echoed' | 'known'

/** Answers by question that override those of the repository: junk, harvested, or from an oracle. */
export type AnswerTable = (
  questions: EngineQuestion[],
) => ReadonlyMap<number, string> | Promise<ReadonlyMap<number, string>>

export const userAgent =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/155.0.0.0 Safari/537.36'

const appAgent = 'Shop/4.2.0'

/** Returns a residential IP address for the seed. */
export function addressOf(seed: string): string {
  const [a = 0, b = 0, c = 0] = hash('sha256', seed, 'buffer')
  return `87.${128 + (a % 32)}.${b}.${c}`
}

interface Opening {
  tidegate: Pick<Tidegate, 'url' | 'keys'>
  /** Client address sent as by a proxy. Default: this machine's. */
  address?: string | undefined
  /** Default: web. */
  platform?: Platform | undefined
  /** Default: that of the snapshot. */
  userAgent?: string | undefined
}

interface Sending extends Opening {
  answers: Answering
  table?: AnswerTable | undefined
}

/** Sends a complete session over HTTP. The last body requests the result. */
export async function sendForged(
  bodies: SentObservations[],
  { answers, table, ...sending }: Sending,
): Promise<HandoffResult> {
  const client = forgedClient(observationsSchema.parse(bodies[0]).snapshot ?? undefined, sending)
  const opened = await client.open()
  const looked = await table?.(opened.engineQuestions)
  const [first, ...rest] = bodies.map((body) => answered(body, { answers, looked, opened }))
  const closing = rest.pop() ?? { version: 1, elapsed_ms: 900 }
  const { engineQuestions } = await client.sendBatch(first ?? closing)
  const own =
    answers === 'known' ? await ownAnswers(engineQuestions, { opened, bodies, table }) : {}
  const [second = closing, ...others] = [...rest, closing]
  const last = others.pop()
  if (!last) return client.requestResult({ ...second, ...own })
  await client.sendBatch({ ...second, ...own })
  for (const body of others) await client.sendBatch(body)
  return client.requestResult(last)
}

/** Returns answers to private questions, for the body after the first. */
async function ownAnswers(
  engineQuestions: EngineQuestion[],
  {
    opened,
    bodies,
    table,
  }: Pick<Sending, 'table'> & { opened: OpenedSession; bodies: SentObservations[] },
): Promise<Pick<SentObservations, 'engine_answers'>> {
  const userAgent = bodies[0]?.snapshot?.navigator?.user_agent ?? ''
  const looked = await table?.(engineQuestions)
  const { engine_answers: invented } = answersOf(userAgent, { ...opened, engineQuestions })
  return {
    engine_answers: invented.map(({ id, answer }) => ({ id, answer: looked?.get(id) ?? answer })),
  }
}

/** Opens a document that is never used, and returns its questions. */
export async function openForged(snapshot: Snapshot, sending: Opening): Promise<EngineQuestion[]> {
  return (await forgedClient(snapshot, sending).open()).engineQuestions
}

/** Opens a document, sends a snapshot and leaves. Returns all questions. */
export async function visitForged(snapshot: Snapshot, sending: Opening): Promise<EngineQuestion[]> {
  const client = forgedClient(snapshot, sending)
  const opened = await client.open()
  const first = { version: 1, elapsed_ms: 300, snapshot } as const
  const ack = await client.sendBatch(
    answered(first, { answers: 'known', looked: undefined, opened }),
  )
  return [...opened.engineQuestions, ...ack.engineQuestions]
}

function forgedClient(
  snapshot: Snapshot | undefined,
  { tidegate, address, platform = 'web', userAgent }: Opening,
): CollectClient {
  const headers = platform === 'web' ? headersOf(snapshot) : { 'User-Agent': userAgent ?? appAgent }
  return createCollectClient({
    endpoint: tidegate.url,
    publishableKey: keyOf(tidegate, platform),
    fetch: (url, request) => fetch(url, request),
    headers: address === undefined ? headers : { ...headers, 'X-Forwarded-For': address },
    sdk: { name: `tidegate-${platform}`, version: '1.0.0', platform },
    ...(platform === 'web' ? { page: { url: 'https://shop.example.com/login' } } : {}),
    crypto: nodeClientCrypto,
    deflate: (bytes) => deflateRawSync(bytes),
  })
}

function keyOf({ keys }: Pick<Tidegate, 'keys'>, platform: Platform): string {
  if (platform === 'ios') return keys.ios_publishable_key
  return platform === 'android' ? keys.android_publishable_key : keys.publishable_key
}

interface Answered {
  answers: Answering
  looked: ReadonlyMap<number, string> | undefined
  opened: OpenedSession
}

function answered(body: SentObservations, { answers, looked, opened }: Answered): SentObservations {
  const { snapshot } = body
  if (!snapshot || answers === 'none') return body
  const { challenge, timingNonce } = opened
  const drawing = snapshot.proofs?.canvas_challenge_hash ?? null
  const echoed = { challenge, timing_nonce: timingNonce, canvas_challenge_hash: drawing }
  const known = () => answersOf(snapshot.navigator?.user_agent ?? '', opened)
  const proofs = answers === 'echoed' ? echoed : replaced(known(), { looked, opened })
  return { ...body, snapshot: { ...snapshot, proofs } }
}

type Proofs = ReturnType<typeof answersOf>

function replaced(proofs: Proofs, { looked, opened }: Omit<Answered, 'answers'>): Proofs {
  const engine = proofs.engine_answers.map(({ id, answer }) => ({
    id,
    answer: looked?.get(id) ?? answer,
  }))
  const answers = { canvas: proofs.canvas_challenge_hash, engine }
  return { ...proofs, engine_answers: engine, answer_mac: answerMac(opened, answers) }
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
