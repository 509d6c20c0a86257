import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import type { PostOptions, RequestOutcome } from '../../../../infra/safe-http/client.ts'
import {
  generateSigningSecret,
  sealSigningSecret,
  verifySignature,
} from '../../../../infra/wire/webhooks/signature.ts'
import type { EndpointRow, WebhookEventRow } from '../../../../projections/webhooks/tables.ts'
import {
  createSigningSecrets,
  makeAttempt,
} from '../../../../services/webhooks/deliveries/attempt.ts'
import {
  attemptedEvent,
  type FinishedAttempt,
  truncateUtf8,
} from '../../../../services/webhooks/deliveries/decide.ts'
import { endpointId, endpoint as shop } from '../endpoints/fixtures.ts'

const now = Date.UTC(2026, 10, 21, 12)
const keyring = createKeyring(randomBytes(32).toString('base64'))
const secret = { old: generateSigningSecret(randomBytes), new: generateSigningSecret(randomBytes) }
const sealed = (name: keyof typeof secret, expires_at: number | null = null) => ({
  sealed: sealSigningSecret({ keyring, random: randomBytes, secret: secret[name], endpointId }),
  created_at: 0,
  expires_at,
})

const event: WebhookEventRow = {
  id: 'evt_00000000000000000000000001',
  organization_id: shop.organization_id,
  environment: 'live',
  type: 'session.result.persisted',
  subject_type: 'session',
  subject_id: 'sid_1',
  data: '{"n":1.0,"text":"\\u00fc"}',
  created_at: now - 5000,
}

const endpointWith = (...secrets: EndpointRow['secrets']): EndpointRow => ({ ...shop, secrets })

const answered = (body: Uint8Array | string = 'ok', status = 200): RequestOutcome => ({
  kind: 'response',
  status,
  retryAfter: undefined,
  body: Buffer.from(body),
  durationMs: 12.6,
})

/** Returns the request to the endpoint, and a function that verifies it with a secret. */
async function sent(endpoint: EndpointRow) {
  const posts: PostOptions[] = []
  const post = async (options: PostOptions) => {
    posts.push(options)
    return answered()
  }
  const secrets = createSigningSecrets(keyring)
  await makeAttempt({ client: { post }, secrets, clock: () => now }, { event, endpoint })
  const [only] = posts
  if (!only) throw new Error('nothing was sent')
  const { headers, body } = only
  const names = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])
  const lowerCase: Record<string, string> = Object.fromEntries(names)
  return {
    ...only,
    verifies: (known: string, header: RegExp) => {
      const some = Object.fromEntries(
        Object.entries(lowerCase).filter(([name]) => header.test(name)),
      )
      return verifySignature({ headers: some, body, secrets: [known], now }).valid
    },
  }
}

test('the request has the event as it is stored, its id, and both signatures', async () => {
  const { url, headers, body, verifies } = await sent(endpointWith(sealed('new')))
  expect(url).toBe(shop.url)
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'user-agent': 'Tidegate-Webhooks/1',
    'Idempotency-Key': event.id,
    'webhook-id': event.id,
    'webhook-timestamp': String(now / 1000),
    'X-Foil-Timestamp': String(now / 1000),
  })
  expect(body).toBe(
    `{"id":"${event.id}","object":"webhook_event","type":"session.result.persisted","created":"2026-11-21T11:59:55.000Z","data":${event.data}}`,
  )
  expect([verifies(secret.new, /^webhook/), verifies(secret.new, /^x-foil/)]).toEqual([true, true])
})

test.each([
  [
    'verifies with both secrets while both are active, and with the new one in both headers',
    1,
    true,
  ],
  ['does not verify with the old secret once it has expired', 0, false],
])('the request %s', async (_, oldEndsIn, verifiesOld) => {
  const { verifies } = await sent(endpointWith(sealed('new'), sealed('old', now + oldEndsIn)))
  expect([verifies(secret.new, /^webhook/), verifies(secret.new, /^x-foil/)]).toEqual([true, true])
  expect([verifies(secret.old, /^webhook/), verifies(secret.old, /^x-foil/)]).toEqual([
    verifiesOld,
    false,
  ])
})

