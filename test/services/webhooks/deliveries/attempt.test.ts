import { randomBytes } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createKeyring } from '../../../../infra/crypto/keyring.ts'
import type { PostOptions, PostOutcome } from '../../../../infra/safe-http/client.ts'
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
  cutText,
  type MadeAttempt,
} from '../../../../services/webhooks/deliveries/decide.ts'

const now = Date.UTC(2026, 10, 21, 12)
const keyring = createKeyring(randomBytes(32).toString('base64'))
const endpointId = 'we_0123456789abcdef0123456789abcdef'
const secret = { old: generateSigningSecret(randomBytes), new: generateSigningSecret(randomBytes) }
const seal = (text: string) =>
  sealSigningSecret({ keyring, random: randomBytes, secret: text, endpointId })

const event: WebhookEventRow = {
  id: 'evt_00000000000000000000000001',
  organization_id: 'org_00000000000000000000000001',
  environment: 'live',
  type: 'session.result.persisted',
  subject_type: 'session',
  subject_id: 'sid_1',
  data: '{"n":1.0,"text":"\\u00fc"}',
  created_at: now - 5000,
}

function endpoint(some: Partial<EndpointRow> = {}): EndpointRow {
  return {
    id: endpointId,
    organization_id: event.organization_id,
    environment: 'live',
    name: 'Hooks',
    url: 'https://hooks.example/in?x=1',
    event_types: ['session.result.persisted'],
    status: 'active',
    disabled_reason: null,
    flagged_reason: null,
    secrets: [{ sealed: seal(secret.new), created_at: 0, expires_at: null }],
    created_at: 0,
    updated_at: 0,
    target_since: 0,
    ...some,
  }
}

async function sent(target: EndpointRow): Promise<PostOptions> {
  const posts: PostOptions[] = []
  const post = async (options: PostOptions) => {
    posts.push(options)
    return answered()
  }
  await makeAttempt(
    { client: { post }, secrets: createSigningSecrets(keyring), clock: () => now },
    { event, endpoint: target },
  )
  const [only] = posts
  if (!only) throw new Error('nothing was sent')
  return only
}

function answered(body: Uint8Array = Buffer.from('ok'), status = 200): PostOutcome {
  return {
    kind: 'response',
    status,
    retryAfter: undefined,
    body: Buffer.from(body),
    durationMs: 12.6,
  }
}

describe('the request', () => {
  test('carries the event as it is stored, its id, and both signatures', async () => {
    const { url, headers, body } = await sent(endpoint())
    expect(url).toBe('https://hooks.example/in?x=1')
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
    expect(
      verifySignature({ headers: lowerCase(headers), body, secrets: [secret.new], now }),
    ).toEqual({
      valid: true,
    })
  })

  test('verifies with the old secret and the new while both are live, and with the new alone after that', async () => {
    const newest = { sealed: seal(secret.new), created_at: now - 1000, expires_at: null }
    const previous = { sealed: seal(secret.old), created_at: 0, expires_at: now + 1 }
    const during = await sent(endpoint({ secrets: [newest, previous] }))
    expect(during.headers['webhook-signature']?.split(' ')).toHaveLength(2)
    for (const known of [secret.old, secret.new]) {
      const headers = { ...lowerCase(during.headers) }
      delete headers['x-foil-signature']
      delete headers['x-foil-timestamp']
      expect(verifySignature({ headers, body: during.body, secrets: [known], now })).toEqual({
        valid: true,
      })
    }
    const after = await sent(endpoint({ secrets: [newest, { ...previous, expires_at: now }] }))
    expect(after.headers['webhook-signature']?.split(' ')).toHaveLength(1)
    const verdict = verifySignature({
      headers: lowerCase(after.headers),
      body: after.body,
      secrets: [secret.old],
      now,
    })
    expect(verdict).toMatchObject({ valid: false })
  })

  test('is not made when no master key opens the secret', async () => {
    const post = async () => {
      throw new Error('sent')
    }
    const secrets = createSigningSecrets(createKeyring(randomBytes(32).toString('base64')))
    const made = makeAttempt(
      { client: { post }, secrets, clock: () => now },
      { event, endpoint: endpoint() },
    )
    await expect(made).rejects.toThrow(/no master key/)
  })
})

