import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bankNumberOf } from '../../../infra/challenges/bank.ts'
import { isId } from '../../../infra/ids.ts'
import type { EngineQuestion } from '../../../infra/wire/collect/protocol.ts'
import { isSignedBy } from '../../../infra/wire/web-bot-auth/keys.ts'
import { agentSignature, createAgentKey } from '../../support/agent-signature.ts'
import {
  type CollectApp,
  clientOf,
  lastSent,
  quiet,
  sendAgain,
  startCollectApp,
} from './collect-app.ts'

let app: CollectApp
let key: string

beforeEach(async () => {
  app = await startCollectApp()
  key = app.publishable()
})
afterEach(() => app.close())

const dayMs = 24 * 60 * 60 * 1000

async function open(changes: Record<string, unknown> = {}, headers: Record<string, string> = {}) {
  const body = {
    clientPublicKey: Buffer.alloc(32, 9).toString('base64url'),
    sdk: { name: 'test-sdk', version: '1', platform: 'web' },
    page: { url: 'https://shop.example/' },
    ...changes,
  }
  return app.send('POST', '/v2/collect/sessions', {
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    payload: JSON.stringify(body),
  })
}

describe("the deployment's own questions", () => {
  const isOwn = ({ id }: EngineQuestion) => bankNumberOf(id) !== undefined
  const askedOf = async (some: CollectApp) => {
    const client = clientOf(some, some.publishable())
    const { engineQuestions } = await client.open()
    expect(engineQuestions.filter(isOwn)).toEqual([])
    return (await client.sendBatch(quiet)).engineQuestions
  }

  test('come once a document has sent its first batch', async () => {
    const client = clientOf(app, key)
    await client.open()
    const first = await client.sendBatch(quiet)
    expect(first.engineQuestions.filter(isOwn)).toHaveLength(12)
    expect((await client.sendBatch(quiet)).engineQuestions).toEqual([])
  })

  test('are the same few for whoever has the address, and others for the next address', async () => {
    const next = await startCollectApp({ remoteAddress: '192.0.2.7' })
    const of = async (some: CollectApp) => {
      const asked = []
      for (let i = 0; i < 150; i++) asked.push(...(await askedOf(some)))
      return new Set(asked.map(({ id }) => id))
    }
    const [here, there] = [await of(app), await of(next)]
    expect([here.size, there.size]).toEqual([40, 40])
    expect([...here].filter((id) => there.has(id)).length).toBeLessThan(12)
    await next.close()
  })
})