describe('the recorded attempt', () => {
  const about = (outcome: RequestOutcome, some: Partial<FinishedAttempt> = {}) =>
    attemptedEvent({
      event,
      endpoint: shop,
      deliveryId: 'wdlv_0',
      number: 3,
      attemptedAt: now,
      outcome,
      result: 'retrying',
      nextAttemptAt: now + 5000,
      ...some,
    })

  test('has status and body of the response', () => {
    expect(about(answered('no', 503)).event.data).toMatchObject({
      delivery_id: 'wdlv_0',
      attempt: 3,
      attempted_at: now,
      duration_ms: 13,
      outcome: 'retrying',
      response_status: 503,
      response_body: 'no',
      error: 'The receiver responded with 503.',
      next_attempt_at: now + 5000,
    })
  })

  test('has the error if there was no response, and no next attempt after a success', () => {
    const failure = { kind: 'failure', reason: 'dns', message: 'No host.', durationMs: 1 } as const
    const nothing = { response_status: null, response_body: null, error: 'No host.' }
    expect(about(failure).event.data).toMatchObject(nothing)
    const success = about(answered(), { result: 'succeeded', nextAttemptAt: null })
    expect(success.event.data).toMatchObject({ error: null, next_attempt_at: null })
  })

  test('has at most 4,096 bytes of the body, and none of the response to an approval', () => {
    const response_body = 'x'.repeat(4095)
    const long = answered(`${response_body}€ and so on`)
    expect(about(long).event.data).toMatchObject({ response_body })
    const approval = { ...event, type: 'gate.session.approved' } as const
    expect(about(long, { event: approval }).event.data).toMatchObject({ response_body: null })
  })

  test('has an event id that is the same for a repeat and differs for another attempt', () => {
    const id = (some?: Partial<FinishedAttempt>) => about(answered(), some).meta.eventId
    expect(id()).toBe(id())
    expect(new Set([id(), id({ number: 4 }), id({ attemptedAt: now + 1 })]).size).toBe(3)
  })
})

test.each<[string, Uint8Array, number, string]>([
  ['a whole character', Buffer.from('a€b'), 4, 'a€'],
  ['half a character of three bytes', Buffer.from('a€b'), 3, 'a'],
  ['half a character of four bytes', Buffer.from('a😀'), 4, 'a'],
  ['text within the limit', Buffer.from('abc'), 3, 'abc'],
  ['a byte order mark', Buffer.from('\uFEFFa'), 9, '\uFEFFa'],
  ['U+0000', Buffer.from([0x61, 0, 0x62]), 10, 'a\uFFFDb'],
  ['a byte that is not UTF-8', Buffer.from([0xff, 0x61]), 10, '\uFFFDa'],
  ['many bytes that are not UTF-8', Buffer.alloc(9, 0xff), 8, '\uFFFD\uFFFD'],
])('stored text of %s', (_, bytes, max, text) => {
  expect(truncateUtf8(bytes, max)).toBe(text)
})

test('stored text is valid, within the limit, and starts like the bytes', () => {
  const max = fc.integer({ min: 4, max: 50 })
  const anyBytes = fc.property(fc.uint8Array({ maxLength: 60 }), max, (bytes, most) => {
    const text = truncateUtf8(bytes, most)
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(most)
    expect(text).not.toContain('\0')
    expect(text.isWellFormed()).toBe(true)
  })
  const anyText = fc.property(fc.string({ unit: 'binary', maxLength: 40 }), max, (whole, most) => {
    const text = truncateUtf8(Buffer.from(whole), most)
    expect(whole.replaceAll('\0', '\uFFFD').startsWith(text)).toBe(true)
  })
  fc.assert(anyBytes)
  fc.assert(anyText)
})
