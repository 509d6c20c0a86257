import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import { createPool } from '../../infra/postgres/pool.ts'
import {
  type Acknowledgement,
  type LatencySummary,
  summarize,
} from '../../services/cli/simulate/recorder.ts'
import type { Child } from '../child.ts'
import type { Environment } from '../environment.ts'
import type { Measurement } from '../measurement.ts'
import { spreadOf } from '../stats.ts'
import { sendTraffic } from './traffic.ts'

export interface ReadableOptions {
  environment: Environment
  child: Child
  /** Maximum sessions per second of the process. */
  peak: number
  seconds: number
}

const pollMs = 4

/**
 * Measures, at half of the peak rate, hand-offs and the time from the response to a session's first batch until its
 * decision is in the read model. Polls the view that GET reads, with one query for all sessions, because polling over
 * HTTP would add load.
 */
export async function measureReadable({
  environment,
  child,
  peak,
  seconds,
}: ReadableOptions): Promise<Measurement[]> {
  const rate = Math.max(1, Math.round(peak / 2))
  const pool = createPool({ url: environment.databaseUrl, max: 1 })
  const awaited = new Map<string, number>()
  const latencies: number[] = []
  const watching = new AbortController()
  const watch = watchReadable({ pool, awaited, latencies, signal: watching.signal })
  const load = {
    sessions: rate * seconds,
    concurrency: 64,
    rate,
    seed: 'readable',
    onAcknowledged: ({ kind, seq, session_id }: Acknowledgement) => {
      if (kind === 'batch' && seq === 1) awaited.set(session_id, performance.now())
    },
  }
  const { latency } = await sendTraffic({ environment, child }, load).finally(async () => {
    watching.abort()
    await watch
    await pool.end()
  })
  if (awaited.size > 0) throw new Error(`${awaited.size} sessions never became readable`)
  const line = toLine(environment, rate)
  return [
    line('results hand-off p99', 150, latency.result),
    line('acknowledged batch to readable decision p99', 200, summarize(latencies)),
  ]
}

interface Watch {
  pool: pg.Pool
  awaited: Map<string, number>
  latencies: number[]
  signal: AbortSignal
}

async function watchReadable({ pool, awaited, latencies, signal }: Watch): Promise<void> {
  const query = {
    name: 'readable',
    text: 'select session_id from read.sessions where session_id = any($1)',
  }
  const deadline = 10_000 / pollMs
  for (let idle = 0; !signal.aborted || (awaited.size > 0 && idle < deadline); ) {
    idle = signal.aborted ? idle + 1 : 0
    await delay(pollMs)
    if (awaited.size === 0) continue
    const { rows } = await pool.query<{ session_id: string }>({
      ...query,
      values: [[...awaited.keys()]],
    })
    const now = performance.now()
    for (const { session_id } of rows) {
      latencies.push(now - (awaited.get(session_id) ?? now))
      awaited.delete(session_id)
    }
  }
}

function toLine({ logName }: Environment, rate: number) {
  return (name: string, aim: number, { p50, p99, max, count }: LatencySummary): Measurement => ({
    name: `${name}, at half of peak`,
    log: logName,
    unit: 'ms',
    value: spreadOf([p99]),
    aim: { direction: 'at most', value: aim },
    details: { 'p50 ms': p50, 'max ms': max, sessions: count, 'sessions/s': rate },
  })
}
