import { setImmediate as settled } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { HttpResponse } from '../../../services/cli/simulate/http.ts'
import { createPacer } from '../../../services/cli/simulate/pacer.ts'
import { createRecording, sendRecorded } from '../../../services/cli/simulate/recorder.ts'
import { createModel, createVirtualTime } from '../../infra/access/rate-limit/support.ts'

interface BucketOptions {
  /** Units per 60 seconds. Default: unlimited. */
  limit?: number | undefined
  /** Status of the response to an admitted request. Default: 200. */
  status?: number | undefined
}

/** Network latency in each direction. */
const travelMs = 5

/** Creates a rate-limited server in virtual time. A denied request costs a unit, too. */
function createBucketServer({ limit, status = 200 }: BucketOptions) {
  const time = createVirtualTime(0)
  const model = limit === undefined ? undefined : createModel(limit, 0)
  const received: { body: string; status: number }[] = []

  function take(): { admitted: boolean; headers: Record<string, string> } {
    if (!model) return { admitted: true, headers: {} }
    const { admitted, remaining } = model.request(1, time.clock())
    let seconds = 1
    while (!model.wouldAdmit(1, time.clock() + seconds * 1000)) seconds++
    const limitHeaders = {
      'x-ratelimit-limit': `${limit}`,
      'x-ratelimit-remaining': `${remaining}`,
    }
    return {
      admitted,
      headers: admitted ? limitHeaders : { ...limitHeaders, 'retry-after': `${seconds}` },
    }
  }

  async function request(body: string): Promise<HttpResponse> {
    await time.after(travelMs)
    const { admitted, headers } = take()
    const response = { status: admitted ? status : 429, body: Buffer.from('{}') }
    received.push({ body, status: response.status })
    await time.after(travelMs)
    return { ...response, headers: { get: (name) => headers[name] ?? null } }
  }

  /** Advances the time until `work` is done. */
  async function until<T>(work: Promise<T>): Promise<T> {
    let done = false
    const ended = work.finally(() => {
      done = true
    })
    for (await settled(); !done; await settled()) await time.runUntil(time.clock() + 1000)
    return ended
  }

  return { request, received, until, pacerTime: { now: time.clock, wait: time.after } }
}

interface Run extends BucketOptions {
  requests: number
  workers: number
  /** Number of requests that another client of the organization sends first. */
  takenBefore?: number
}

async function run({ requests, workers, takenBefore = 0, ...options }: Run) {
  const { request, received, until, pacerTime } = createBucketServer(options)
  const recording = createRecording()
  const pacer = createPacer(pacerTime)
  await until(Promise.all(Array.from({ length: takenBefore }, () => request('other'))))
  const start = pacerTime.now()
  const statuses: number[] = []
  let ms = 0
  const indexes = Array(requests).keys()
  const work = async () => {
    for (const index of indexes) {
      const paced = { recording, pacer, endpoint: 'batch' as const }
      const response = await sendRecorded(paced, () => request(String(index)))
      statuses.push(response.status)
      ms = pacerTime.now() - start
    }
  }
  await until(Promise.all(Array.from({ length: workers }, work)))
  const ownRequests = received.filter(({ body }) => body !== 'other')
  return { statuses, recording, waits: pacer.waits(), ms, received: ownRequests }
}

test('requests above the limit wait, and none is denied or an error', async () => {
  const { statuses, recording, waits, ms } = await run({ limit: 600, requests: 900, workers: 16 })
  expect(statuses).toEqual(Array(900).fill(200))
  expect(recording.errors.size).toBe(0)
  expect(recording.durations.batch).toHaveLength(900)
  expect(waits.denied).toBe(0)
  expect(waits.held).toBeGreaterThan(250)
  // 300 units are missing, and 10 are refilled per second.
  expect(ms).toBeGreaterThan(29_000)
  expect(ms).toBeLessThan(33_000)
  expect(waits.waitedMs).toBeGreaterThan(28_000)
  expect(waits.waitedMs).toBeLessThanOrEqual(ms)
})

test('if others have used up the limit, only the first request is denied', async () => {
  const { statuses, recording, waits, ms } = await run({
    limit: 600,
    requests: 100,
    workers: 32,
    takenBefore: 650,
  })
  expect(statuses).toEqual(Array(100).fill(200))
  expect(recording.errors.size).toBe(0)
  expect(waits.denied).toBe(1)
  // The bucket lacks 51 units, and 100 more are needed.
  expect(ms).toBeGreaterThan(14_500)
  expect(ms).toBeLessThan(18_000)
})

