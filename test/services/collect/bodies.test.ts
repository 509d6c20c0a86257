import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CollectClient, OpenedSession } from '../../../infra/wire/collect/client.ts'
import {
  createKeyPair,
  deriveDocumentKeys,
  sealBody,
} from '../../../infra/wire/collect/client-crypto.ts'
import {
  bodyPath,
  maxDeflatedBytes,
  type OpenResponse,
} from '../../../infra/wire/collect/protocol.ts'
import {
  type CollectApp,
  clientOf,
  firstMasterKey,
  lastSent,
  organization,
  quiet,
  type Sent,
  sendAgain,
  startCollectApp,
} from './collect-app.ts'

let app: CollectApp
let key: string
let client: CollectClient
let opened: OpenedSession

beforeEach(async () => {
  app = await startCollectApp()
  key = app.publishable()
  client = clientOf(app, key)
  opened = await client.open()
})
afterEach(() => app.close())

const batches = () =>
  app.events().flatMap(({ type, data }) => (type === 'BatchReceived' ? [data] : []))
const results = () =>
  app.events().flatMap(({ type, data }) => (type === 'ResultRequested' ? [data] : []))

function changed(exchange: Sent, change: (body: Buffer) => void): Buffer {
  const body = Buffer.from(exchange.payload as Buffer)
  change(body)
  return body
}

const withHeader = (exchange: Sent, name: string, value: string | undefined) => {
  const { [name]: _, ...others } = exchange.headers
  return { headers: value === undefined ? others : { ...others, [name]: value } }
}

/** A document opened by hand, for bodies that the client would not send. */
async function openByHand() {
  const keyPair = createKeyPair((size) => crypto.getRandomValues(new Uint8Array(size)))
  const { json } = await app.send('POST', '/v2/collect/sessions', {
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    payload: JSON.stringify({
      clientPublicKey: keyPair.publicKey,
      sdk: { name: 'x', version: '1', platform: 'web' },
      page: { url: 'https://shop.example/' },
    }),
  })
  const answer: OpenResponse = json
  const keys = deriveDocumentKeys(keyPair, {
    address: answer,
    serverPublicKey: answer.serverPublicKey,
  })
  return (plaintext: Uint8Array, { seq = 1, nonce = answer.nonce, wrongTag = false } = {}) => {
    const kind = 'batches'
    const iv = crypto.getRandomValues(new Uint8Array(12))
    const body = sealBody({
      key: keys.clientToServer,
      address: answer,
      kind,
      seq,
      nonce,
      iv,
      plaintext,
    })
    if (wrongTag) body[body.length - 1] = (body.at(-1) ?? 0) ^ 1
    return app.send('POST', bodyPath(answer, kind), {
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/octet-stream',
        'x-client-key': keyPair.publicKey,
        'x-batch-seq': String(seq),
      },
      payload: Buffer.from(body),
    })
  }
}

