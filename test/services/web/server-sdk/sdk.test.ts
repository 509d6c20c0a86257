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
  test('returns the session of a token that is to be trusted, and of others the reason', async () => {
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

  test('counts a token once by the store that the caller has', async () => {
    const stored = new Map<string, number>()
    const seen = async (id: string, ttl: number) => {
      const isThere = stored.has(id)
      stored.set(id, ttl)
      return isThere
    }
    const reasonOf = async (more: object = {}) => {
      const result = await verifyToken(token, { ...options, maxAge: 60, seen, ...more })
      return result.ok ? 'ok' : result.reason
    }
    // A refused token is not used up.
    expect(await reasonOf({ now: options.now + 61_000 })).toBe('expired')
    expect(await reasonOf({ binding: 'form' })).toBe('wrong_binding')
    expect(await reasonOf({ secretKey: 'sk_live_other' })).toBe('unreadable')
    expect([...stored]).toEqual([])
    expect(await reasonOf()).toBe('ok')
    // As long as a clock that is a minute off may take it.
    expect([...stored]).toEqual([[vector.payload.decision.event_id, 120]])
    expect(await reasonOf()).toBe('already_used')
  })

  test('rejects where the store does, and without a secret key', async () => {
    const seen = () => Promise.reject(new Error('the store is down'))
    await expect(verifyToken(token, { ...options, seen })).rejects.toThrow('the store is down')
    await expect(verifyToken(token, { secretKey: '' })).rejects.toThrow('needs a secret key')
  })
})

test('openToken returns what the published vector holds', async () => {
  for (const key of vector.secretKeys)
    expect(await openToken(vector.token, key)).toEqual(vector.payload)
})

test('the type of a session has what the server seals', () => {
  type Sealed = Pick<ReturnType<typeof tokenPayload>, 'decision' | 'request' | 'signals'>
  expectTypeOf<Sealed>().toExtend<Pick<VerifiedSession, keyof Sealed>>()
  expectTypeOf<keyof VerifiedSession>().toExtend<
    keyof ReturnType<typeof tokenPayload> | 'hand_off'
  >()
})