describe('the record', () => {
  const about = (outcome: PostOutcome, some: Partial<MadeAttempt> = {}): MadeAttempt => ({
    event,
    endpoint: endpoint(),
    deliveryId: 'wdlv_0',
    attempt: 3,
    attemptedAt: now,
    outcome,
    result: 'retrying',
    nextAttemptAt: now + 5000,
    ...some,
  })
  const recorded = (record: MadeAttempt) => attemptedEvent(record).event.data

  test('of an answer says its status and body; of none, why there was none', () => {
    expect(recorded(about(answered(Buffer.from('no'), 503)))).toMatchObject({
      delivery_id: 'wdlv_0',
      attempt: 3,
      attempted_at: now,
      duration_ms: 13,
      outcome: 'retrying',
      response_status: 503,
      response_body: 'no',
      error: 'The receiver answered 503.',
      next_attempt_at: now + 5000,
    })
    const failure = {
      kind: 'failure',
      reason: 'dns',
      message: 'No such host.',
      durationMs: 1,
    } as const
    expect(recorded(about(failure))).toMatchObject({
      response_status: null,
      response_body: null,
      error: 'No such host.',
    })
    const success = about(answered(), { result: 'succeeded', nextAttemptAt: null })
    expect(recorded(success)).toMatchObject({ error: null, next_attempt_at: null })
  })

  test('of an approval keeps nothing of the body', () => {
    const approval = { ...event, type: 'gate.session.approved' } as const
    expect(
      recorded(about(answered(Buffer.from('credentials')), { event: approval })),
    ).toMatchObject({
      response_body: null,
    })
  })

  test('made twice is the same event; of another attempt it is another', () => {
    const id = (some?: Partial<MadeAttempt>) => attemptedEvent(about(answered(), some)).meta.eventId
    expect(id()).toBe(id())
    expect(new Set([id(), id({ attempt: 4 }), id({ attemptedAt: now + 1 })]).size).toBe(3)
  })
})

describe('stored text', () => {
  test('is cut between two characters, at most as long as it may be', () => {
    expect(cutText(Buffer.from('a€b'), 4)).toBe('a€')
    expect(cutText(Buffer.from('a€b'), 3)).toBe('a')
    expect(cutText(Buffer.from('a😀'), 4)).toBe('a')
    expect(cutText(Buffer.from('abc'), 3)).toBe('abc')
    expect(cutText(Buffer.from('\uFEFFa'), 9)).toBe('\uFEFFa')
  })

  test('has neither U+0000 nor bytes that are not UTF-8', () => {
    expect(cutText(Buffer.from([0x61, 0, 0x62]), 10)).toBe('a\uFFFDb')
    expect(cutText(Buffer.from([0xff, 0x61]), 10)).toBe('\uFFFDa')
    expect(Buffer.byteLength(cutText(Buffer.alloc(5000, 0xff), 4096))).toBe(4095)
  })

  test('of any bytes fits, can be stored, and begins like them', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 60 }),
        fc.integer({ min: 4, max: 50 }),
        (bytes, max) => {
          const text = cutText(bytes, max)
          expect(Buffer.byteLength(text)).toBeLessThanOrEqual(max)
          expect(text).not.toContain('\0')
          expect(text.isWellFormed()).toBe(true)
        },
      ),
    )
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 40 }),
        fc.integer({ min: 4, max: 50 }),
        (whole, max) => {
          const text = cutText(Buffer.from(whole), max)
          expect(whole.replaceAll('\0', '\uFFFD').startsWith(text)).toBe(true)
        },
      ),
    )
  })
})

function lowerCase(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
}
