import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CollectClient, OpenedSession } from '../../../infra/wire/collect/client.ts'
import { maxDeflatedBytes } from '../../../infra/wire/collect/protocol.ts'
import { openRawDocument, type Post } from '../../support/sequence-race.ts'
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

const batches = () => app.eventsOf('BatchReceived')
const results = () => app.eventsOf('ResultRequested')

/** Returns the body with one bit of a byte flipped; negative offsets count from the end. */
function flipped({ payload }: Sent, at: number): Buffer {
  const body = Buffer.from(payload)
  const place = (at + body.length) % body.length
  body[place] = (body[place] ?? 0) ^ 1
  return body
}

function withHeader({ headers }: Sent, name: string, value: string | undefined) {
  const { [name]: _, ...others } = headers
  return { headers: value === undefined ? others : { ...others, [name]: value } }
}

/** Sends the last batch again, to another process with other keys. */
async function sendThere(changes: Partial<Sent> = {}, options = {}) {
  const otherApp = await startCollectApp(options)
  const sent = { ...lastSent(app, 'batches'), ...changes }
  const response = await sendAgain(
    otherApp,
    sent,
    withHeader(sent, 'Authorization', `Bearer ${otherApp.publishable()}`),
  )
  await otherApp.close()
  return { ...response, stored: otherApp.log.records.length }
}

/** A batch with these bytes as its payload. */
async function sendBytes(bytes: Buffer) {
  const crafted = clientOf(app, key, { deflate: () => new Uint8Array(bytes) })
  await crafted.open()
  await crafted.sendBatch(quiet)
}

