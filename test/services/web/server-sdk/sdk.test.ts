import { randomBytes } from 'node:crypto'
import { Webhook } from 'standardwebhooks'
import { describe, expect, expectTypeOf, onTestFinished, test } from 'vitest'
import { generateSigningSecret } from '../../../../infra/wire/webhooks/signature.ts'
import type { tokenPayload } from '../../../../services/collect/hand-off.ts'
import {
  ApiError,
  createClient,
  failClosed,
  failOpen,
  openToken,
  UnavailableError,
  type VerifiedSession,
  verifyToken,
  verifyWebhook,
  WebhookError,
} from '../../../../services/web/server-sdk/index.ts'
import vector from '../../../fixtures/sealed-token/vector.v2.json' with { type: 'json' }
import { serveLocally } from '../../../support/local-server.ts'
import { tokenCases, webhookCases } from './cases.ts'

describe('verifyToken', () => {
  test('returns the session of a valid token, and the reason for an invalid one', async () => {
    for (const { name, token, expected, binding, ...rest } of tokenCases()) {
      const options = { ...rest, ...(binding !== undefined && { binding: binding ?? undefined }) }
      const result = await verifyToken(token, options)
      expect(result.ok ? result.session.decision.event_id : result.reason, name).toBe(expected)
    }
  })

  const token = vector.token
  const options = {
    secretKey: vector.secretKeys[0] ?? '',
    now: Date.parse(vector.payload.decision.evaluated_at),
  }

  test('accepts a token only once if the caller passes a store', async () => {
    const stored = new Map<string, number>()
    const seen = async (id: string, ttl: number) => {
      const isStored = stored.has(id)
      stored.set(id, ttl)
      return isStored
    }
    const reasonOf = async (more: object = {}) => {
      const result = await verifyToken(token, { ...options, maxAge: 60, seen, ...more })
      return result.ok ? 'ok' : result.reason
    }
    // An invalid token is not stored.
    expect(await reasonOf({ now: options.now + 61_000 })).toBe('expired')
    expect(await reasonOf({ binding: 'form' })).toBe('wrong_binding')
    expect(await reasonOf({ secretKey: 'sk_live_other' })).toBe('unreadable')
    expect([...stored]).toEqual([])
    expect(await reasonOf()).toBe('ok')
    // Twice maxAge: a process whose clock is behind by maxAge may accept the token that long.
    expect([...stored]).toEqual([[vector.payload.decision.event_id, 120]])
    expect(await reasonOf()).toBe('already_used')
  })

  test('rejects if the store does, and without a secret key', async () => {
    const seen = () => Promise.reject(new Error('the store is down'))
    await expect(verifyToken(token, { ...options, seen })).rejects.toThrow('the store is down')
    await expect(verifyToken(token, { secretKey: '' })).rejects.toThrow('needs a secret key')
  })
})

test('openToken returns the payload of the published test vector', async () => {
  for (const key of vector.secretKeys)
    expect(await openToken(vector.token, key)).toEqual(vector.payload)
})

test('the type VerifiedSession matches the payload that the server seals', () => {
  type Sealed = Pick<ReturnType<typeof tokenPayload>, 'decision' | 'request' | 'signals'>
  expectTypeOf<Sealed>().toExtend<Pick<VerifiedSession, keyof Sealed>>()
  expectTypeOf<keyof VerifiedSession>().toExtend<
    keyof ReturnType<typeof tokenPayload> | 'hand_off'
  >()
})

describe('verifyWebhook', () => {
  test('returns the event of a genuine delivery, and rejects for others', async () => {
    for (const { name, body, headers, secrets, now, isGenuine } of webhookCases())
      for (const rawBody of [body, new TextEncoder().encode(body)]) {
        const verifying = verifyWebhook(rawBody, headers, secrets, { now })
        if (isGenuine) expect(await verifying, name).toEqual(JSON.parse(body))
        else await expect(verifying, name).rejects.toThrow(WebhookError)
      }
  })

  test('accepts a signature of the Standard Webhooks library', async () => {
    const secret = generateSigningSecret(randomBytes)
    const body = '{"type":"webhook.test"}'
    const at = new Date()
    const headers = new Headers({
      'webhook-id': 'msg_1',
      'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
      'webhook-signature': new Webhook(secret).sign('msg_1', at, body),
    })
    expect(await verifyWebhook(body, headers, secret)).toEqual({ type: 'webhook.test' })
  })

  test('rejects with the mistake of the caller', async () => {
    const [first] = webhookCases()
    const { body, headers, now } = first
    const parsed: string = JSON.parse(body)
    await expect(verifyWebhook(parsed, headers, 'whsec_a')).rejects.toThrow('the raw body')
    for (const secret of ['whsec_%', 'whsec_', ''])
      await expect(verifyWebhook(body, headers, secret, { now })).rejects.toThrow('secret must be')
  })
})

