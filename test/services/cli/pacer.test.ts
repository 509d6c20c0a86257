import { setImmediate as settled } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { HttpResponse } from '../../../services/cli/simulate/http.ts'
import { createPacer } from '../../../services/cli/simulate/pacer.ts'
import { createRecording, sendRecorded } from '../../../services/cli/simulate/recorder.ts'
import { createModel, createVirtualTime } from '../../infra/access/rate-limit/support.ts'

interface BucketOptions {
  /** Units in 60 seconds; undefined = it does not limit. */
  limit?: number | undefined
  /** Status of an admitted request's answer; default 200. */
  status?: number | undefined
}

/** Milliseconds from a client to the server, and back. */
const travelMs = 5

/** A server with one bucket as the interface describes it, where a denied request costs a unit too, in virtual time. */
function createBucketServer({ limit, status = 200 }: BucketOptions) {
  const time = createVirtualTime(0)
  const model = limit === undefined ? undefined : createModel(limit, 0)
  const received: { body: string; status: number }[] = []

  function take(): { admitted: boolean; headers: Record<string, string> } {
    if (!model) return { admitted: true, headers: {} }
    const { admitted, remaining } = model.request(1, time.clock())
    let seconds = 1
    while (!model.wouldAdmit(1, time.clock() + seconds * 1000)) seconds++
    const told = {
      'x-ratelimit-limit': `${limit}`,
      'x-ratelimit-remaining': `${remaining}`,
    }
    return { admitted, headers: admitted ? told : { ...told, 'retry-after': `${seconds}` } }
  }

  async function request(body: string): Promise<HttpResponse> {
    await time.after(travelMs)
    const { admitted, headers } = take()
    const answer = { status: admitted ? status : 429, body: Buffer.from('{}') }
    received.push({ body, status: answer.status })
    await time.after(travelMs)
    return { ...answer, headers: { get: (name) => headers[name] ?? null } }
  }

  /** Lets time pass until `work` is done. */
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
  /** Requests that somebody else sends before, with keys of the same organization. */
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
      const answer = await sendRecorded(paced, () => request(String(index)))
      statuses.push(answer.status)
      ms = pacerTime.now() - start
    }
  }
  await until(Promise.all(Array.from({ length: workers }, work)))
  const own = received.filter(({ body }) => body !== 'other')
  return { statuses, recording, waits: pacer.waits(), ms, received: own }
}

test('requests above the limit wait for the bucket: none is denied, and none is an error', async () => {
  const { statuses, recording, waits, ms } = await run({ limit: 600, requests: 900, workers: 16 })
  expect(statuses).toEqual(Array(900).fill(200))
  expect(recording.errors.size).toBe(0)
  expect(recording.durations.batch).toHaveLength(900)
  expect(waits.denied).toBe(0)
  expect(waits.held).toBeGreaterThan(250)
  // 300 units are missing, and 10 come in a second.
  expect(ms).toBeGreaterThan(29_000)
  expect(ms).toBeLessThan(33_000)
  expect(waits.waitedMs).toBeGreaterThan(28_000)
  expect(waits.waitedMs).toBeLessThanOrEqual(ms)
})

test('a bucket that others have emptied costs one denied request: the first goes alone', async () => {
  const { statuses, recording, waits, ms } = await run({
    limit: 600,
    requests: 100,
    workers: 32,
    takenBefore: 650,
  })
  expect(statuses).toEqual(Array(100).fill(200))
  expect(recording.errors.size).toBe(0)
  expect(waits.denied).toBe(1)
  // 51 units are owed and 100 wanted.
  expect(ms).toBeGreaterThan(14_500)
  expect(ms).toBeLessThan(18_000)
})

