import { expect } from 'vitest'
import { answersOf } from '../../bench/recorded-answers.ts'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { desktopSafari } from '../services/scoring/support/snapshots.ts'
import type { Owner } from './cluster.ts'
import { eventually } from './eventually.ts'

export interface Visit {
  sessionId: string
  continuity: string
}

interface Reader {
  baseUrl: string
  owner: Owner
}

/** `data` of the answer. When a key was last used is left out: it is in no event. */
export async function readAs(
  { baseUrl, owner }: Reader,
  path: string,
  init: RequestInit = {},
): Promise<unknown> {
  const headers = {
    authorization: `Bearer ${owner.secret.key}`,
    'content-type': 'application/json',
  }
  const answer = await fetch(`${baseUrl}${path}`, { ...init, headers })
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  return JSON.parse(await answer.text(), (name, value) => (name === 'last_used_at' ? null : value))
    .data
}

/** The visitor of the session, once it is readable. */
export async function visitorOf(reader: Reader, { sessionId }: Visit): Promise<string> {
  return await eventually(
    async () => {
      const detail = await readAs(reader, `/v1/sessions/${sessionId}`)
      expect(detail).toMatchObject({ visitor_fingerprint: { id: expect.stringMatching(/^vid_/) } })
      return (detail as { visitor_fingerprint: { id: string } }).visitor_fingerprint.id
    },
    { timeoutMs: 30_000, intervalMs: 200 },
  )
}

interface VisitOptions extends Reader {
  /** What the browser kept of an earlier visit. */
  continuity?: string
  /** Where the request comes from, as a trusted proxy says. */
  address?: string
  /** The page's address. */
  url?: string
  /** What its user agent ends with. */
  agent?: string
}

/** One session of this device, up to its result. */
export async function visitAs(device: number, options: VisitOptions): Promise<Visit> {
  const { client, userAgent, snapshot } = clientAs(device, options)
  const opened = await client.open()
  const proofs = answersOf(userAgent, opened)
  const sent = { version: 1, elapsed_ms: 100 + device, snapshot: { ...snapshot, proofs } } as const
  const { fingerprint, engineQuestions } = await client.sendBatch(sent)
  const { engine_answers } = answersOf(userAgent, { ...opened, engineQuestions })
  await client.requestResult({ version: 1, elapsed_ms: 900 + device, engine_answers })
  return { sessionId: opened.sessionId, continuity: fingerprint?.state.id ?? '' }
}

export function clientAs(
  device: number,
  {
    baseUrl: endpoint,
    owner,
    address,
    url: page = 'https://shop.example/',
    agent = '',
    ...kept
  }: VisitOptions,
) {
  const snapshot = snapshotOf(device)
  const userAgent = `${snapshot.navigator?.user_agent ?? ''}${agent}`
  const own = { 'user-agent': userAgent, ...(address && { 'x-forwarded-for': address }) }
  const client = createCollectClient({
    endpoint,
    publishableKey: owner.publishable.key,
    sdk: { name: 'test', version: '1', platform: 'web' },
    page: { url: page },
    fetch: (url, init) => fetch(url, { ...init, headers: { ...init.headers, ...own } }),
    ...kept,
  })
  return {
    client,
    userAgent,
    snapshot: { ...snapshot, navigator: { ...snapshot.navigator, user_agent: userAgent } },
  }
}

/** Machines of one kind that no two have in common: graphics, fonts, sound, screen. */
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
