import { setTimeout as delay } from 'node:timers/promises'
import { deflateRawSync } from 'node:zlib'
import { createCollectClient, type FetchLike } from '../infra/wire/collect/client.ts'
import { nodeClientCrypto } from '../infra/wire/collect/node-client-crypto.ts'
import { headersOf } from '../services/cli/simulate/generate/headers.ts'
import {
  planSession,
  type SessionPlan,
  webOnlyMix,
} from '../services/cli/simulate/generate/plan.ts'
import { type Connections, connect, type LoadAnswer } from './load.ts'
import type { Target } from './prepare.ts'

/** Response to a request, including rejections. */
interface Answer {
  kind: RequestKind
  status: number
  ms: number
}

export type RequestKind = 'open' | 'batch' | 'result'

export interface Visits {
  answers: Answer[]
  /** Milliseconds from the first attempt of a hand-off to its token. */
  handOffs: number[]
  /** Sessions whose clients gave up before or after opening them. */
  neverOpened: number
  unfinished: number
}

export interface OpenLoop extends Target {
  /** Sessions to start per second, however many are in flight. */
  rate: number
  seconds: number
}

/** Start of the last session, and the maximum delay of the generator in milliseconds. */
export interface LoopTimes {
  endedAt: number
  mostLateMs: number
}

const keptConnections = 2000

/** Sends complete sessions with clients that retry like the reference client. */
export async function runOpenLoop({
  rate,
  seconds,
  ...target
}: OpenLoop): Promise<Visits & LoopTimes> {
  const seen: Visits = { answers: [], handOffs: [], neverOpened: 0, unfinished: 0 }
  const connections = connect(target.baseUrl, keptConnections)
  await openAll(connections)
  const visits: Promise<void>[] = []
  const start = performance.now()
  let mostLateMs = 0
  for (let index = 0; index < rate * seconds; index++) {
    const early = start + (index * 1000) / rate - performance.now()
    if (early > 0) await delay(early)
    mostLateMs = Math.max(mostLateMs, -early)
    visits.push(
      visit(planSession(`open loop ${start}`, index, webOnlyMix), { ...target, connections, seen }),
    )
  }
  const endedAt = performance.now()
  await Promise.all(visits).finally(connections.close)
  return { ...seen, endedAt, mostLateMs }
}

/** Opens connections before the load, like a proxy, because Node accepts one per turn of its event loop. */
async function openAll({ send }: Connections): Promise<void> {
  const request = { method: 'GET', path: '/livez', headers: {} } as const
  await Promise.all(Array.from({ length: keptConnections }, () => send(request)))
}

interface Visiting extends Target {
  connections: Connections
  seen: Visits
}

/** Sends a complete session like a page. Retries temporary rejections like the SDKs. */
export async function visit(plan: SessionPlan, visiting: Visiting): Promise<void> {
  const { baseUrl, publishableKey, seen } = visiting
  const client = createCollectClient({
    endpoint: baseUrl,
    publishableKey,
    sdk: plan.sdk,
    page: plan.page,
    crypto: nodeClientCrypto,
    deflate: (bytes) => deflateRawSync(bytes),
    fetch: notingFetch(visiting, headersOf(plan)),
  })
  try {
    await client.open()
  } catch {
    return void seen.neverOpened++
  }
  try {
    for (const batch of plan.batches) await client.sendBatch(batch)
    const began = performance.now()
    await client.requestResult(plan.closing)
    seen.handOffs.push(performance.now() - began)
  } catch {
    seen.unfinished++
  }
}

function notingFetch({ connections, seen }: Visiting, headers: Record<string, string>): FetchLike {
  return async (url, request) => {
    const began = performance.now()
    const path = new URL(url).pathname
    const answer = await connections.send({
      method: 'POST',
      path,
      headers: { ...headers, ...request.headers },
      body: Buffer.from(request.body),
    })
    seen.answers.push({ kind: kindOf(path), status: answer.status, ms: performance.now() - began })
    return toResponse(answer)
  }
}

function toResponse({ status, headers, body }: LoadAnswer) {
  const get = (name: string) => {
    const value = headers[name]
    return typeof value === 'string' ? value : null
  }
  return { status, headers: { get }, json: async () => JSON.parse(String(body)) }
}

function kindOf(path: string): RequestKind {
  if (path.endsWith('/batches')) return 'batch'
  return path.endsWith('/results') ? 'result' : 'open'
}
