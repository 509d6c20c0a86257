import { randomBytes } from 'node:crypto'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RequestKind } from '../../bench/open-loop.ts'
import { createHttpClient } from '../../services/cli/simulate/http.ts'
import { type Cluster, type Owner, startCluster } from '../support/cluster.ts'
import { type Flood, type FloodReport, startFlood } from '../support/flood.ts'

/** The defaults, which the servers of other tests have no limits by. */
const env = { COLLECT_MAX_BACKLOG_MS: '750', HAND_OFF_TIMEOUT_MS: '2000' }
/** Sessions begun in a second. Those of the busy organization become more until the server refuses some. */
const load = { busy: 20, quiet: 1, grows: 1.25, eachMs: 2000, untilRefused: 50, ms: 25_000 }
const seed = randomBytes(4).toString('hex')

const of = ({ answers }: FloodReport, kind: RequestKind, status: number) =>
  answers.filter((answer) => answer.kind === kind && answer.status === status).length

describe(`two organizations on one server, of which one begins far more than is scored (seed ${seed})`, () => {
  let cluster: Cluster
  let busy: FloodReport
  let quiet: FloodReport
  const readiness: number[] = []
  const lag = monitorEventLoopDelay({ resolution: 10 })

  beforeAll(async () => {
    cluster = await startCluster({ env })
    const { baseUrl } = cluster
    const flood = (owner: Owner, first: number) =>
      startFlood({ baseUrl, publishableKey: owner.publishable.key, seed, first })
    const many = flood(cluster.owner, 0)
    const few = flood(await cluster.organization(), 1_000_000)
    lag.enable()
    few.setRate(load.quiet)
    const asking = new AbortController()
    const asked = askReadiness(baseUrl, asking.signal)
    const rate = await overload(many)
    await Promise.all([many.end(), few.end()])
    asking.abort()
    await asked
    ;[busy, quiet] = [many.report, few.report]
    const counts = [busy, quiet].map(({ answers, ...rest }) => ({
      ...rest,
      answers: answers.length,
    }))
    console.log(
      `seed ${seed}: ${Math.round(rate)} a second, own lag ${lagMs()} ms; busy, quiet:`,
      counts,
    )
  }, 300_000)

  afterAll(() => cluster?.stop())

  /** The longest that the threads of this test were late themselves, which is no fault of the server's. */
  const lagMs = () => Math.ceil(lag.max / 1e6 + Math.max(busy.lagMs, quiet.lagMs))

  /** Ends a while after it is too much; the rate then. */
  async function overload(flood: Flood): Promise<number> {
    let rate = load.busy
    flood.setRate(rate)
    while (of(flood.report, 'open', 503) < load.untilRefused) {
      await delay(load.eachMs)
      rate *= load.grows
      flood.setRate(rate)
    }
    await delay(load.ms)
    return rate
  }

  /** Each time over a connection of its own, as a probe has it. */
  async function askReadiness(baseUrl: string, asking: AbortSignal): Promise<void> {
    while (!asking.aborted) {
      const http = createHttpClient({ connections: 1 })
      const begunAt = performance.now()
      await http.request(`${baseUrl}/readyz`, { method: 'GET', headers: {} })
      readiness.push(performance.now() - begunAt)
      http.close()
      await delay(250)
    }
  }

  it('refuses new sessions of the busy one', () => {
    expect(of(busy, 'open', 503)).toBeGreaterThan(load.untilRefused)
  })

  it('opens all sessions of the quiet one, nearly all at the first try', () => {
    expect(quiet.neverOpened).toBe(0)
    expect(quiet.begun).toBeGreaterThan(0)
    expect(of(quiet, 'open', 503)).toBeLessThanOrEqual(Math.ceil(quiet.begun / 10))
  })

  it('has a result for nearly every session that it admitted', () => {
    for (const { begun, neverOpened, unfinished } of [busy, quiet]) {
      const opened = begun - neverOpened
      expect(opened).toBeGreaterThan(0)
      expect((opened - unfinished) / opened).toBeGreaterThan(0.9)
    }
  })

  it('answers each results request within two seconds, if only that it comes later', () => {
    const results = [busy, quiet]
      .flatMap(({ answers }) => answers)
      .filter(({ kind }) => kind === 'result')
    expect(results.filter(({ status }) => status !== 200 && status !== 503)).toEqual([])
    expect(Math.max(...results.map(({ ms }) => ms))).toBeLessThan(2000 + lagMs())
  })

  it('lets nobody wait for two seconds who comes new, nor a probe', () => {
    const opened = quiet.answers.filter(({ kind }) => kind === 'open').map(({ ms }) => ms)
    expect(Math.max(...opened, ...readiness)).toBeLessThan(2000 + lagMs())
    expect(readiness.length).toBeGreaterThan(0)
  })
})