describe('batches', () => {
  test('are stored as sent and acknowledged; only the first acknowledgement has the fingerprint', async () => {
    const first = await client.sendBatch({ ...quiet, elapsed_ms: 11 })
    const second = await client.sendBatch({ ...quiet, elapsed_ms: 22 })
    expect(first).toMatchObject({ seq: 1, intervalMs: 2000, fingerprint: { ready: true } })
    expect(second).toEqual({ seq: 2, intervalMs: 2000, engineQuestions: [] })
    const { sessionId: session_id } = opened
    const about = { session_id, organization_id: organization.organizationId }
    expect(batches()).toMatchObject([
      { ...about, seq: 1 },
      { ...about, seq: 2 },
    ])
    expect(
      batches().map(({ payload }) => JSON.parse(inflateRawSync(payload).toString())),
    ).toMatchObject([{ elapsed_ms: 11 }, { elapsed_ms: 22 }])
  })

  test('only the response to the first one has the fingerprint, whatever its number', async () => {
    await client.requestResult(quiet)
    await client.requestResult(quiet)
    const first = await client.sendBatch(quiet)
    expect(first).toMatchObject({ seq: 3, fingerprint: { state: { id: expect.any(String) } } })
    const sent = lastSent(app, 'batches')
    expect((await sendAgain(app, sent)).json).toEqual(sent.response?.json)
    await client.requestResult(quiet)
    expect((await client.sendBatch(quiet)).fingerprint).toBeUndefined()
  })

  test('sent concurrently are sent one after the other', async () => {
    const acks = await Promise.all(Array.from({ length: 8 }, () => client.sendBatch(quiet)))
    expect(acks.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8])
  })

  test('repeated bytes get the same response and are not stored again', async () => {
    await client.sendBatch(quiet)
    const sent = lastSent(app, 'batches')
    const response = { status: 200, json: sent.response?.json }
    const again = await Promise.all([sendAgain(app, sent), sendAgain(app, sent)])
    expect(again).toMatchObject([response, response])
    expect(batches()).toHaveLength(1)
  })

  test('of two concurrent bodies with one number, one is accepted', async () => {
    const post: Post = ({ path, ...request }) => app.send('POST', path, request)
    const document = await openRawDocument(post, key)
    const bodies = [document.body(1, document.nonce), document.body(1, document.nonce)]
    const posted = await Promise.all(bodies.map(post))
    expect(posted.map(({ status }) => status).sort()).toEqual([200, 409])
    expect(batches()).toHaveLength(1)
  })

  test('an older batch is rejected with the expected number', async () => {
    await client.sendBatch(quiet)
    const sent = lastSent(app, 'batches')
    await client.sendBatch(quiet)
    const field = { name: 'X-Batch-Seq', issue: 'sequence_mismatch', expected: '3', received: '1' }
    expect(await sendAgain(app, sent)).toMatchObject({
      status: 409,
      json: { error: { code: 'session.sequence_mismatch', details: { fields: [field] } } },
    })
    expect(batches()).toHaveLength(2)
  })

  test('a wrong nonce, IV, ciphertext or tag requires a new session and changes nothing', async () => {
    await client.sendBatch(quiet)
    const nonceEnd = 2 + 26
    for (const at of [5, nonceEnd, nonceEnd + 12, -1])
      expect(await sendThere({ payload: flipped(lastSent(app, 'batches'), at) })).toMatchObject({
        status: 409,
        json: { error: { code: 'transport.session_reset_required', retryable: true } },
        stored: 0,
      })
    expect(await sendThere()).toMatchObject({ status: 200, stored: 1 })
  })

  test('a nonce of another document requires a new session', async () => {
    await client.sendBatch(quiet)
    const { payload } = lastSent(app, 'batches')
    const other = clientOf(app, key)
    await other.open()
    await other.sendBatch(quiet)
    expect((await sendAgain(app, lastSent(app, 'batches'), { payload })).json.error.code).toBe(
      'transport.session_reset_required',
    )
  })

  test('a document continues after a body with a wrong tag', async () => {
    await client.sendBatch(quiet)
    app.log.setDown(true)
    await expect(client.sendBatch(quiet)).rejects.toMatchObject({ status: 503 })
    app.log.setDown(false)
    const sent = lastSent(app, 'batches')
    expect((await sendAgain(app, sent, { payload: flipped(sent, -1) })).status).toBe(409)
    expect((await sendAgain(app, sent)).status).toBe(200)
  })

  test.each([
    ['an empty body', Buffer.alloc(0), 'too_short'],
    ['a truncated frame', Buffer.concat([Buffer.from([1, 26]), Buffer.alloc(40)]), 'too_short'],
    ['another version', Buffer.alloc(200, 2), 'unknown_version'],
  ])('a malformed frame (%s) gets 422 naming the body', async (_, payload, issue) => {
    await client.sendBatch(quiet)
    const { status, json } = await sendAgain(app, lastSent(app, 'batches'), { payload })
    expect([status, json.error.details.fields]).toEqual([422, [{ name: 'body', issue }]])
  })

  test.each([
    ['X-Client-Key', undefined, 422],
    ['X-Client-Key', 'too-short', 422],
    ['X-Batch-Seq', undefined, 422],
    ['X-Batch-Seq', '0', 422],
    ['X-Batch-Seq', '-1', 422],
    ['X-Batch-Seq', '01', 422],
    ['X-Batch-Seq', '1.5', 422],
    ['X-Batch-Seq', '1e0', 422],
    ['X-Batch-Seq', '1, 1', 422],
    ['X-Batch-Seq', '7', 409],
    ['X-Batch-Seq', '99999999999', 409],
    ['Content-Type', 'application/octet-streams', 415],
    ['Content-Type', undefined, 415],
    ['Content-Encoding', 'identity, gzip', 415],
  ])('the header %s: %s gets %i naming it', async (name, value, expected) => {
    await client.sendBatch(quiet)
    const sent = lastSent(app, 'batches')
    const { status, json } = await sendAgain(app, sent, withHeader(sent, name, value))
    expect([status, json.error.details.fields]).toMatchObject([expected, [{ name }]])
  })

  test('a body with Content-Encoding identity is accepted', async () => {
    await client.sendBatch(quiet)
    const sent = lastSent(app, 'batches')
    const changes = withHeader(sent, 'Content-Encoding', 'Identity')
    expect((await sendAgain(app, sent, changes)).status).toBe(200)
  })

  test('observations over 128 KiB get 413', async () => {
    const tooLarge = { status: 413, code: 'request.payload_too_large' }
    await expect(sendBytes(Buffer.alloc(maxDeflatedBytes + 1))).rejects.toMatchObject(tooLarge)
    expect(batches()).toEqual([])
    await sendBytes(Buffer.alloc(maxDeflatedBytes))
    expect(batches()[0]?.payload.length).toBe(maxDeflatedBytes)
  })

  test.each([
    ['a deflate bomb', () => deflateRawSync(Buffer.alloc(64 * 1024 * 1024))],
    ['malformed JSON', () => deflateRawSync('{"version":')],
    ['bytes that are not deflated', () => Buffer.from('not deflated')],
    ['an empty payload', () => Buffer.alloc(0)],
  ])(
    '%s is acknowledged and stored, because collect does not parse payloads',
    async (_, payload) => {
      await sendBytes(payload())
      expect(batches()[0]?.payload.equals(payload())).toBe(true)
    },
  )
})

