import { expect } from 'vitest'
import { answersOf } from '../../bench/recorded-answers.ts'
import {
  type CollectClient,
  type CollectClientOptions,
  createCollectClient,
} from '../../infra/wire/collect/client.ts'
import { desktopSafari } from '../services/scoring/support/snapshots.ts'
import type { Cluster } from './cluster.ts'
import { eventually } from './eventually.ts'

export interface Visit {
  sessionId: string
  continuity: string
}

type Reader = Pick<Cluster, 'baseUrl' | 'owner'>

/** Returns a client of the collect protocol with the owner's publishable key. */
export const createTestClient = (
  { baseUrl, owner }: Reader,
  options: Partial<CollectClientOptions> = {},
): CollectClient =>
  createCollectClient({
    endpoint: baseUrl,
    publishableKey: owner.publishable.key,
    sdk: { name: 'test', version: '1', platform: 'web' },
    page: { url: 'https://shop.example/' },
    fetch,
    ...options,
  })

/** Returns the response without the times of last use, which are in no event. */
export const withoutUse = <T>(answer: T): T =>
  JSON.parse(JSON.stringify(answer, (name, value) => (name === 'last_used_at' ? undefined : value)))

/** Waits for the session to be readable and returns its visitor. */
export async function visitorOf(
  cluster: Pick<Cluster, 'read'>,
  { sessionId }: Pick<Visit, 'sessionId'>,
): Promise<string> {
  return await eventually(
    async () => {
      const { visitor_fingerprint: visitor } = await cluster.read<{
        visitor_fingerprint: { id: string } | null
      }>(`/v1/sessions/${sessionId}`)
      expect(visitor?.id).toMatch(/^vid_/)
      return visitor?.id ?? ''
    },
    { timeoutMs: 60_000, intervalMs: 200 },
  )
}

interface VisitOptions {
  /** Continuity id that the browser stored at an earlier visit. */
  continuity?: string | undefined
  /** Client address, as sent by a trusted proxy. */
  address?: string
  /** URL of the page. */
  url?: string
  /** Suffix of the user agent. */
  agent?: string
}

/** Opens a session of the device and waits for its result. */
export async function visitAs(
  reader: Reader,
  device: number,
  options: VisitOptions = {},
): Promise<Visit> {
  const { client, userAgent, snapshot } = clientAs(reader, device, options)
  const opened = await client.open()
  const proofs = answersOf(userAgent, opened)
  const sent = { version: 1, elapsed_ms: 100 + device, snapshot: { ...snapshot, proofs } } as const
  const { fingerprint, engineQuestions } = await client.sendBatch(sent)
  const { engine_answers } = answersOf(userAgent, { ...opened, engineQuestions })
  await client.requestResult({ version: 1, elapsed_ms: 900 + device, engine_answers })
  return { sessionId: opened.sessionId, continuity: fingerprint?.state.id ?? '' }
}

export function clientAs(
  reader: Reader,
  device: number,
  { address, url = 'https://shop.example/', agent = '', continuity }: VisitOptions,
) {
  const snapshot = snapshotOf(device)
  const userAgent = `${snapshot.navigator?.user_agent ?? ''}${agent}`
  const client = createTestClient(reader, {
    page: { url },
    headers: { 'user-agent': userAgent, ...(address && { 'x-forwarded-for': address }) },
    ...(continuity !== undefined && { continuity }),
  })
  return {
    client,
    userAgent,
    snapshot: { ...snapshot, navigator: { ...snapshot.navigator, user_agent: userAgent } },
  }
}

/** Returns a snapshot with unique graphics, fonts, audio and screen. */
function snapshotOf(device: number) {
  const own = (what: string) => `${what}-${device}`
  const { snapshot } = desktopSafari
  return {
    ...snapshot,
    environment: { ...snapshot.environment, screen_width: 2000 + device, timezone: own('Zone') },
    webgl: { ...snapshot.webgl, renderer: own('Apple card'), parameters_hash: own('gl') },
    canvas: { ...snapshot.canvas, hash: own('canvas') },
    audio: { ...snapshot.audio, hash: own('audio') },
    fonts: { ...snapshot.fonts, enumeration_hash: own('fonts'), metrics_hash: own('metrics') },
  }
}
