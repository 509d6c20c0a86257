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

/** An answer to one request, refusals included. */
interface Answer {
  kind: RequestKind
  status: number
  ms: number
}

export type RequestKind = 'open' | 'batch' | 'result'

export interface Visits {
  answers: Answer[]
  /** Milliseconds from the first try of a hand-off to its token. */
  handOffs: number[]
  /** Sessions whose clients gave up: before they were open, and after. */
  neverOpened: number
  unfinished: number
}

export interface OpenLoop extends Target {
  /** Sessions begun a second, however many are under way. */
  rate: number
  seconds: number
}

/** When the last session was begun, and how late the generator was at most (milliseconds). */
export interface LoopTimes {
  endedAt: number
  mostLateMs: number
}

const keptConnections = 2000

/** Sends whole sessions with clients that try again as the reference client does. */
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

/** Node takes one new connection in each turn of its event loop, so they are there before the load, as a proxy's. */
async function openAll({ send }: Connections): Promise<void> {
  const request = { method: 'GET', path: '/livez', headers: {} } as const
  await Promise.all(Array.from({ length: keptConnections }, () => send(request)))
}

interface Visiting extends Target {
  connections: Connections
  seen: Visits
}

/** A whole session as a page has it. What is refused for now is tried again as the SDKs do. */
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