describe('opening a session', () => {
  test('answers everything a client needs and records the session and its document in one append', async () => {
    const { status, json } = await open()
    expect(status).toBe(200)
    expect(json).toEqual({
      sessionId: expect.stringMatching(/^sid_/),
      documentId: expect.stringMatching(/^[\w-]{20,}$/),
      resumeToken: expect.any(String),
      continuityScope: expect.any(String),
      sharedPostVersion: 1,
      resumed: false,
      challenge: expect.any(String),
      serverPublicKey: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.any(String),
      timingNonce: expect.any(String),
      canvasChallenge: {
        ops: expect.any(Array),
        width: expect.any(Number),
        height: expect.any(Number),
      },
      engineQuestions: expect.any(Array),
    })
    expect(isId('sid', json.sessionId)).toBe(true)
    const [session, document] = app.events()
    expect(session).toMatchObject({
      type: 'SessionOpened',
      data: {
        session_id: json.sessionId,
        platform: 'web',
        sdk_name: 'test-sdk',
        continuity_ids: [],
      },
    })
    expect(document).toMatchObject({
      type: 'DocumentOpened',
      data: {
        session_id: json.sessionId,
        resumed: false,
        challenge: json.challenge,
        timing_nonce: json.timingNonce,
        url: 'https://shop.example/',
        referrer: null,
      },
    })
  })

  test('hands nothing out that a dump of the log could be used for', async () => {
    const { json } = await open()
    const dump = app.log.records.map(({ value }) => value.toString('latin1')).join()
    expect(dump).not.toContain(json.documentId)
    expect(dump).not.toContain(json.resumeToken)
  })

  test('sets the continuity cookie for this host only, out of reach of scripts', async () => {
    const cookie = String((await open()).headers['set-cookie'])
    expect(cookie).toMatch(
      /^__Host-sid=[\w-]+; Max-Age=86400; Path=\/; HttpOnly; Secure; SameSite=None; Partitioned$/,
    )
  })

  test('records the request as the edge saw it', async () => {
    await open(
      {},
      { 'user-agent': 'UA/1', 'accept-language': 'de-DE', 'sec-ch-ua': '"Chromium";v="1"' },
    )
    expect(app.events()[1]?.data).toMatchObject({
      user_agent: 'UA/1',
      ip_address: '127.0.0.1',
      accept_language: 'de-DE',
      client_hints: { 'sec-ch-ua': '"Chromium";v="1"' },
      header_order: expect.arrayContaining(['sec-ch-ua', 'authorization']),
    })
  })

  test.each([
    ['"https://agent.example"', 'agent.example'],
    ['sig1="https://agent.example:8443/keys"', 'agent.example:8443'],
    ['sig1="http://other.example", sig2="https://agent.example";type=jwks_uri', 'agent.example'],
    ['"https://AGENT.example.:443/"', 'agent.example'],
    ['"https://agent.example", "https://other.example"', null],
    ['"http://agent.example"', null],
    ['agent', null],
    [undefined, null],
  ])('records of a Signature-Agent header %j the host %j', async (header, host) => {
    await open({}, header === undefined ? {} : { 'signature-agent': header })
    expect(app.events()[1]?.data).toMatchObject({ signature_agent: host })
  })

  test('records the handshake of which a trusted edge tells', async () => {
    await app.close()
    app = await startCollectApp({
      edge: { trustedProxies: ['127.0.0.1'], edgeHeaders: { ja4: 'x-ja4' } },
    })
    key = app.publishable()
    const ja4 = 't13d1517h2_8daaf6152771_cb7bf5808d99'
    await open({}, { 'x-ja4': ja4, 'x-forwarded-for': '203.0.113.9' })
    expect(app.events()[1]?.data).toMatchObject({ ja4, http2_fingerprint: null })
  })

  test('records of a signature all that its check needs, with the agent that signed', async () => {
    const key = createAgentKey()
    const agent = '"https://agent.example"'
    const signed = agentSignature({
      key,
      created: 1_800_000_000,
      label: 'mine',
      nonce: 'n',
      lines: [
        ['"@authority"', 'own.example'],
        ['"@path"', '/v2/collect/sessions'],
        ['"signature-agent";key="mine"', agent],
      ],
    })
    await open({}, { ...signed, 'Signature-Agent': `other="https://other.example", mine=${agent}` })
    const { data } = app.events()[1] ?? {}
    expect(data).toMatchObject({
      signature_agent: 'agent.example',
      signature: {
        status: 'signed',
        signed: {
          directory: 'https://agent.example/.well-known/http-message-signatures-directory',
          key_id: key.keyId,
          request_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        },
      },
    })
    const found = data && 'signature' in data ? data.signature?.signed : null
    const bytes = Buffer.from(found?.bytes ?? '', 'base64')
    expect(isSignedBy(key.jwk.x, { base: found?.bases[0] ?? '', bytes })).toBe(true)
  })

  test('records one address for a client, whichever kind of socket it came in by', async () => {
    await app.close()
    app = await startCollectApp({ remoteAddress: '::ffff:203.0.113.9' })
    const client = clientOf(app, app.publishable())
    await client.open()
    await client.sendBatch(quiet)
    await client.requestResult(quiet)
    const recorded = app
      .events()
      .flatMap(({ data }) => ('ip_address' in data ? [data.ip_address] : []))
    expect(recorded).toEqual(Array(3).fill('203.0.113.9'))
  })

  test.each([
    ['203.0.113.9', '203.0.113.0'],
    ['::ffff:203.0.113.9', '203.0.113.0'],
    ['2001:db8:7:8::9', '2001:db8:7::'],
  ])(
    'of %s no event has more than %s where the organization shortens addresses',
    async (remoteAddress, recorded) => {
      await app.close()
      app = await startCollectApp({ remoteAddress })
      const client = clientOf(app, app.publishable({ shortensAddresses: true }))
      await client.open()
      await client.sendBatch(quiet)
      await client.requestResult(quiet)
      const found = app
        .events()
        .flatMap(({ data }) => ('ip_address' in data ? [data.ip_address] : []))
      expect(found).toEqual(Array(3).fill(recorded))
      expect(JSON.stringify(app.events())).not.toContain(remoteAddress)
    },
  )

  test('ignores members it does not know', async () => {
    expect((await open({ later: { more: true } })).status).toBe(200)
  })

  test.each([
    ['clientPublicKey', { clientPublicKey: 'short' }],
    ['clientPublicKey', { clientPublicKey: undefined }],
    ['clientPublicKey', { clientPublicKey: 7 }],
    ['sdk.platform', { sdk: { name: 'x', version: '1', platform: 'tv' } }],
    ['sdk.name', { sdk: { name: 'a\0b', version: '1', platform: 'web' } }],
    ['sdk', { sdk: undefined }],
    ['page', { page: undefined }],
    ['page', { page: null }],
    ['page.url', { page: { url: 7 } }],
    ['page.referrer', { page: { url: 'https://shop.example/', referrer: {} } }],
    ['page.url', { page: { url: 'not a url' } }],
    ['page.url', { page: { url: '/relative' } }],
  ])('refuses a bad %s with 422 and appends nothing', async (name, changes) => {
    const { status, json } = await open(changes)
    expect(status).toBe(422)
    expect(json.error).toMatchObject({
      code: 'request.validation_failed',
      details: { fields: [{ name }] },
    })
    expect(app.log.records).toEqual([])
  })

  test.each([
    ['zero', '0000000000000000000000000000000000000000000000000000000000000000'],
    ['one', '0100000000000000000000000000000000000000000000000000000000000000'],
    ['order 8', 'e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800'],
    ['order 8, the other', '5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157'],
    ['p - 1', 'ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f'],
    ['p', 'edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f'],
    ['p + 1', 'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f'],
    [
      'zero under the ignored bit',
      '0000000000000000000000000000000000000000000000000000000000000080',
    ],
    [
      'p + 1 under the ignored bit',
      'eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff',
    ],
  ])('refuses the low-order point %s as client public key', async (_, hex) => {
    const { status, json } = await open({
      clientPublicKey: Buffer.from(hex, 'hex').toString('base64url'),
    })
    expect(status).toBe(422)
    expect(json.error.details.fields).toMatchObject([{ name: 'clientPublicKey' }])
    expect(app.log.records).toEqual([])
  })

  test('strips credentials from addresses, and the query from very long ones', async () => {
    const page = {
      url: `https://u:p@shop.example/a?${'q'.repeat(4000)}`,
      referrer: 'https://x:y@search.example/',
    }
    await open({ page })
    expect(app.events()[1]?.data).toMatchObject({
      url: 'https://shop.example/a',
      referrer: 'https://search.example/',
    })
  })

  const longPath = `/${'p'.repeat(4000)}`
  test.each([
    ['https://shop.example/a?b=c#d', 'https://shop.example/a?b=c#d'],
    [`https://shop.example/a?${'q'.repeat(100_000)}#d`, 'https://shop.example/a'],
    [`https://u:p@shop.example:8443${longPath}?q`, 'https://shop.example:8443/'],
    [`https://${'h'.repeat(4000)}.example/`, 'about:blank'],
    ['data:text/html,secret', 'data:///'],
    [`data:text/html,${'secret'.repeat(5000)}`, 'data:///'],
    ['blob:https://shop.example/9115d58c-bcda-ff47', 'blob:https://shop.example/'],
    ['blob:null/9115d58c-bcda-ff47', 'blob:///'],
    ['file:///home/ann/shop.html', 'file:///'],
    ['file://server/ann/shop.html', 'file:///'],
    ['javascript:alert(1)', 'javascript:///'],
    ['about:srcdoc', 'about:blank'],
    ['capacitor://localhost/cart', 'capacitor://localhost/cart'],
    [`${'s'.repeat(4000)}:x`, 'about:blank'],
  ])('no address refuses the session (%#)', async (address, stored) => {
    const { status } = await open({ page: { url: address, referrer: address } })
    expect(status).toBe(200)
    expect(app.events()[1]?.data).toMatchObject({ url: stored, referrer: stored })
  })

  test('null counts as absent', async () => {
    key = app.publishable({ clientTarget: 'native_ios' })
    const sdk = { name: 'ios-sdk', version: '1', platform: 'ios' }
    const { status, json } = await open({ resumeToken: null, continuity: null, page: null, sdk })
    expect([status, json.resumed]).toEqual([200, false])
    expect(app.events()[0]?.data).toMatchObject({ continuity_ids: [] })
  })

  test('keeps a referrer that is no address out, without refusing the session', async () => {
    await open({ page: { url: 'https://shop.example/', referrer: 'garbage' } })
    expect(app.events()[1]?.data).toMatchObject({ referrer: null })
  })

  test('malformed JSON is 400, another content type 415, over 256 KiB 413', async () => {
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    const path = '/v2/collect/sessions'
    const malformed = await app.send('POST', path, { headers, payload: '{"a":' })
    expect([malformed.status, malformed.json.error.code]).toEqual([400, 'request.malformed_body'])
    const text = await app.send('POST', path, {
      headers: { ...headers, 'content-type': 'text/plain' },
      payload: '{}',
    })
    expect([text.status, text.json.error.code]).toEqual([415, 'request.invalid_content_type'])
    const large = await app.send('POST', path, { headers, payload: `"${'x'.repeat(256 * 1024)}"` })
    expect([large.status, large.json.error.code]).toEqual([413, 'request.payload_too_large'])
  })

  test('an app without a page is recorded at about:blank', async () => {
    key = app.publishable({ clientTarget: 'native_ios' })
    await open({ sdk: { name: 'ios-sdk', version: '1', platform: 'ios' }, page: undefined })
    expect(app.events()[1]?.data).toMatchObject({ url: 'about:blank', referrer: null })
  })
})