describe('verifyWebhook', () => {
  test('returns the event of a genuine delivery, and rejects others', async () => {
    for (const { name, body, headers, secrets, now, isGenuine } of webhookCases())
      for (const given of [body, new TextEncoder().encode(body)]) {
        const verifying = verifyWebhook(given, headers, secrets, { now })
        if (isGenuine) expect(await verifying, name).toEqual(JSON.parse(body))
        else await expect(verifying, name).rejects.toThrow(WebhookError)
      }
  })

  test('takes what the library of Standard Webhooks signs', async () => {
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

  test('names what the caller did wrong', async () => {
    const [first] = webhookCases()
    const { body, headers, now } = first
    const parsed: string = JSON.parse(body)
    await expect(verifyWebhook(parsed, headers, 'whsec_a')).rejects.toThrow('the raw body')
    for (const secret of ['whsec_%', 'whsec_', ''])
      await expect(verifyWebhook(body, headers, secret, { now })).rejects.toThrow('secret must be')
  })
})

describe('the client', () => {
  interface Answer {
    status: number
    json?: object
    headers?: Record<string, string>
  }

  /** A server that gives these answers one after another, and `last` from then on. */
  async function answering(...answers: Answer[]) {
    const asked: { method?: string; url?: string; key?: string; body: string }[] = []
    const server = await serveLocally(async (request, response) => {
      let body = ''
      for await (const chunk of request) body += chunk
      const { method = '', url = '', headers } = request
      asked.push({ method, url, key: String(headers['idempotency-key']), body })
      const {
        status,
        json = {},
        headers: more,
      } = answers[asked.length - 1] ?? answers.at(-1) ?? { status: 500 }
      response.writeHead(status, { 'content-type': 'application/json', ...more })
      response.end(JSON.stringify(json))
    })
    onTestFinished(() => server.close())
    return { url: server.url, asked }
  }

  const secretKey = 'sk_live_x'
  const at = (url: string) => createClient({ url, secretKey, whenUnavailable: failClosed })
  const soon = { 'retry-after': '0' }

  test('retries what may succeed later, a command under the same key', async () => {
    const { url, asked } = await answering(
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
    expect(asked.map(({ method, url, body }) => [method, url, body])).toEqual(
      Array(4).fill(['POST', '/v1/marks', JSON.stringify(mark)]),
    )
    expect(new Set(asked.map(({ key }) => key)).size).toBe(1)
  })

  test('fails closed or open when all retries are used up, as its option says', async () => {
    const { url, asked } = await answering({ status: 503, headers: soon })
    await expect(at(url).sessions.get('sid_1')).rejects.toThrow(UnavailableError)
    expect(asked).toHaveLength(3)
    const open = createClient({ url, secretKey, whenUnavailable: failOpen, retries: 0 })
    expect(await open.sessions.get('sid_1')).toBeUndefined()
    expect(asked).toHaveLength(4)
    const nobody = createClient({
      url: 'http://127.0.0.1:1',
      secretKey,
      whenUnavailable: (error) => error.message,
      retries: 0,
    })
    expect(await nobody.scoreRequests([])).toContain('cannot be reached')
  })

  test('does not wait where the server asks for more than half a minute', async () => {
    const { url, asked } = await answering({ status: 429, headers: { 'retry-after': '3600' } })
    await expect(at(url).sessions.get('sid_1')).rejects.toThrow(UnavailableError)
    expect(asked).toHaveLength(1)
  })

  test('tells a refusal with its code, and does not repeat the request', async () => {
    const error = { code: 'request.not_found', message: 'No such session.', request_id: 'req_1' }
    const { url, asked } = await answering({ status: 404, json: { error } })
    for (const whenUnavailable of [failClosed, failOpen]) {
      const refused = await createClient({ url, secretKey, whenUnavailable })
        .sessions.get('sid_1')
        .catch((error: unknown) => error)
      expect(refused).toBeInstanceOf(ApiError)
      expect(refused).toMatchObject({
        status: 404,
        code: error.code,
        message: error.message,
        requestId: 'req_1',
      })
    }
    expect(asked).toHaveLength(2)
  })

  test('goes through all pages of a list, and asks for no more than is taken', async () => {
    const { url, asked } = await answering(
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
      if (id === 'a') expect(asked).toHaveLength(1)
    }
    expect(ids).toEqual(['a', 'b', 'c'])
    expect(asked.map(({ url }) => url)).toEqual([
      '/v1/sessions?verdict=bot&verdict=human&country=de',
      '/v1/sessions?verdict=bot&verdict=human&country=de&cursor=c%2F1',
      '/v1/sessions?verdict=bot&verdict=human&country=de&cursor=c%2F2',
    ])
  })

  test('follows no redirect with the key', async () => {
    const { url, asked } = await answering({ status: 307, headers: { location: '/v1/sessions' } })
    await expect(at(url).marks.remove('mrk_1')).rejects.toMatchObject({ status: 307 })
    expect(asked).toHaveLength(1)
  })

  test.each([
    [{ url: 'ftp://a.example' }, 'url must be http'],
    [{ url: 'https://u:p@a.example' }, 'url must be http'],
    [{ url: 'https://a.example/?x=1' }, 'url must be http'],
    [{ secretKey: 'sk_live_x\n' }, 'secretKey must be'],
    [{ timeoutMs: Number.NaN }, 'timeoutMs must be'],
    [{ retries: Number.NaN }, 'retries 0 or more'],
  ])('refuses %j instead of failing open for ever', (wrong, problem) => {
    const options = { url: 'https://a.example', secretKey, whenUnavailable: failOpen }
    expect(() => createClient({ ...options, ...wrong })).toThrow(problem)
  })

  test('refuses a publishable key, and an id that would be another path', async () => {
    const wrong = { url: 'http://127.0.0.1:1', secretKey: 'pk_live_x', whenUnavailable: failOpen }
    expect(() => createClient(wrong)).toThrow('secretKey must be a secret key')
    expect(() => at('http://127.0.0.1:1').sessions.get('../organizations')).toThrow('not an id')
  })
})