describe('batches', () => {
  test('are stored as sent and acknowledged; only the first acknowledgement has the fingerprint', async () => {
    const first = await client.sendBatch({ ...quiet, elapsed_ms: 11 })
    const second = await client.sendBatch({ ...quiet, elapsed_ms: 22 })
    expect(first).toEqual({
      seq: 1,
      intervalMs: 2000,
      fingerprint: {
        ready: true,
        timestamp: app.now.ms,
        sessionId: opened.sessionId,
        state: { id: expect.any(String) },
        integrity: { responseHmac: expect.any(String) },
      },
      engineQuestions: expect.any(Array),
    })
    expect(second).toEqual({ seq: 2, intervalMs: 2000, engineQuestions: [] })
    expect(lastSent(app, 'batches').answer.json).toEqual({
      ack: true,
      nonce: expect.any(String),
      seq: 2,
      next: { intervalMs: 2000 },
    })
    expect(batches().map(({ seq }) => seq)).toEqual([1, 2])
    const plain = batches().map(({ payload }) => JSON.parse(inflateRawSync(payload).toString()))
    expect(plain).toEqual([
      { version: 1, elapsed_ms: 11 },
      { version: 1, elapsed_ms: 22 },
    ])
    expect(batches()[0]).toMatchObject({
      session_id: opened.sessionId,
      organization_id: organization.organizationId,
    })
  })

  test('the first one has the fingerprint whatever its number, and no later one', async () => {
    await client.requestResult(quiet)
    await client.requestResult(quiet)
    const first = await client.sendBatch(quiet)
    expect(first).toMatchObject({
      seq: 3,
      fingerprint: { ready: true, state: { id: expect.any(String) } },
    })
    const sent = lastSent(app, 'batches')
    expect((await sendAgain(app, sent)).json).toEqual(sent.answer.json)
    await client.requestResult(quiet)
    expect((await client.sendBatch(quiet)).fingerprint).toBeUndefined()
  })

  test('sent at once go out one after the other', async () => {
    const acks = await Promise.all(Array.from({ length: 8 }, () => client.sendBatch(quiet)))
    expect(acks.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })

  test('the same bytes again get the same answer and are not stored again', async () => {
    await client.sendBatch(quiet)
    const sent = lastSent(app, 'batches')
    const again = await Promise.all([sendAgain(app, sent), sendAgain(app, sent)])
    expect(again.map(({ status, json }) => [status, json])).toEqual([
      [200, sent.answer.json],
      [200, sent.answer.json],
    ])
    expect(batches()).toHaveLength(1)
  })

  test('of two bodies under one number at once, one is taken', async () => {
    const send = await openByHand()
    const posted = await Promise.all([send(deflateRawSync('{}')), send(deflateRawSync('{}'))])
    expect(posted.map(({ status }) => status).sort()).toEqual([200, 409])
    expect(batches()).toHaveLength(1)
  })

  test('a node that knows nothing of the document takes a repeat as the same event', async () => {
    await client.sendBatch(quiet)
    const other = await startCollectApp()
    const sent = lastSent(app, 'batches')
    const keyThere = other.publishable()
    const { status } = await sendAgain(
      other,
      sent,
      withHeader(sent, 'Authorization', `Bearer ${keyThere}`),
    )
    expect(status).toBe(200)
    const [there] = other.events()
    expect(there?.meta.eventId).toBe(app.events().at(-1)?.meta.eventId)
    await other.close()
  })

  test('an older batch is refused with the number that is expected', async () => {
    await client.sendBatch(quiet)
    const sent = lastSent(app, 'batches')
    await client.sendBatch(quiet)
    const { status, json } = await sendAgain(app, sent)
    expect(status).toBe(409)
    expect(json.error).toMatchObject({
      code: 'session.sequence_mismatch',
      retryable: false,
      details: {
        fields: [{ name: 'X-Batch-Seq', issue: 'sequence_mismatch', expected: '3', received: '1' }],
      },
    })
    expect(batches()).toHaveLength(2)
  })

  test('another body under a number that was taken is refused', async () => {
    const send = await openByHand()
    expect((await send(deflateRawSync('{"a":1}'))).status).toBe(200)
    const { status, json } = await send(deflateRawSync('{"a":2}'))
    expect([status, json.error.code]).toEqual([409, 'session.sequence_mismatch'])
    expect(batches()).toHaveLength(1)
  })

  test.each(['7', '99999999999', '9999999999'])(
    'a header that names another number than the nonce, %s, is refused',
    async (received) => {
      await client.sendBatch(quiet)
      const sent = lastSent(app, 'batches')
      const { status, json } = await sendAgain(app, sent, withHeader(sent, 'X-Batch-Seq', received))
      expect([status, json.error.code]).toEqual([409, 'session.sequence_mismatch'])
      expect(json.error.details.fields).toEqual([
        { name: 'X-Batch-Seq', issue: 'sequence_mismatch', expected: '1', received },
      ])
    },
  )

  test('a wrong tag, IV or ciphertext asks for a new session and changes nothing', async () => {
    await client.sendBatch(quiet)
    await client.sendBatch(quiet)
    const send = await openByHand()
    const sent = lastSent(app, 'batches')
    const stored = app.log.records.length
    const nonceEnd = 2 + 26
    for (const at of [nonceEnd, nonceEnd + 12, (sent.payload as Buffer).length - 1]) {
      const fresh = await startCollectApp()
      const payload = changed(sent, (body) => {
        body[at] = (body[at] ?? 0) ^ 1
      })
      const headers = withHeader(sent, 'Authorization', `Bearer ${fresh.publishable()}`)
      const { status, json } = await sendAgain(fresh, sent, { payload, ...headers })
      expect([status, json.error.code, json.error.retryable]).toEqual([
        409,
        'transport.session_reset_required',
        true,
      ])
      expect(fresh.log.records).toEqual([])
      await fresh.close()
    }
    expect(app.log.records).toHaveLength(stored)
    expect((await send(deflateRawSync('{}'))).status).toBe(200)
  })

  test('a document goes on after a body with a wrong tag was refused', async () => {
    const send = await openByHand()
    const wrong = await send(deflateRawSync('{}'), { wrongTag: true })
    expect(wrong.json.error.code).toBe('transport.session_reset_required')
    expect((await send(deflateRawSync('{}'))).status).toBe(200)
  })

  test('a nonce that we did not issue, or for another document, asks for a new session', async () => {
    await client.sendBatch(quiet)
    const sent = lastSent(app, 'batches')
    const payload = changed(sent, (body) => {
      body[5] = (body[5] ?? 0) ^ 1
    })
    expect((await sendAgain(app, sent, { payload })).json.error.code).toBe(
      'transport.session_reset_required',
    )
    const send = await openByHand()
    const foreign = await send(deflateRawSync('{}'), { nonce: sent.answer.json.nonce })
    expect(foreign.json.error.code).toBe('transport.session_reset_required')
  })

  test.each([
    ['empty', Buffer.alloc(0), 'too_short'],
    ['one byte', Buffer.from([1]), 'too_short'],
    ['a cut frame', Buffer.concat([Buffer.from([1, 26]), Buffer.alloc(40)]), 'too_short'],
    ['another version', Buffer.alloc(200, 2), 'unknown_version'],
    ['JSON', Buffer.from('{"a":1}'), 'unknown_version'],
  ])('a malformed frame (%s) is 422 naming the body', async (_, payload, issue) => {
    await client.sendBatch(quiet)
    const { status, json } = await sendAgain(app, lastSent(app, 'batches'), { payload })
    expect(status).toBe(422)
    expect(json.error.details.fields).toEqual([{ name: 'body', issue }])
  })

  test.each([
    ['X-Client-Key', undefined],
    ['X-Client-Key', 'too-short'],
    ['X-Batch-Seq', undefined],
    ['X-Batch-Seq', '1.5'],
    ['X-Batch-Seq', '-'],
    ['X-Batch-Seq', '0'],
    ['X-Batch-Seq', '-1'],
    ['X-Batch-Seq', '+1'],
    ['X-Batch-Seq', '01'],
    ['X-Batch-Seq', '1e0'],
    ['X-Batch-Seq', 'one'],
    ['X-Batch-Seq', '1, 1'],
  ])('the header %s: %s is 422 naming it', async (name, value) => {
    await client.sendBatch(quiet)
    const sent = lastSent(app, 'batches')
    const { status, json } = await sendAgain(app, sent, withHeader(sent, name, value))
    expect(status).toBe(422)
    expect(json.error.details).toMatchObject({ fields: [{ name }], header_name: name })
  })

  test.each(['application/json', 'text/plain', 'application/octet-streams', undefined])(
    'the content type %s is 415 naming it',
    async (type) => {
      await client.sendBatch(quiet)
      const sent = lastSent(app, 'batches')
      const { status, json } = await sendAgain(app, sent, withHeader(sent, 'Content-Type', type))
      expect(status).toBe(415)
      expect(json.error).toMatchObject({
        code: 'request.invalid_content_type',
        details: { fields: [{ name: 'Content-Type' }] },
      })
    },
  )

  test.each(['gzip', 'deflate', 'br', 'identity, gzip'])(
    'the content encoding %s is 415 naming it and what is taken',
    async (encoding) => {
      await client.sendBatch(quiet)
      const sent = lastSent(app, 'batches')
      const answer = await sendAgain(app, sent, withHeader(sent, 'Content-Encoding', encoding))
      expect(answer.status).toBe(415)
      expect(answer.json.error).toMatchObject({
        code: 'request.invalid_content_type',
        details: { fields: [{ name: 'Content-Encoding', expected: 'identity' }] },
      })
    },
  )

  test('a body that says that it is not encoded is taken', async () => {
    await client.sendBatch(quiet)
    const sent = lastSent(app, 'batches')
    expect(
      await sendAgain(app, sent, withHeader(sent, 'Content-Encoding', 'Identity')),
    ).toMatchObject({
      status: 200,
    })
  })

  test('more than is ever read of it is 413: observations over 128 KiB', async () => {
    const send = await openByHand()
    const large = await send(Buffer.alloc(maxDeflatedBytes + 1))
    expect([large.status, large.json.error.code]).toEqual([413, 'request.payload_too_large'])
    expect(batches()).toEqual([])
    expect((await send(Buffer.alloc(maxDeflatedBytes))).status).toBe(200)
    expect(batches()[0]?.payload.length).toBe(maxDeflatedBytes)
  })

  test.each([
    ['a deflate bomb', () => deflateRawSync(Buffer.alloc(64 * 1024 * 1024))],
    ['malformed JSON', () => deflateRawSync('{"version":')],
    ['bytes that are not deflated', () => Buffer.from('not deflated')],
    ['nothing', () => Buffer.alloc(0)],
  ])('%s is acknowledged and stored: looking inside is not for this side', async (_, payload) => {
    const send = await openByHand()
    const bytes = payload()
    expect((await send(bytes)).status).toBe(200)
    expect(batches()[0]?.payload.equals(bytes)).toBe(true)
  })
})

describe('documents', () => {
  const gone = {
    code: 'session.invalid_or_expired',
    status: 410,
    details: { next_action: 'new_session' },
  }

  beforeEach(() => client.sendBatch(quiet))

  test.each([
    ['tampered', (url: string) => url.replace(/documents\/./, 'documents/_')],
    ['made up', (url: string) => url.replace(/documents\/[^/]+/, 'documents/abc')],
    [
      'of another session',
      (url: string) => url.replace(/sid_[^/]+/, 'sid_00000000000000000000000000'),
    ],
    ['of a legacy session', (url: string) => url.replace(/sid_[^/]+/, '0'.repeat(32))],
  ])('an id that is %s is 410', async (_, change) => {
    const sent = lastSent(app, 'batches')
    const { status, json } = await sendAgain(app, sent, { url: change(sent.url) })
    expect(status).toBe(410)
    expect(json.error).toMatchObject(gone)
  })

  test('expires 24 hours after its session began', async () => {
    const lost = lastSent(app, 'batches')
    app.now.ms += 24 * 60 * 60 * 1000
    expect((await client.sendBatch(quiet)).seq).toBe(2)
    app.now.ms += 1
    await expect(client.sendBatch(quiet)).rejects.toMatchObject({
      status: 410,
      nextAction: 'new_session',
    })
    expect((await sendAgain(app, lost)).json.error).toMatchObject(gone)
    expect(batches()).toHaveLength(2)
  })

  test.each([
    ["another organization's key", { organizationId: 'org_00000000000000000000000009' as const }],
    ["the other environment's key", { environment: 'test' as const }],
  ])('is 410 to %s', async (_, principal) => {
    const sent = lastSent(app, 'batches')
    const authorization = `Bearer ${app.publishable(principal)}`
    expect(
      (await sendAgain(app, sent, withHeader(sent, 'Authorization', authorization))).json.error,
    ).toMatchObject(gone)
  })

  test('is 410 to another client key', async () => {
    const sent = lastSent(app, 'batches')
    const other = Buffer.alloc(32, 9).toString('base64url')
    expect(
      (await sendAgain(app, sent, withHeader(sent, 'X-Client-Key', other))).json.error,
    ).toMatchObject(gone)
  })

  test('goes on under a replaced publishable key of the same organization', async () => {
    const sent = lastSent(app, 'batches')
    const authorization = `Bearer ${app.publishable({ keyId: 'key_00000000000000000000000008' })}`
    expect(
      (await sendAgain(app, sent, withHeader(sent, 'Authorization', authorization))).status,
    ).toBe(200)
  })

  test('goes on after the master key was replaced, and is 410 when its key was taken away', async () => {
    const next = Buffer.alloc(32, 2).toString('base64')
    const sent = lastSent(app, 'batches')
    for (const [masterKeys, expected] of [
      [`${next},${firstMasterKey}`, 200] as const,
      [next, 410] as const,
    ]) {
      const other = await startCollectApp({ masterKeys })
      const { status } = await sendAgain(
        other,
        sent,
        withHeader(sent, 'Authorization', `Bearer ${other.publishable()}`),
      )
      expect(status).toBe(expected)
      await other.close()
    }
  })
})

describe('results', () => {
  test('answer the sealed token of the decision that was asked for', async () => {
    await client.sendBatch(quiet)
    const handoff = await client.requestResult(quiet)
    const [asked] = results()
    expect(asked).toMatchObject({ session_id: opened.sessionId, seq: 2 })
    expect(handoff).toEqual({
      sessionId: opened.sessionId,
      sealedToken: `sealed:${asked?.decision_id}`,
    })
    expect((await client.sendBatch(quiet)).seq).toBe(3)
    expect((await client.requestResult(quiet)).sealedToken).not.toBe(handoff.sealedToken)
  })

  test('have exactly the members of the interface: no verdict, score, phase, category or visitor', async () => {
    await client.requestResult(quiet)
    expect(Object.keys(lastSent(app, 'results').answer.json)).toEqual([
      'sessionId',
      'sealedToken',
      'nonce',
      'integrity',
    ])
  })

  test('the same bytes again get the same token and ask for no second decision', async () => {
    await client.requestResult(quiet)
    const sent = lastSent(app, 'results')
    expect((await sendAgain(app, sent)).json).toEqual(sent.answer.json)
    expect(results()).toHaveLength(1)
  })

  test('a batch is not a result', async () => {
    await client.sendBatch(quiet)
    const sent = lastSent(app, 'batches')
    const url = sent.url.replace(/batches$/, 'results')
    expect((await sendAgain(app, sent, { url })).json.error.code).toBe('session.sequence_mismatch')
  })

  test('need octets and the client key', async () => {
    await client.requestResult(quiet)
    const sent = lastSent(app, 'results')
    expect(
      (await sendAgain(app, sent, withHeader(sent, 'Content-Type', 'application/json'))).status,
    ).toBe(415)
    expect((await sendAgain(app, sent, withHeader(sent, 'X-Client-Key', undefined))).status).toBe(
      422,
    )
  })

  test('an older answer is refused to a changed body', async () => {
    const send = await openByHand()
    expect((await send(deflateRawSync('{}'))).status).toBe(200)
    await client.requestResult(quiet)
    const sent = lastSent(app, 'results')
    await client.sendBatch(quiet)
    expect((await sendAgain(app, sent)).json.error.code).toBe('session.sequence_mismatch')
  })
})