describe('resuming', () => {
  test('several documents, one session: each has its own keys and sequence', async () => {
    const first = clientOf(app, key)
    const opened = await first.open()
    await first.sendBatch(quiet)
    const second = clientOf(app, key, { resumeToken: opened.resumeToken })
    const resumed = await second.open()
    const third = clientOf(app, key, { resumeToken: resumed.resumeToken })
    await third.open()
    expect(resumed).toMatchObject({ sessionId: opened.sessionId, resumed: true })
    expect(resumed.documentId).not.toBe(opened.documentId)
    expect((await third.sendBatch(quiet)).seq).toBe(1)
    expect((await second.sendBatch(quiet)).seq).toBe(1)
    expect((await first.sendBatch(quiet)).seq).toBe(2)
    const kinds = app
      .events()
      .map(({ type, data }) => [type, 'session_id' in data && data.session_id])
    expect(kinds.filter(([type]) => type === 'SessionOpened')).toHaveLength(1)
    expect(kinds.filter(([type]) => type === 'DocumentOpened')).toHaveLength(3)
    expect(new Set(kinds.map(([, id]) => id))).toEqual(new Set([opened.sessionId]))
  })

  test('a resume token is good for 24 hours from the session, however often it was renewed', async () => {
    const opened = await clientOf(app, key).open()
    app.now.ms += dayMs - 1
    const late = await clientOf(app, key, { resumeToken: opened.resumeToken }).open()
    expect(late.resumed).toBe(true)
    app.now.ms += 2
    const after = await clientOf(app, key, { resumeToken: late.resumeToken }).open()
    expect(after.resumed).toBe(false)
    expect(after.sessionId).not.toBe(opened.sessionId)
  })

  test.each<[string, (token: string) => string]>([
    ['padding', (token) => `${token}=`],
    ['a line feed', (token) => `${token}\n`],
    ['a space in it', (token) => `${token.slice(0, 9)} ${token.slice(9)}`],
    ['something after it', (token) => `${token}.`],
  ])('a token with %s starts a new session', async (_, changed) => {
    const opened = await clientOf(app, key).open()
    const again = await clientOf(app, key, { resumeToken: changed(opened.resumeToken) }).open()
    expect(again).toMatchObject({
      resumed: false,
      sessionId: expect.not.stringMatching(opened.sessionId),
    })
  })

  test.each([
    ['another organization', { organizationId: 'org_00000000000000000000000009' as const }],
    ['another environment', { environment: 'test' as const }],
  ])('a token of %s starts a new session', async (_, principal) => {
    const opened = await clientOf(app, key).open()
    const foreign = await clientOf(app, app.publishable(principal), {
      resumeToken: opened.resumeToken,
    }).open()
    expect(foreign.resumed).toBe(false)
    expect(foreign.sessionId).not.toBe(opened.sessionId)
    expect(foreign.continuityScope).not.toBe(opened.continuityScope)
  })

  test.each(['nonsense', '', 'A'.repeat(1024)])(
    'an invalid token (%#) starts a new session',
    async (resumeToken) => {
      expect((await open({ resumeToken })).json.resumed).toBe(false)
    },
  )

  test('a document id is no resume token', async () => {
    const { json } = await open()
    expect((await open({ resumeToken: json.documentId })).json.resumed).toBe(false)
  })
})

