import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ApiError, unavailable } from '../../../infra/errors/errors.ts'
import type { NewRecord } from '../../../infra/log/port.ts'
import { createMemoryLog } from '../../support/memory-log.ts'
import {
  type CollectApp,
  clientOf,
  codec,
  lastSent,
  quiet,
  sendAgain,
  startCollectApp,
} from './collect-app.ts'

let app: CollectApp
afterEach(() => app.close())

describe('while the log is down', () => {
  let key: string
  beforeEach(async () => {
    app = await startCollectApp()
    key = app.publishable()
  })

  const down = { status: 503, code: 'service.unavailable', retryable: true }

  test('nothing is acknowledged: 503 with Retry-After', async () => {
    const client = clientOf(app, key)
    await client.open()
    app.log.setDown(true)
    await expect(client.sendBatch(quiet)).rejects.toMatchObject(down)
    await expect(clientOf(app, key).open()).rejects.toMatchObject(down)
    await expect(client.requestResult(quiet)).rejects.toMatchObject(down)
    const answers = app.exchanges.map(({ answer }) => answer).filter(({ status }) => status === 503)
    expect(answers.length).toBeGreaterThan(3)
    for (const { headers } of answers) expect(headers['retry-after']).toBe('1')
  })

  test('a batch that failed is taken when the log is back, and no observation is lost', async () => {
    const client = clientOf(app, key, { retry: { attempts: 1 } })
    await client.open()
    app.log.setDown(true)
    await expect(client.sendBatch({ ...quiet, elapsed_ms: 1 })).rejects.toMatchObject(down)
    await expect(client.sendBatch({ ...quiet, elapsed_ms: 2 })).rejects.toMatchObject(down)
    app.log.setDown(false)
    expect((await client.sendBatch({ ...quiet, elapsed_ms: 3 })).seq).toBe(2)
    expect(app.events().map(({ type }) => type)).toEqual([
      'SessionOpened',
      'DocumentOpened',
      'BatchReceived',
      'BatchReceived',
    ])
  })

  test('the client tries again with the same bytes after Retry-After', async () => {
    const waits: number[] = []
    const wait = async (ms: number) => {
      waits.push(ms)
      app.log.setDown(waits.length < 2)
    }
    const client = clientOf(app, key, { retry: { attempts: 4, wait } })
    await client.open()
    app.log.setDown(true)
    expect((await client.sendBatch(quiet)).seq).toBe(1)
    expect(waits).toEqual([1000, 1000])
    const tries = app.exchanges.filter(({ url }) => url.endsWith('/batches'))
    expect(new Set(tries.map(({ payload }) => String(payload))).size).toBe(1)
  })
})

test('a lost answer is asked for again and the batch is stored once', async () => {
  app = await startCollectApp()
  let lost = 0
  const client = clientOf(app, app.publishable(), {
    fetch: async (url, request) => {
      const response = await app.fetch(url, request)
      if (url.endsWith('/batches') && lost++ < 2) throw new TypeError('connection reset')
      return response
    },
  })
  await client.open()
  expect((await client.sendBatch(quiet)).fingerprint?.ready).toBe(true)
  expect(app.events().filter(({ type }) => type === 'BatchReceived')).toHaveLength(1)
})

test('the same bytes again while the first are being stored wait for the one append', async () => {
  const memory = createMemoryLog()
  const gate = Promise.withResolvers<void>()
  let appends = 0
  const append = async (records: NewRecord[]) => {
    if (records.some(({ headers }) => headers.event_type === 'BatchReceived')) {
      appends++
      await gate.promise
    }
    return memory.append(records)
  }
  app = await startCollectApp({ log: { append } })
  const client = clientOf(app, app.publishable())
  await client.open()
  const first = client.sendBatch(quiet)
  await expect.poll(() => appends).toBe(1)
  const opened = memory.records.map((record) => codec.fromRecord(record))
  expect(opened.map(({ type }) => type)).toEqual(['SessionOpened', 'DocumentOpened'])
  const inFlight = app.inFlight('batches')
  const repeats = [sendAgain(app, inFlight), sendAgain(app, inFlight)]
  gate.resolve()
  await first
  for (const { status, json } of await Promise.all(repeats)) {
    expect([status, json]).toEqual([200, lastSent(app, 'batches').answer.json])
  }
  expect(appends).toBe(1)
})