test('a denied request is sent again with the same bytes, and what was denied is no latency', async () => {
  const { recording, received, waits } = await run({
    limit: 60,
    requests: 20,
    workers: 4,
    takenBefore: 70,
  })
  expect(received.filter(({ status }) => status === 429)).toHaveLength(waits.denied)
  expect(waits.denied).toBeGreaterThan(0)
  for (let i = 0; i < 20; i++) {
    const mine = received.filter(({ body }) => body === String(i)).map(({ status }) => status)
    expect(mine.filter((status) => status === 200)).toHaveLength(1)
    expect(mine.at(-1)).toBe(200)
  }
  expect(recording.durations.batch).toHaveLength(20)
})

test.each([1, 6, 10])(
  'a limit of %i, smaller than the number of workers, is kept to as well',
  async (limit) => {
    const { statuses, waits } = await run({ limit, requests: 3 * limit, workers: 16 })
    expect(statuses).toEqual(Array(3 * limit).fill(200))
    expect(waits.denied).toBe(0)
  },
)

test('nothing waits where the server does not limit', async () => {
  const { statuses, waits } = await run({ requests: 300, workers: 16 })
  expect(statuses).toEqual(Array(300).fill(200))
  expect(waits).toEqual({ denied: 0, overloaded: 0, held: 0, waitedMs: 0 })
})

test('requests that fail otherwise are errors, and are not sent again', async () => {
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

test('a request that is denied without end is given up, and that is an error', async () => {
  const { until, pacerTime } = createBucketServer({})
  const recording = createRecording()
  const pacer = createPacer(pacerTime)
  const headers = { get: (name: string) => (name === 'retry-after' ? '1' : null) }
  const sentAt: number[] = []
  const denied = async () => {
    sentAt.push(pacerTime.now())
    return { status: 429, headers, body: Buffer.from('{}') }
  }
  const answer = await until(sendRecorded({ recording, pacer, endpoint: 'open' }, denied))
  expect(answer.status).toBe(429)
  expect([...recording.errors]).toEqual([['open http_429', 1]])
  expect(sentAt).toEqual(Array.from({ length: 50 }, (_, i) => i * 1000))
  expect(pacer.waits()).toEqual({ denied: 50, overloaded: 0, held: 49, waitedMs: 49_000 })
})

test('requests whose answers are lost keep nobody waiting', async () => {
  const recording = createRecording()
  const paced = { recording, pacer: createPacer(), endpoint: 'open' as const }
  const lost = () => Promise.reject(Object.assign(new Error('reset'), { code: 'ECONNRESET' }))
  const results = await Promise.allSettled([1, 2, 3].map(() => sendRecorded(paced, lost)))
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect([...recording.errors]).toEqual([['open ECONNRESET', 3]])
})

/** Answers each request with the next status, with a Retry-After of two seconds where it is no 200. */
async function answersOf(statuses: number[], retryAfter: string | null = '2') {
  let clock = 0
  const pacer = createPacer({
    now: () => clock,
    wait: async (ms) => {
      clock += ms
    },
  })
  const recording = createRecording()
  const answers = statuses.values()
  const send = async () => {
    const status = answers.next().value ?? 200
    const get = (name: string) => (name === 'retry-after' && status !== 200 ? retryAfter : null)
    return { status, body: Buffer.from('{}'), headers: { get } }
  }
  const { status } = await sendRecorded({ recording, pacer, endpoint: 'open' }, send)
  return { status, waits: pacer.waits(), errors: [...recording.errors], ms: clock }
}

test('503 with Retry-After: the same request again after that time, and no error', async () => {
  const { status, waits, errors, ms } = await answersOf([503, 503, 200])
  expect({ status, errors, ms }).toEqual({ status: 200, errors: [], ms: 4000 })
  expect(waits).toEqual({ denied: 0, overloaded: 2, held: 0, waitedMs: 0 })
})

test('503 without Retry-After is an error: a proxy may have answered, and nothing says when to come back', async () => {
  const { status, errors } = await answersOf([503], null)
  expect({ status, errors }).toEqual({ status: 503, errors: [['open http_503', 1]] })
})