describe('documents', () => {
  const gone = {
    code: 'session.invalid_or_expired',
    status: 410,
    details: { next_action: 'new_session' },
  }

  beforeEach(() => client.sendBatch(quiet))

  test.each<[string, (sent: Sent) => Partial<Sent>]>([
    ['id was modified', ({ url }) => ({ url: url.replace(/documents\/./, 'documents/_') })],
    ['id is forged', ({ url }) => ({ url: url.replace(/documents\/[^/]+/, 'documents/abc') })],
    [
      'session differs',
      ({ url }) => ({ url: url.replace(/sid_[^/]+/, 'sid_00000000000000000000000000') }),
    ],
    ['session has a legacy id', ({ url }) => ({ url: url.replace(/sid_[^/]+/, '0'.repeat(32)) })],
    [
      'client key differs',
      (sent) => withHeader(sent, 'X-Client-Key', Buffer.alloc(32, 9).toString('base64url')),
    ],
  ])('are 410 for a body whose %s', async (_, change) => {
    const sent = lastSent(app, 'batches')
    expect((await sendAgain(app, sent, change(sent))).json.error).toMatchObject(gone)
  })

  test('expire 24 hours after the start of their session', async () => {
    const sent = lastSent(app, 'batches')
    app.now.ms += 24 * 60 * 60 * 1000
    expect((await client.sendBatch(quiet)).seq).toBe(2)
    app.now.ms += 1
    const expired = { status: 410, nextAction: 'new_session' }
    await expect(client.sendBatch(quiet)).rejects.toMatchObject(expired)
    expect((await sendAgain(app, sent)).json.error).toMatchObject(gone)
    expect(batches()).toHaveLength(2)
  })

  test('continue with another publishable key of the same organization', async () => {
    const sent = lastSent(app, 'batches')
    const authorization = `Bearer ${app.publishable({ keyId: 'key_00000000000000000000000008' })}`
    const again = await sendAgain(app, sent, withHeader(sent, 'Authorization', authorization))
    expect(again.status).toBe(200)
  })

  test('continue after a master key rotation, and are 410 once the old key is removed', async () => {
    const next = Buffer.alloc(32, 2).toString('base64')
    const replaced = await sendThere({}, { masterKeys: `${next},${firstMasterKey}` })
    const removed = await sendThere({}, { masterKeys: next })
    expect([replaced.status, removed.status]).toEqual([200, 410])
  })
})

describe('results', () => {
  test('return the sealed token of the requested decision, and nothing else about it', async () => {
    await client.sendBatch(quiet)
    const handoff = await client.requestResult(quiet)
    const [request] = results()
    expect(request).toMatchObject({ session_id: opened.sessionId, seq: 2 })
    expect(handoff).toEqual({
      sessionId: opened.sessionId,
      sealedToken: `sealed:${request?.decision_id}`,
    })
    const members = ['sessionId', 'sealedToken', 'nonce', 'integrity']
    expect(Object.keys(lastSent(app, 'results').response?.json ?? {})).toEqual(members)
    expect((await client.sendBatch(quiet)).seq).toBe(3)
    expect((await client.requestResult(quiet)).sealedToken).not.toBe(handoff.sealedToken)
  })

  test('repeated bytes get the same token and request no second decision', async () => {
    await client.requestResult(quiet)
    const sent = lastSent(app, 'results')
    expect((await sendAgain(app, sent)).json).toEqual(sent.response?.json)
    expect(results()).toHaveLength(1)
  })

  test('a batch body is not accepted as a result', async () => {
    await client.sendBatch(quiet)
    const sent = lastSent(app, 'batches')
    const url = sent.url.replace(/batches$/, 'results')
    expect((await sendAgain(app, sent, { url })).json.error.code).toBe('session.sequence_mismatch')
  })
})