test('a denied request is retried with the same bytes, and its latency is not recorded', async () => {
  const { recording, received, waits } = await run({
    limit: 60,
    requests: 20,
    workers: 4,
    takenBefore: 70,
  })
  expect(received.filter(({ status }) => status === 429)).toHaveLength(waits.denied)
  expect(waits.denied).toBeGreaterThan(0)
  for (let i = 0; i < 20; i++) {
    const statusesOfRequest = received
      .filter(({ body }) => body === String(i))
      .map(({ status }) => status)
    expect(statusesOfRequest.filter((status) => status === 200)).toHaveLength(1)
    expect(statusesOfRequest.at(-1)).toBe(200)
  }
  expect(recording.durations.batch).toHaveLength(20)
})

test.each([1, 6, 10])('a limit of %i, below the number of workers, is respected', async (limit) => {
  const { statuses, waits } = await run({ limit, requests: 3 * limit, workers: 16 })
  expect(statuses).toEqual(Array(3 * limit).fill(200))
  expect(waits.denied).toBe(0)
})

test('without a rate limit, no request waits', async () => {
  const { statuses, waits } = await run({ requests: 300, workers: 16 })
  expect(statuses).toEqual(Array(300).fill(200))
  expect(waits).toEqual({ denied: 0, overloaded: 0, held: 0, waitedMs: 0 })
})

test('other failed requests are errors, and are not retried', async () => {
  const { statuses, recording, received } = await run({
    limit: 6000,
    requests: 30,
    workers: 8,
    status: 503,
  })
  expect(statuses).toEqual(Array(30).fill(503))
  expect([...recording.errors]).toEqual([['batch http_503', 30]])
  expect(received).toHaveLength(30)
})

test('a request that is denied 50 times is an error', async () => {
  const { until, pacerTime } = createBucketServer({})
  const recording = createRecording()
  const pacer = createPacer(pacerTime)
  const headers = { get: (name: string) => (name === 'retry-after' ? '1' : null) }
  const sentAt: number[] = []
  const denied = async () => {
    sentAt.push(pacerTime.now())
    return { status: 429, headers, body: Buffer.from('{}') }
  }
  const response = await until(sendRecorded({ recording, pacer, endpoint: 'open' }, denied))
  expect(response.status).toBe(429)
  expect([...recording.errors]).toEqual([['open http_429', 1]])
  expect(sentAt).toEqual(Array.from({ length: 50 }, (_, i) => i * 1000))
  expect(pacer.waits()).toEqual({ denied: 50, overloaded: 0, held: 49, waitedMs: 49_000 })
})

test('requests without a response do not block others', async () => {
  const recording = createRecording()
  const paced = { recording, pacer: createPacer(), endpoint: 'open' as const }
  const lost = () => Promise.reject(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))
  const results = await Promise.allSettled([1, 2, 3].map(() => sendRecorded(paced, lost)))
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect([...recording.errors]).toEqual([['open ECONNRESET', 3]])
})

/** Sends a request that gets these statuses in turn, with a Retry-After of two seconds unless the status is 200. */
async function sendWithStatuses(statuses: number[], retryAfter: string | null = '2') {
  let clock = 0
  const pacer = createPacer({
    now: () => clock,
    wait: async (ms) => {
      clock += ms
    },
  })
  const recording = createRecording()
  const nextStatuses = statuses.values()
  const send = async () => {
    const status = nextStatuses.next().value ?? 200
    const get = (name: string) => (name === 'retry-after' && status !== 200 ? retryAfter : null)
    return { status, body: Buffer.from('{}'), headers: { get } }
  }
  const { status } = await sendRecorded({ recording, pacer, endpoint: 'open' }, send)
  return { status, waits: pacer.waits(), errors: [...recording.errors], ms: clock }
}

test('503 with Retry-After is retried after that time, and is not an error', async () => {
  const { status, waits, errors, ms } = await sendWithStatuses([503, 503, 200])
  expect({ status, errors, ms }).toEqual({ status: 200, errors: [], ms: 4000 })
  expect(waits).toEqual({ denied: 0, overloaded: 2, held: 0, waitedMs: 0 })
})

test('503 without Retry-After is an error', async () => {
  const { status, errors } = await sendWithStatuses([503], null)
  expect({ status, errors }).toEqual({ status: 503, errors: [['open http_503', 1]] })
})
