import { randomBytes } from 'node:crypto'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { deflateRawSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCollectClient, type FetchLike } from '../../infra/wire/collect/client.ts'
import { nodeClientCrypto } from '../../infra/wire/collect/node-client-crypto.ts'
import { headersOf } from '../../services/cli/simulate/generate/headers.ts'
import { planSession, webOnly } from '../../services/cli/simulate/generate/plan.ts'
import { createHttpClient } from '../../services/cli/simulate/http.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'

/** The defaults, which the servers of other tests have no limits by. */
const env = { COLLECT_MAX_BACKLOG_MS: '750', HAND_OFF_TIMEOUT_MS: '2000' }
const alone = { lanes: 8, ms: 6000 }
/** Sessions begun in a second: of the busy organization, times what the server gets done, and of the quiet one a part. */
const load = { busy: 4, quiet: 1 / 15, ms: 25_000 }
const promisedMs = 2000
const seed = randomBytes(4).toString('hex')

interface Answer {
  kind: string
  status: number
  ms: number
}

/** What became of the sessions of one organization. */
interface Outcome {
  answers: Answer[]
  begun: number
  opened: number
  finished: number
}

const outcome = (): Outcome => ({ answers: [], begun: 0, opened: 0, finished: 0 })
const of = ({ answers }: Outcome, kind: string, status: number) =>
  answers.filter((answer) => answer.kind === kind && answer.status === status).length

describe(`two organizations on one server, of which one begins far more than is scored (seed ${seed})`, () => {
  let cluster: Cluster
  const [busy, quiet] = [outcome(), outcome()]
  const readiness: Answer[] = []
  const lag = monitorEventLoopDelay({ resolution: 10 })
  const http = createHttpClient({ connections: 512 })
  let sessions = 0

  beforeAll(async () => {
    cluster = await startCluster({ log: 'postgres', processes: 1, env })
    const [ofBusy, ofQuiet] = [cluster.owner.publishable.key, (await cluster.organization()).publishable.key]
    const perSecond = await scoredAlone(ofBusy)
    lag.enable()
    const until = performance.now() + load.ms
    await Promise.all([
      beginUntil(until, { perSecond: perSecond * load.busy, key: ofBusy, outcome: busy }),
      beginUntil(until, { perSecond: perSecond * load.quiet, key: ofQuiet, outcome: quiet }),
      askReadiness(until),
    ])
    lag.disable()
    const counts = [busy, quiet].map(({ answers, ...rest }) => ({ ...rest, answers: answers.length }))
    console.log(`seed ${seed}: ${perSecond} a second alone, own lag ${lagMs()} ms; busy, quiet:`, counts)
  }, 300_000)

  afterAll(async () => {
    http.close()
    await cluster?.stop()
  })

  /** The longest that this process was late itself, which is no fault of the server's. */
  const lagMs = () => Math.ceil(lag.max / 1e6)

  /** A whole session as a page has it. What is refused for now is tried again as the SDKs do. */
  async function visit(publishableKey: string, outcome: Outcome): Promise<void> {
    const plan = planSession(seed, sessions++, webOnly)
    const client = createCollectClient({
      ...{ endpoint: cluster.baseUrls[0] ?? '', publishableKey, sdk: plan.sdk, page: plan.page },
      ...{ crypto: nodeClientCrypto, deflate: (bytes: Uint8Array<ArrayBuffer>) => deflateRawSync(bytes) },
      fetch: noting(outcome.answers, headersOf(plan)),
    })
    outcome.begun++
    await client.open()
    outcome.opened++
    const [snapshot] = plan.batches
    if (snapshot) await client.sendBatch(snapshot)
    await client.requestResult(plan.closing)
    outcome.finished++
  }

  function noting(answers: Answer[], own: Record<string, string>): FetchLike {
    return async (url, { method, headers, body }) => {
      const answer = await timed(answers, url, { method, headers: { ...own, ...headers }, body })
      return { ...answer, json: async () => JSON.parse(answer.body.toString()) }
    }
  }

  async function timed(answers: Answer[], url: string, request: Parameters<typeof http.request>[1]) {
    const begunAt = performance.now()
    const answer = await http.request(url, request)
    const kind = url.slice(url.lastIndexOf('/') + 1)
    answers.push({ kind, status: answer.status, ms: performance.now() - begunAt })
    return answer
  }

  async function scoredAlone(key: string): Promise<number> {
    const until = performance.now() + alone.ms
    const done = outcome()
    const lane = async () => {
      while (performance.now() < until) await visit(key, done).catch(() => {})
    }
    await Promise.all(Array.from({ length: alone.lanes }, lane))
    return Math.max(1, done.finished / (alone.ms / 1000))
  }

  /** An open loop: a slow answer makes the next session no later. */
  async function beginUntil(
    until: number,
    { perSecond, key, outcome }: { perSecond: number; key: string; outcome: Outcome },
  ): Promise<void> {
    const visits: Promise<void>[] = []
    const begunAt = performance.now()
    while (performance.now() < until) {
      const due = ((performance.now() - begunAt) / 1000) * perSecond
      while (visits.length < due) visits.push(visit(key, outcome).catch(() => {}))
      await delay(20)
    }
    await Promise.all(visits)
  }

  async function askReadiness(until: number): Promise<void> {
    while (performance.now() < until) {
      await timed(readiness, `${cluster.baseUrls[0]}/readyz`, { method: 'GET', headers: {} })
      await delay(250)
    }
  }

  it('refuses new sessions of the busy one', () => {
    expect(of(busy, 'sessions', 503)).toBeGreaterThan(busy.begun / 4)
  })

  it('opens all sessions of the quiet one, nearly all at the first try', () => {
    expect(quiet.opened).toBe(quiet.begun)
    expect(of(quiet, 'sessions', 503)).toBeLessThanOrEqual(Math.ceil(quiet.begun / 10))
  })

  it('has a result for nearly every session that it admitted', () => {
    expect(busy.opened).toBeGreaterThan(0)
    expect(busy.finished / busy.opened).toBeGreaterThan(0.9)
    expect(quiet.finished / quiet.opened).toBeGreaterThan(0.9)
  })

  it('answers each results request within two seconds, and asks to come back where it is 503', () => {
    const results = [busy, quiet].flatMap(({ answers }) => answers).filter(({ kind }) => kind === 'results')
    expect(results.filter(({ status }) => status !== 200 && status !== 503)).toEqual([])
    expect(Math.max(...results.map(({ ms }) => ms))).toBeLessThan(promisedMs + lagMs())
  })

  it('says within two seconds whether it is ready', () => {
    expect(readiness.length).toBeGreaterThan(0)
    expect(Math.max(...readiness.map(({ ms }) => ms))).toBeLessThan(promisedMs + lagMs())
  })
})
