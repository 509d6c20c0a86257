import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ApiError, unavailable } from '../../../infra/errors/errors.ts'
import type { NewRecord } from '../../../infra/log/port.ts'
import type { CollectClientOptions } from '../../../infra/wire/collect/client.ts'
import { createMemoryLog } from '../../support/memory-log.ts'
import {
  type CollectApp,
  clientOf,
  lastSent,
  quiet,
  sendAgain,
  startCollectApp,
} from './collect-app.ts'

let app: CollectApp
afterEach(() => app.close())

/** Creates a client with an open session, on an app with these changes. */
async function openClient(
  changes: Parameters<typeof startCollectApp>[0] = {},
  options: Partial<CollectClientOptions> = {},
) {
  app = await startCollectApp(changes)
  const client = clientOf(app, app.publishable(), options)
  await client.open()
  return client
}

describe('while the log is down', () => {
  const down = { status: 503, code: 'service.unavailable', retryable: true }

  test('nothing is acknowledged: 503 with Retry-After', async () => {
    const client = await openClient()
    app.log.setDown(true)
    await expect(client.sendBatch(quiet)).rejects.toMatchObject(down)
    await expect(clientOf(app, app.publishable()).open()).rejects.toMatchObject(down)
    await expect(client.requestResult(quiet)).rejects.toMatchObject(down)
    const refused = app.sent.slice(1).map(({ response }) => response)
    expect(refused.length).toBeGreaterThan(3)
    for (const response of refused)
      expect(response).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
  })

  test('a failed batch is accepted once the log is back, and no observation is lost', async () => {
    const client = await openClient({}, { retry: { attempts: 1 } })
    app.log.setDown(true)
    for (const elapsed_ms of [1, 2])
      await expect(client.sendBatch({ ...quiet, elapsed_ms })).rejects.toMatchObject(down)
    app.log.setDown(false)
    expect((await client.sendBatch({ ...quiet, elapsed_ms: 3 })).seq).toBe(2)
    expect(app.eventsOf('BatchReceived')).toHaveLength(2)
  })

  test('the client retries with the same bytes after Retry-After', async () => {
    const waits: number[] = []
    const wait = async (ms: number) => {
      waits.push(ms)
      app.log.setDown(waits.length < 2)
    }
    const client = await openClient({}, { retry: { attempts: 4, wait } })
    app.log.setDown(true)
    expect((await client.sendBatch(quiet)).seq).toBe(1)
    expect(waits).toEqual([1000, 1000])
    const tries = app.sent.filter(({ url }) => url.endsWith('/batches'))
    expect(new Set(tries.map(({ payload }) => String(payload))).size).toBe(1)
  })
})

test('a batch whose response was lost is sent again and stored once', async () => {
  let lost = 0
  const client = await openClient(
    {},
    {
      fetch: async (url, request) => {
        const response = await app.fetch(url, request)
        if (url.endsWith('/batches') && lost++ < 2) throw new TypeError('connection reset')
        return response
      },
    },
  )
  expect((await client.sendBatch(quiet)).fingerprint?.ready).toBe(true)
  expect(app.eventsOf('BatchReceived')).toHaveLength(1)
})

test('repeated bytes wait for the append of the first request', async () => {
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
  const client = await openClient({ log: { append } })
  const first = client.sendBatch(quiet)
  await expect.poll(() => appends).toBe(1)
  const sent = lastSent(app, 'batches')
  const repeats = [sendAgain(app, sent), sendAgain(app, sent)]
  gate.resolve()
  await first
  const response = { status: 200, json: sent.response?.json }
  expect(await Promise.all(repeats)).toMatchObject([response, response])
  expect(appends).toBe(1)
})

test('a result whose decision was late is returned on retry, without a second request event', async () => {
  let calls = 0
  const client = await openClient({
    sealResult: async ({ decisionId }) => {
      if (calls++ === 0) throw unavailable(new Error('late'))
      return `sealed:${decisionId}`
    },
  })
  expect((await client.requestResult(quiet)).sealedToken).toMatch(/^sealed:evt_/)
  expect(calls).toBe(2)
  expect(app.eventsOf('ResultRequested')).toHaveLength(1)
})

test('a result that no secret key could open is rejected before it is stored, and its nonce stays valid', async () => {
  let keys = 0
  const client = await openClient({
    requireRecipients: async () => {
      if (keys === 0) throw new ApiError('request.conflict')
    },
  })
  await client.sendBatch(quiet)
  const refusal = { status: 409, code: 'request.conflict', nextAction: undefined }
  await expect(client.requestResult(quiet)).rejects.toMatchObject(refusal)
  expect((await client.sendBatch(quiet)).seq).toBe(2)
  await expect(client.requestResult(quiet)).rejects.toMatchObject(refusal)
  expect(app.eventsOf('ResultRequested')).toEqual([])
  keys = 1
  expect((await client.requestResult(quiet)).sealedToken).toMatch(/^sealed:/)
  expect(app.eventsOf('ResultRequested')).toMatchObject([{ seq: 3 }])
})

test('the client reports forged responses', async () => {
  const client = await openClient(
    {},
    {
      fetch: async (url, request) => {
        const response = await app.fetch(url, request)
        const forged = url.endsWith('/results') && { sealedToken: 'forged' }
        return {
          ...response,
          json: async () => ({ ...((await response.json()) as object), ...forged }),
        }
      },
    },
  )
  await client.sendBatch(quiet)
  await expect(client.requestResult(quiet)).rejects.toMatchObject({ code: 'client.bad_response' })
})

describe('an error response of a proxy', () => {
  const page = (status: number, retryAfter: string | null = null) => ({
    status,
    headers: { get: (name: string) => (name === 'retry-after' ? retryAfter : null) },
    json: async (): Promise<unknown> => JSON.parse('<html>'),
  })
  let waits: number[]
  beforeEach(() => {
    waits = []
  })

  /** Creates a client whose first bodies get these responses. */
  function clientBehindProxy(...responses: ReturnType<typeof page>[]) {
    const fetch: CollectClientOptions['fetch'] = async (url, request) =>
      (url.endsWith('/batches') && responses.shift()) || app.fetch(url, request)
    return openClient(
      {},
      { fetch, retry: { attempts: 3, wait: async (ms) => void waits.push(ms) } },
    )
  }

  test.each([400, 403, 413, 414, 431])('with %i rejects that body only', async (status) => {
    const client = await clientBehindProxy(page(status))
    const refusal = { status, code: 'client.bad_response', retryable: false }
    await expect(client.sendBatch(quiet)).rejects.toMatchObject(refusal)
    expect((await client.sendBatch(quiet)).seq).toBe(1)
  })

  // 200 with the proxy's own page: the body was not forwarded.
  test.each([200, 408, 429, 502, 504])('with %i is retried', async (status) => {
    const client = await clientBehindProxy(page(status), page(status))
    expect((await client.sendBatch(quiet)).seq).toBe(1)
  })

  test.each([
    ['86400', 60_000],
    ['-5', 0],
    ['Wed, 21 Oct 2026 07:28:00 GMT', 250],
  ])('with Retry-After: %s is retried after %i ms', async (after, ms) => {
    await (await clientBehindProxy(page(503, after))).sendBatch(quiet)
    expect(waits).toEqual([ms])
  })
})
