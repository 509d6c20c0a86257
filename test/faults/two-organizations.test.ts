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
/**
 * Sessions begun in a second. Those of the busy organization become more until the server refuses some, whatever it gets
 * done on this machine, and then twice as many for a while.
 */
const load = { busy: 20, quiet: 1, grows: 1.5, eachMs: 3000, untilRefused: 50, times: 2, ms: 25_000 }
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

interface State {
  perSecond: number
  isOver: boolean
}

interface Sender {
  key: string
  outcome: Outcome
  perSecond: () => number
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
    lag.enable()
    const state = { perSecond: load.busy, isOver: false }
    await Promise.all([
      overload(state),
      begin(state, { key: ofBusy, outcome: busy, perSecond: () => state.perSecond }),
      begin(state, { key: ofQuiet, outcome: quiet, perSecond: () => load.quiet }),
      askReadiness(state),
    ])
    lag.disable()
    const counts = [busy, quiet].map(({ answers, ...rest }) => ({ ...rest, answers: answers.length }))
    console.log(`seed ${seed}: ${state.perSecond} a second, own lag ${lagMs()} ms; busy, quiet:`, counts)
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

  async function overload(state: State): Promise<void> {
    while (of(busy, 'sessions', 503) < load.untilRefused) {
      await delay(load.eachMs)
      state.perSecond *= load.grows
    }
    state.perSecond *= load.times
    await delay(load.ms)
    state.isOver = true
  }

  /** An open loop: a slow answer makes the next session no later. */
  async function begin(state: State, { perSecond, key, outcome }: Sender): Promise<void> {
    const visits: Promise<void>[] = []
    let [due, last] = [0, performance.now()]
    while (!state.isOver) {
      const now = performance.now()
      due += ((now - last) / 1000) * perSecond()
      last = now
      for (; due >= 1; due--) visits.push(visit(key, outcome).catch(() => {}))
      await delay(20)
    }
    await Promise.all(visits)
  }

  async function askReadiness(state: State): Promise<void> {
    while (!state.isOver) {
      await timed(readiness, `${cluster.baseUrls[0]}/readyz`, { method: 'GET', headers: {} })
      await delay(250)
    }
  }

  it('refuses new sessions of the busy one', () => {
    expect(of(busy, 'sessions', 503)).toBeGreaterThan(load.untilRefused)
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

  // The longest times are printed and not asserted: at this load neither has been shown to stay below two seconds.
  it('answers each results request, or asks to come back by 503, and says whether it is ready', () => {
    const results = [busy, quiet].flatMap(({ answers }) => answers).filter(({ kind }) => kind === 'results')
    expect(results.filter(({ status }) => status !== 200 && status !== 503)).toEqual([])
    expect(readiness.length).toBeGreaterThan(0)
    const longest = (times: { ms: number }[]) => Math.round(Math.max(...times.map(({ ms }) => ms)))
    console.log(`longest results request ${longest(results)} ms, longest /readyz ${longest(readiness)} ms`)
  })
})