test('a result whose decision came too late is answered on the next try without a second request for it', async () => {
  let calls = 0
  app = await startCollectApp({
    sealResult: async ({ decisionId }) => {
      if (calls++ === 0) throw unavailable(new Error('late'))
      return `sealed:${decisionId}`
    },
  })
  const client = clientOf(app, app.publishable())
  await client.open()
  expect((await client.requestResult(quiet)).sealedToken).toMatch(/^sealed:evt_/)
  expect(calls).toBe(2)
  expect(app.events().filter(({ type }) => type === 'ResultRequested')).toHaveLength(1)
})

test('a result that no secret key could open is refused before it is stored, and its nonce is good for more', async () => {
  let keys = 0
  app = await startCollectApp({
    checkRecipients: async () => {
      if (keys === 0) throw new ApiError('request.conflict')
    },
  })
  const client = clientOf(app, app.publishable())
  await client.open()
  await client.sendBatch(quiet)
  const refusal = { status: 409, code: 'request.conflict', nextAction: undefined }
  await expect(client.requestResult(quiet)).rejects.toMatchObject(refusal)
  expect((await client.sendBatch(quiet)).seq).toBe(2)
  await expect(client.requestResult(quiet)).rejects.toMatchObject(refusal)
  expect(app.events().filter(({ type }) => type === 'ResultRequested')).toEqual([])
  keys = 1
  expect((await client.requestResult(quiet)).sealedToken).toMatch(/^sealed:/)
  expect(app.events().at(-1)).toMatchObject({ type: 'ResultRequested', data: { seq: 3 } })
})

test('a client that is lied to says so', async () => {
  app = await startCollectApp()
  const client = clientOf(app, app.publishable(), {
    fetch: async (url, request) => {
      const response = await app.fetch(url, request)
      const forge = (body: object) =>
        url.endsWith('/results') ? { ...body, sealedToken: 'forged' } : body
      return { ...response, json: async () => forge((await response.json()) as object) }
    },
  })
  await client.open()
  await client.sendBatch(quiet)
  await expect(client.requestResult(quiet)).rejects.toMatchObject({ code: 'client.bad_response' })
})

describe('a proxy that answers in its own words', () => {
  const page = (status: number, headers: Record<string, string> = {}) => ({
    status,
    headers: { get: (name: string) => headers[name] ?? null },
    json: async (): Promise<unknown> => JSON.parse('<html>'),
  })

  /** A client whose bodies get these answers first. */
  async function behind(answers: ReturnType<typeof page>[], waits: number[] = []) {
    app = await startCollectApp()
    const left = [...answers]
    const client = clientOf(app, app.publishable(), {
      fetch: async (url, request) =>
        (url.endsWith('/batches') && left.shift()) || app.fetch(url, request),
      retry: { attempts: 3, wait: async (ms) => void waits.push(ms) },
    })
    await client.open()
    return client
  }

  test.each([400, 403, 413, 414, 431])(
    'with %i refuses that body and no later one',
    async (status) => {
      const client = await behind([page(status)])
      const refusal = { status, code: 'client.bad_response', retryable: false }
      await expect(client.sendBatch(quiet)).rejects.toMatchObject(refusal)
      expect((await client.sendBatch(quiet)).seq).toBe(1)
    },
  )

  test.each([408, 429, 502, 504])('with %i is asked again', async (status) => {
    const client = await behind([page(status), page(status)])
    expect((await client.sendBatch(quiet)).seq).toBe(1)
  })

  test('with 200 and a page of its own has not passed the body on', async () => {
    const client = await behind([page(200)])
    expect((await client.sendBatch(quiet)).seq).toBe(1)
  })

  test('is waited for a minute at most', async () => {
    const waits: number[] = []
    const after = ['86400', '-5', 'Wed, 21 Oct 2026 07:28:00 GMT']
    const client = await behind(
      after.slice(0, 2).map((value) => page(503, { 'retry-after': value })),
      waits,
    )
    await client.sendBatch(quiet)
    expect(waits).toEqual([60_000, 0])
    await app.close()
    const other = await behind([page(503, { 'retry-after': after[2] ?? '' })], waits)
    await other.sendBatch(quiet)
    expect(waits.at(-1)).toBe(250)
  })
})