describe('continuity', () => {
  async function stateId(options = {}): Promise<string> {
    const client = clientOf(app, key, options)
    await client.open()
    return (await client.sendBatch(quiet)).fingerprint?.state.id ?? ''
  }

  const sessions = () =>
    app.events().flatMap(({ type, data }) => (type === 'SessionOpened' ? [data] : []))

  test('the state id of one session links the next one, whose own id stays the same', async () => {
    await stateId({ continuity: await stateId() })
    const [first, second] = sessions()
    expect(first?.continuity_ids).toEqual([])
    expect(second?.continuity_ids).toEqual([first?.continuity_id])
    expect(second?.continuity_id).toBe(first?.continuity_id)
  })

  test('the cookie comes before what a script kept', async () => {
    const cookie = String((await open()).headers['set-cookie']).split(';')[0] ?? ''
    await open({ continuity: await stateId() }, { cookie: `a=1; ${cookie}; b=2` })
    const [byCookie, byStorage, both] = sessions()
    expect(both?.continuity_ids).toEqual([byCookie?.continuity_id, byStorage?.continuity_id])
    expect(both?.continuity_id).toBe(byCookie?.continuity_id)
  })

  test('an id of another organization, or made up, counts for nothing', async () => {
    const own = await stateId()
    key = app.publishable({ organizationId: 'org_00000000000000000000000009' })
    await open({ continuity: own }, { cookie: '__Host-sid=made-up' })
    expect(sessions().at(-1)?.continuity_ids).toEqual([])
  })

  test('the scope is the same for every session of an organization and environment', async () => {
    const scopes = [(await open()).json.continuityScope, (await open()).json.continuityScope]
    expect(new Set(scopes).size).toBe(1)
  })
})

