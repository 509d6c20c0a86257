import { setTimeout as delay } from 'node:timers/promises'
import { createPool } from '../../infra/postgres/pool.ts'
import { summarize } from '../../services/cli/simulate/recorder.ts'
import { saveLookup } from '../../services/scoring/identity/tables.ts'
import { costOf } from '../child.ts'
import { type EdgeItem, edgeItems, signer } from '../edge-items.ts'
import type { Environment } from '../environment.ts'
import { type Connections, connect, type LoadRequest } from '../load.ts'
import type { Measurement } from '../measurement.ts'
import type { Scale } from '../scale.ts'
import { spreadOf } from '../stats.ts'

const itemsPerSecond = 200
/** Items per call: an edge that scores each request separately, and one that batches them. */
const groups = [1, 10, 50] as const
const keptConnections = 32
/** The first thousand items after a start take four times the CPU time, until V8 has compiled the code. */
const warmUpItems = 6000
const warmUpItemsPerSecond = 600

/**
 * Runs an open loop of 200 items per second on a server with all roles. Measures the time from a request's due time to
 * the end of its response.
 */
export async function measureRequests(
  environment: Environment,
  { requestRounds, requestSeconds }: Scale,
): Promise<Measurement[]> {
  await knowDirectory(environment)
  // 200 per second is the default rate limit.
  const child = await environment.startAllInOne({
    sheds: false,
    env: { RATE_LIMIT_REQUESTS: '1000000000' },
  })
  const { live } = await environment.credentials()
  const connections = connect(child.url, keptConnections)
  const measurements: Measurement[] = []
  try {
    for (const size of groups) {
      const send = (items: EdgeItem[], perSecond = itemsPerSecond) =>
        sendOpenLoop(connections, { items, size, perSecond, key: live.secret_key })
      await send(edgeItems(`warm-up ${size}`, warmUpItems), warmUpItemsPerSecond)
      const rounds: Round[] = []
      for (let round = 0; round < requestRounds; round++) {
        const items = edgeItems(`${size} ${round}`, itemsPerSecond * requestSeconds)
        const { result, cpuMicros } = await costOf(child, () => send(items))
        rounds.push({ ...summarize(result.times), ...result, itemMicros: cpuMicros / items.length })
      }
      measurements.push(describe(environment, size, rounds))
    }
  } finally {
    connections.close()
    await child.stop()
  }
  return measurements
}

/** Keeps the key of the signed items in memory, like that of a known agent. */
async function knowDirectory({ databaseUrl }: Environment): Promise<void> {
  const pool = createPool({ url: databaseUrl, max: 1 })
  const [fetched_at, ends_at] = [Date.now(), Date.now() + 24 * 3_600_000]
  await saveLookup(pool, { ...signer.directory, fetched_at, ends_at }).finally(() => pool.end())
}

interface Round {
  p50: number
  p99: number
  max: number
  lateMs: number
  /** CPU time of the server. */
  itemMicros: number
}

function describe(environment: Environment, size: number, rounds: Round[]): Measurement {
  const median = (of: keyof Round) => spreadOf(rounds.map((round) => round[of])).median
  return {
    name: `POST /v1/requests/score p99, ${itemsPerSecond} items a second, ${size} in a request`,
    log: environment.logName,
    unit: 'ms',
    value: spreadOf(rounds.map(({ p99 }) => p99)),
    aim: { direction: 'at most', value: 10 },
    details: {
      'p50 ms': median('p50'),
      'max ms': median('max'),
      'CPU µs an item': median('itemMicros'),
      'generator late ms': median('lateMs'),
    },
  }
}

interface OpenLoop {
  items: EdgeItem[]
  size: number
  /** Items per second. */
  perSecond: number
  key: string
}

async function sendOpenLoop({ send }: Connections, { items, size, perSecond, key }: OpenLoop) {
  const requests = Array.from({ length: Math.ceil(items.length / size) }, (_, i) =>
    scoreRequest(key, items.slice(i * size, (i + 1) * size)),
  )
  const times: number[] = []
  const answers: Promise<void>[] = []
  let lateMs = 0
  const start = performance.now()
  for (const [i, request] of requests.entries()) {
    const due = start + (i * size * 1000) / perSecond
    await delay(Math.max(0, due - performance.now()))
    lateMs = Math.max(lateMs, performance.now() - due)
    const answered = send(request).then(({ status, body }) => {
      times.push(performance.now() - due)
      if (status !== 200) throw new Error(`${request.path}: ${status} ${body}`)
    })
    answers.push(answered)
  }
  await Promise.all(answers)
  return { times, lateMs }
}

function scoreRequest(key: string, requests: EdgeItem[]): LoadRequest {
  return {
    method: 'POST',
    path: '/v1/requests/score',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: Buffer.from(JSON.stringify({ requests })),
  }
}
