import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import { deflateRawSync } from 'node:zlib'
import { createCollectClient, type FetchLike } from '../../infra/wire/collect/client.ts'
import { nodeClientCrypto } from '../../infra/wire/collect/node-client-crypto.ts'
import { headersOf } from '../../services/cli/simulate/generate/headers.ts'
import { planSession, webOnly } from '../../services/cli/simulate/generate/plan.ts'
import { createHttpClient } from '../../services/cli/simulate/http.ts'
import type { FloodAnswer, FloodOptions, FloodReport } from './flood.ts'

// A thread of its own begins the sessions, so that what it is late by is neither another one's nor its parent's.

const { baseUrl, publishableKey, seed, first }: FloodOptions = workerData
const answers: FloodAnswer[] = []
const counts = { begun: 0, opened: 0, finished: 0 }
const lag = monitorEventLoopDelay({ resolution: 10 })
const http = createHttpClient({ connections: 4096 })
let perSecond = 0
let isOver = false

parentPort?.on('message', (told: number | null) => {
  if (told === null) isOver = true
  else perSecond = told
})

/** A whole session as a page has it. What is refused for now is tried again as the SDKs do. */
async function visit(): Promise<void> {
  const plan = planSession(seed, first + counts.begun++, webOnly)
  const client = createCollectClient({
    ...{ endpoint: baseUrl, publishableKey, sdk: plan.sdk, page: plan.page },
    ...{ crypto: nodeClientCrypto, deflate: (bytes: Uint8Array<ArrayBuffer>) => deflateRawSync(bytes) },
    fetch: timed(headersOf(plan)),
  })
  await client.open()
  counts.opened++
  const [snapshot] = plan.batches
  if (snapshot) await client.sendBatch(snapshot)
  await client.requestResult(plan.closing)
  counts.finished++
}

function timed(own: Record<string, string>): FetchLike {
  return async (url, { method, headers, body }) => {
    const begunAt = performance.now()
    const answer = await http.request(url, { method, headers: { ...own, ...headers }, body })
    const kind = url.slice(url.lastIndexOf('/') + 1)
    answers.push({ kind, status: answer.status, ms: performance.now() - begunAt })
    return { ...answer, json: async () => JSON.parse(answer.body.toString()) }
  }
}

/** An open loop: a slow answer makes the next session no later. */
async function begin(): Promise<void> {
  const visits: Promise<void>[] = []
  let [due, last, reportedAt] = [0, performance.now(), 0]
  lag.enable()
  while (!isOver) {
    const now = performance.now()
    due += ((now - last) / 1000) * perSecond
    last = now
    for (; due >= 1; due--) visits.push(visit().catch(() => {}))
    if (now - reportedAt > 250) report(false)
    if (now - reportedAt > 250) reportedAt = now
    await delay(20)
  }
  await Promise.all(visits)
  http.close()
  report(true)
}

function report(isLast: boolean): void {
  const message: FloodReport = { ...counts, answers: answers.splice(0), lagMs: lag.max / 1e6, isLast }
  parentPort?.postMessage(message)
}

await begin()