describe('browser keys', () => {
  test.each(['ios', 'android'] as const)(
    'are refused to an SDK of %s, which could say that a script is an app',
    async (platform) => {
      const { status, json } = await open({ sdk: { name: 'x', version: '1', platform } })
      expect([status, json.error.code]).toEqual([422, 'request.validation_failed'])
      expect(json.error.details.fields).toMatchObject([
        { name: 'sdk.platform', issue: 'not_allowed' },
      ])
      expect(app.events()).toEqual([])
    },
  )

  test("cannot go on with an app's document", async () => {
    const ios = app.publishable({ clientTarget: 'native_ios' })
    const phone = clientOf(app, ios, { sdk: { name: 'ios', version: '1', platform: 'ios' } })
    await phone.open()
    await phone.sendBatch(quiet)
    const sent = lastSent(app, 'batches')
    const { status, json } = await sendAgain(app, sent, {
      headers: { ...sent.headers, Authorization: `Bearer ${key}` },
    })
    expect([status, json.error.details.fields[0]?.name]).toEqual([422, 'sdk.platform'])
  })

  test("begin a session of a page's own with an app's resume token", async () => {
    const ios = app.publishable({ clientTarget: 'native_ios' })
    const sdk = { name: 'ios', version: '1', platform: 'ios' } as const
    const { resumeToken, sessionId } = await clientOf(app, ios, { sdk }).open()
    const resumed = await clientOf(app, key, { resumeToken }).open()
    expect(resumed.resumed).toBe(false)
    expect(resumed.sessionId).not.toBe(sessionId)
  })
})

describe('native keys', () => {
  test('open with the matching SDK, without a page, and post bodies', async () => {
    const ios = app.publishable({ clientTarget: 'native_ios' })
    const client = clientOf(app, ios, { sdk: { name: 'ios', version: '1', platform: 'ios' } })
    await client.open()
    expect((await client.sendBatch(quiet)).seq).toBe(1)
  })

  test.each(['web', 'android'] as const)('are refused to a %s SDK', async (platform) => {
    key = app.publishable({ clientTarget: 'native_ios' })
    const { status, json } = await open({ sdk: { name: 'x', version: '1', platform } })
    expect([status, json.error.code]).toEqual([403, 'auth.native_key_not_allowed'])
  })

  test('are refused to a page, which could not read the answer either', async () => {
    key = app.publishable({ clientTarget: 'native_ios' })
    const sdk = { name: 'ios', version: '1', platform: 'ios' }
    const { status, json, headers } = await open({ sdk }, { origin: 'https://shop.example' })
    expect([status, json.error.code]).toEqual([403, 'auth.native_key_not_allowed'])
    expect(headers['access-control-allow-origin']).toBeUndefined()
  })

  test('cannot go on with a document of another platform', async () => {
    const web = clientOf(app, key)
    await web.open()
    await web.sendBatch(quiet)
    const ios = app.publishable({ clientTarget: 'native_ios' })
    const sent = lastSent(app, 'batches')
    const { status, json } = await sendAgain(app, sent, {
      headers: { ...sent.headers, Authorization: `Bearer ${ios}` },
    })
    expect([status, json.error.code]).toEqual([403, 'auth.native_key_not_allowed'])
  })
})
