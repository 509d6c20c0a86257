import { setTimeout as delay } from 'node:timers/promises'
import { deflateRawSync } from 'node:zlib'
import {
  CollectError,
  createCollectClient,
  type FetchLike,
} from '../../infra/wire/collect/client.ts'
import { nodeClientCrypto } from '../../infra/wire/collect/node-client-crypto.ts'
import { headersOf } from '../../services/cli/simulate/generate/headers.ts'
import { planSession, webOnlyMix } from '../../services/cli/simulate/generate/plan.ts'

export interface Traffic {
  /** Ids of sessions whose hand-off succeeded. */
  finished: string[]
  /** Sessions that their clients gave up, with the reason. */
  givenUp: string[]
  /** Number of responses by status. 503 counts only with a Retry-After header. */
  answers: Record<string, number>
  /** Requests with other errors or without a response. */
  failed: string[]
  /** Resolves when this many sessions have finished, or all have ended. */
  reached(count: number): Promise<void>
  /** Resolves when all sessions have ended. */
  done: Promise<void>
  stop(): void
}

interface TrafficOptions {
  /** Returns the current URL of collect. */
  baseUrl: () => string
  publishableKey: string
  seed: string
  sessions: number
  atOnce: number
  /** True to count and retry requests without a response, which killed servers cause. */
  allowsNoAnswer?: boolean
  /** Returns the client address of a session, for servers that trust the sender as a proxy. */
  address?: (index: number) => string
}

const retry = { attempts: 40, delayMs: 250, wait: (ms: number) => delay(Math.min(ms, 1000)) }

/** Starts complete sessions with the reference client, which retries temporary rejections. */
export function startTraffic(options: TrafficOptions): Traffic {
  const { seed, sessions, atOnce, address } = options
  const state = { next: 0, isStopped: false }
  const waiting = new Map<() => void, number>()
  const traffic: Pick<Traffic, 'finished' | 'givenUp' | 'answers' | 'failed'> = {
    finished: [],
    givenUp: [],
    answers: {},
    failed: [],
  }
  const lane = async () => {
    while (state.next < sessions && !state.isStopped) {
      const index = state.next++
      await visit(index).catch((error: unknown) =>
        traffic.givenUp.push(`${seed} ${index}: ${wordsOf(error)}`),
      )
    }
  }

  async function visit(index: number): Promise<void> {
    const plan = planSession(seed, index, webOnlyMix)
    const client = createCollectClient({
      endpoint: '',
      publishableKey: options.publishableKey,
      sdk: plan.sdk,
      page: plan.page,
      retry,
      crypto: nodeClientCrypto,
      deflate: (bytes: Uint8Array<ArrayBuffer>) => deflateRawSync(bytes),
      fetch: counting({
        ...headersOf(plan),
        ...(address && { 'x-forwarded-for': address(index) }),
      }),
    })
    const { sessionId } = await client.open()
    for (const batch of plan.batches) await client.sendBatch(batch)
    await client.requestResult(plan.closing)
    traffic.finished.push(sessionId)
    for (const [resolve, count] of waiting) if (traffic.finished.length >= count) resolve()
  }

  function counting(headers: Record<string, string>): FetchLike {
    return async (path, request) => {
      try {
        const answer = await fetch(`${options.baseUrl()}${path}`, {
          ...request,
          headers: { ...headers, ...request.headers },
        })
        note(answer)
        return answer
      } catch (error) {
        count('no answer')
        if (!options.allowsNoAnswer) traffic.failed.push(`${path}: ${wordsOf(error)}`)
        throw error
      }
    }
  }

  function note({ status, headers, url }: Response): void {
    const isPatient = status === 503 && headers.has('retry-after')
    count(status === 503 && !isPatient ? '503 without Retry-After' : String(status))
    if (status >= 300 && !isPatient) traffic.failed.push(`${url}: ${status}`)
  }

  function count(answer: string): void {
    traffic.answers[answer] = (traffic.answers[answer] ?? 0) + 1
  }

  const lanes = Promise.all(Array.from({ length: atOnce }, lane))
  const done = lanes.then(() => {})
  return {
    ...traffic,
    done,
    async reached(count) {
      const { promise, resolve } = Promise.withResolvers<void>()
      waiting.set(resolve, count)
      if (traffic.finished.length >= count) resolve()
      await Promise.race([promise, done])
      waiting.delete(resolve)
    },
    stop() {
      state.isStopped = true
    },
  }
}

function wordsOf(error: unknown): string {
  if (error instanceof CollectError) return `${error.code} ${error.status}`
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
}