describe('the client', () => {
  interface StubResponse {
    status: number
    json?: object
    headers?: Record<string, string>
  }

  /** Starts a server that sends these responses in turn, and then repeats the last one. */
  async function serveResponses(...responses: StubResponse[]) {
    const requests: { method?: string; url?: string; key?: string; body: string }[] = []
    const server = await serveLocally(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      const { method = '', url = '', headers } = request
      requests.push({ method, url, key: String(headers['idempotency-key']), body })
      const {
        status,
        json = {},
        headers: more,
      } = responses[requests.length - 1] ?? responses.at(-1) ?? { status: 500 }
      response.writeHead(status, { 'content-type': 'application/json', ...more })
      response.end(JSON.stringify(json))
    })
    onTestFinished(() => server.close())
    return { url: server.url, requests }
  }

  const secretKey = 'sk_live_x'
  const at = (url: string) => createClient({ url, secretKey, whenUnavailable: failClosed })
  const soon = { 'retry-after': '0' }

  test('retries errors that may be temporary, with the same idempotency key', async () => {
    const { url, requests } = await serveResponses(
      // A proxy's error.
      { status: 503, headers: soon, json: { error: 'Bad gateway' } },
      { status: 429, headers: soon },
      {
        status: 409,
        headers: soon,
        json: { error: { code: 'request.conflict', retryable: true } },
      },
      { status: 201, json: { data: { id: 'mrk_1' } } },
    )
    const mark = { label: 'bot' as const, session_ids: ['sid_1'] }
    const client = createClient({ url, secretKey, whenUnavailable: failClosed, retries: 3 })
    expect(await client.marks.create(mark)).toEqual({ id: 'mrk_1' })
    expect(requests.map(({ method, url, body }) => [method, url, body])).toEqual(
      Array(4).fill(['POST', '/v1/marks', JSON.stringify(mark)]),
    )
    expect(new Set(requests.map(({ key }) => key)).size).toBe(1)
  })

  test('calls whenUnavailable after the last retry', async () => {
    const { url, requests } = await serveResponses({ status: 503, headers: soon })
    await expect(at(url).sessions.get('sid_1')).rejects.toThrow(UnavailableError)
    expect(requests).toHaveLength(3)
    const open = createClient({ url, secretKey, whenUnavailable: failOpen, retries: 0 })
    expect(await open.sessions.get('sid_1')).toBeUndefined()
    expect(requests).toHaveLength(4)
    const unreachable = createClient({
      url: 'http://127.0.0.1:1',
      secretKey,
      whenUnavailable: (error) => error.message,
      retries: 0,
    })
    expect(await unreachable.scoreRequests([])).toContain('cannot be reached')
  })

  test('does not wait for a Retry-After of more than 30 seconds', async () => {
    const { url, requests } = await serveResponses({
      status: 429,
      headers: { 'retry-after': '3600' },
    })
    await expect(at(url).sessions.get('sid_1')).rejects.toThrow(UnavailableError)
    expect(requests).toHaveLength(1)
  })

  test('rejects with the error code of a 4xx response, without a retry', async () => {
    const error = { code: 'request.not_found', message: 'No such session.', request_id: 'req_1' }
    const { url, requests } = await serveResponses({ status: 404, json: { error } })
    for (const whenUnavailable of [failClosed, failOpen]) {
      const thrown = await createClient({ url, secretKey, whenUnavailable })
        .sessions.get('sid_1')
        .catch((error: unknown) => error)
      expect(thrown).toBeInstanceOf(ApiError)
      expect(thrown).toMatchObject({
        status: 404,
        code: error.code,
        message: error.message,
        requestId: 'req_1',
      })
    }
    expect(requests).toHaveLength(2)
  })

  test('iterates over all pages of a list, and fetches each only when needed', async () => {
    const { url, requests } = await serveResponses(
      {
        status: 200,
        json: { data: [{ id: 'a' }, { id: 'b' }], pagination: { next_cursor: 'c/1' } },
      },
      { status: 200, json: { data: [], pagination: { next_cursor: 'c/2' } } },
      { status: 200, json: { data: [{ id: 'c' }], pagination: {} } },
    )
    const ids: string[] = []
    for await (const { id } of at(`${url}/`).sessions.list({
      verdict: ['bot', 'human'],
      country: 'de',
    })) {
      ids.push(id)
      if (id === 'a') expect(requests).toHaveLength(1)
    }
    expect(ids).toEqual(['a', 'b', 'c'])
    expect(requests.map(({ url }) => url)).toEqual([
      '/v1/sessions?verdict=bot&verdict=human&country=de',
      '/v1/sessions?verdict=bot&verdict=human&country=de&cursor=c%2F1',
      '/v1/sessions?verdict=bot&verdict=human&country=de&cursor=c%2F2',
    ])
  })

  test('does not follow redirects, which would send the key elsewhere', async () => {
    const { url, requests } = await serveResponses({
      status: 307,
      headers: { location: '/v1/sessions' },
    })
    await expect(at(url).marks.remove('mrk_1')).rejects.toMatchObject({ status: 307 })
    expect(requests).toHaveLength(1)
  })

  test.each([
    [{ url: 'ftp://a.example' }, 'url must be http'],
    [{ url: 'https://u:p@a.example' }, 'url must be http'],
    [{ url: 'https://a.example/?x=1' }, 'url must be http'],
    [{ secretKey: 'sk_live_x\n' }, 'secretKey must be'],
    [{ timeoutMs: Number.NaN }, 'timeoutMs must be'],
    [{ retries: Number.NaN }, 'retries 0 or more'],
  ])('throws for %j instead of always failing open', (wrong, problem) => {
    const options = { url: 'https://a.example', secretKey, whenUnavailable: failOpen }
    expect(() => createClient({ ...options, ...wrong })).toThrow(problem)
  })

  test('throws for a publishable key, and for an id that would change the path', async () => {
    const wrong = { url: 'http://127.0.0.1:1', secretKey: 'pk_live_x', whenUnavailable: failOpen }
    expect(() => createClient(wrong)).toThrow('secretKey must be a secret key')
    expect(() => at('http://127.0.0.1:1').sessions.get('../organizations')).toThrow('not an id')
  })
})
