import { setTimeout as delay } from 'node:timers/promises'
import { clientKeysOf } from '../../services/cli/simulate/client-keys.ts'
import { summarize } from '../../services/cli/simulate/recorder.ts'
import { simulate } from '../../services/cli/simulate/simulate.ts'
import type { Environment } from '../environment.ts'
import type { Measurement } from '../measurement.ts'
import { type LoopTimes, runOpenLoop, type Visits } from '../open-loop.ts'
import { spreadOf } from '../stats.ts'
import type { Traffic } from './traffic.ts'

export interface OverloadOptions {
  environment: Environment
  /** Maximum sessions per second of the process. */
  peak: number
  seconds: number
}

const timesPeak = 3
/** Sessions that warm up a new process, with low concurrency to avoid load shedding. */
const warmUp = { sessions: 200, concurrency: 8, seed: 'overload warm-up' }
/** Attempts of a new session before the process counts as not recovered. */
const mostProbes = 60
/** The server reports the maximum age of the last half second. */
const ageShownMs = 500

/**
 * Runs an open loop of complete sessions at three times the peak. Measures how many are shed, how long admitted ones
 * wait for their hand-off, and how soon the queue is empty and a new session is accepted after the load.
 */
export async function measureOverload(options: OverloadOptions): Promise<Measurement[]> {
  const { environment } = options
  const child = await environment.startAllInOne({ sheds: true })
  try {
    return await overload({ environment, child }, options)
  } finally {
    await child.stop()
  }
}

async function overload(
  traffic: Traffic,
  { peak, seconds }: OverloadOptions,
): Promise<Measurement[]> {
  const { live } = await traffic.environment.credentials()
  const baseUrl = traffic.child.url
  await simulate({ baseUrl, publishableKeys: clientKeysOf(live), ...warmUp })
  const rate = Math.max(1, Math.round(peak * timesPeak))
  const ages = watchAge(traffic)
  const target = { baseUrl, publishableKey: live.publishable_key }
  const visits = await runOpenLoop({ ...target, rate, seconds }).finally(ages.stop)
  const lastAnswerAt = performance.now()
  await untilFresh(traffic)
  const line = { log: traffic.environment.logName, unit: 'ms' } as const
  return [
    {
      ...line,
      name: 'hand-off p99 of admitted sessions with its repetitions, at three times the peak',
      value: spreadOf([summarize(visits.handOffs).p99]),
      aim: { direction: 'at most', value: 2000 },
      details: { 'sessions/s begun': rate, ...detailsOf(visits), 'oldest ms': ages.oldestMs() },
    },
    {
      ...line,
      name: 'from the last answer of the overload to no backlog and a hand-off without a refusal',
      value: spreadOf([performance.now() - lastAnswerAt]),
      aim: { direction: 'at most', value: 2000 },
      details: { 'last answer after the last session begun, ms': lastAnswerAt - visits.endedAt },
    },
  ]
}

function detailsOf(visits: Visits & LoopTimes): Record<string, number> {
  const { answers, handOffs } = visits
  const strange = answers.find(({ status }) => status !== 200 && status !== 503)
  if (strange) throw new Error(`${strange.kind} was answered ${strange.status}`)
  if (handOffs.length === 0) throw new Error('no session was handed off')
  const times = summarize(answers.map(({ ms }) => ms))
  const opens = answers.filter(({ kind }) => kind === 'open')
  const refused = (kind: string) =>
    answers.filter((one) => one.kind === kind && one.status === 503).length
  return {
    'share of opens shed': refused('open') / opens.length,
    'bodies 503': refused('batch') + refused('result'),
    'answer p50 ms': times.p50,
    'answer p99 ms': times.p99,
    'hand-off p50 ms': summarize(handOffs).p50,
    'sessions finished': handOffs.length,
    'never opened': visits.neverOpened,
    'opened and given up': visits.unfinished,
    'generator late ms': visits.mostLateMs,
  }
}

/** Returns the largest age that the server reported meanwhile. */
function watchAge({ child }: Traffic) {
  let oldestMs = 0
  const look = async () => {
    oldestMs = Math.max(oldestMs, await backlogMs(child.url))
  }
  const timer = setInterval(() => void look().catch(() => {}), ageShownMs)
  return { oldestMs: () => oldestMs, stop: () => clearInterval(timer) }
}

async function backlogMs(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(/^tidegate_collect_backlog_seconds (\S+)/m.exec(text)?.[1]) * 1000
}

async function untilFresh({ environment, child }: Traffic): Promise<void> {
  const { live } = await environment.credentials()
  const target = { baseUrl: child.url, publishableKeys: clientKeysOf(live) }
  for (let probe = 0; probe < mostProbes; probe++) {
    const { errors } = await simulate({
      ...target,
      sessions: 1,
      concurrency: 1,
      seed: `recovery ${probe}`,
    })
    if (errors.length === 0 && (await backlogMs(child.url)) === 0) return
    await delay(ageShownMs / 10)
  }
  throw new Error(
    `a fresh session was refused ${mostProbes} times after the overload, or something waited`,
  )
}
