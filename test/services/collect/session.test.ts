import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { bankNumberOf } from '../../../infra/challenges/bank.ts'
import type { EngineQuestion } from '../../../infra/wire/collect/protocol.ts'
import { isSignedBy } from '../../../infra/wire/web-bot-auth/keys.ts'
import { agentSignature, createAgentKey } from '../../support/agent-signature.ts'
import { type CollectApp, clientOf, quiet, startCollectApp } from './collect-app.ts'

let app: CollectApp
let key: string

async function restart(options: Parameters<typeof startCollectApp>[0] = {}) {
  await app?.close()
  app = await startCollectApp(options)
  key = app.publishable()
}
beforeEach(() => restart())
afterEach(() => app.close())

const ios = { name: 'ios', version: '1', platform: 'ios' } as const

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

const document = () => app.eventsOf('DocumentOpened').at(-1)
const session = () => app.eventsOf('SessionOpened').at(-1)

describe('private engine questions', () => {
  const isOwn = ({ id }: EngineQuestion) => bankNumberOf(id) !== undefined

  test('are returned with the first batch of a document', async () => {
    const client = clientOf(app, key)
    expect((await client.open()).engineQuestions.filter(isOwn)).toEqual([])
    const first = await client.sendBatch(quiet)
    expect(first.engineQuestions.filter(isOwn)).toHaveLength(12)
    expect((await client.sendBatch(quiet)).engineQuestions).toEqual([])
  })

  test('are the same few for one address, and different for another', async () => {
    const questionIdsAt = async (remoteAddress: string) => {
      await restart({ remoteAddress })
      const questionIds = new Set<number>()
      for (let i = 0; i < 150; i++) {
        const client = clientOf(app, key)
        await client.open()
        for (const { id } of (await client.sendBatch(quiet)).engineQuestions) questionIds.add(id)
      }
      return questionIds
    }
    const [questions, otherQuestions] = [
      await questionIdsAt('127.0.0.1'),
      await questionIdsAt('192.0.2.7'),
    ]
    expect([questions.size, otherQuestions.size]).toEqual([40, 40])
    expect([...questions].filter((id) => otherQuestions.has(id)).length).toBeLessThan(12)
  })
})

describe('opening a session', () => {
  test('records the session and its document, without secrets that a dump of the log would reveal', async () => {
    const { json } = await open()
    expect(app.log.records).toHaveLength(2)
    expect(session()).toMatchObject({
      session_id: json.sessionId,
      platform: 'web',
      sdk_name: 'test-sdk',
      continuity_ids: [],
    })
    expect(document()).toMatchObject({
      session_id: json.sessionId,
      resumed: false,
      challenge: json.challenge,
      timing_nonce: json.timingNonce,
      url: 'https://shop.example/',
      referrer: null,
    })
    const dump = app.log.records.map(({ value }) => value.toString('latin1')).join()
    expect(dump).not.toContain(json.documentId)
    expect(dump).not.toContain(json.resumeToken)
  })

  test('sets the continuity cookie for this host only, HttpOnly', async () => {
    const cookie = String((await open()).headers['set-cookie'])
    expect(cookie).toMatch(
      /^__Host-sid=[\w-]+; Max-Age=86400; Path=\/; HttpOnly; Secure; SameSite=None; Partitioned$/,
    )
  })

  test('records the request as the edge saw it', async () => {
    await restart({ edge: { trustedProxies: ['127.0.0.1'], edgeHeaders: { ja4: 'x-ja4' } } })
    const ja4 = 't13d1517h2_8daaf6152771_cb7bf5808d99'
    await open(
      {},
      {
        'user-agent': 'UA/1',
        'accept-language': 'de-DE',
        'sec-ch-ua': '"Chromium";v="1"',
        'x-ja4': ja4,
        'x-forwarded-for': '203.0.113.9',
      },
    )
    expect(document()).toMatchObject({
      user_agent: 'UA/1',
      ip_address: '203.0.113.9',
      accept_language: 'de-DE',
      client_hints: { 'sec-ch-ua': '"Chromium";v="1"' },
      header_order: expect.arrayContaining(['sec-ch-ua', 'authorization']),
      ja4,
      http2_fingerprint: null,
    })
  })

  test.each([
    ['"https://AGENT.example.:443/"', 'agent.example'],
    ['sig1="http://other.example", sig2="https://agent.example";type=jwks_uri', 'agent.example'],
    ['"https://agent.example", "https://other.example"', null],
    ['"http://agent.example"', null],
  ])('with a Signature-Agent header %j records the host %j', async (header, host) => {
    await open({}, { 'signature-agent': header })
    expect(document()).toMatchObject({ signature_agent: host })
  })

  test('records everything that a signature check needs, with the agent that signed', async () => {
    const agentKey = createAgentKey()
    const agent = '"https://agent.example"'
    const signed = agentSignature({
      key: agentKey,
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
    expect(document()).toMatchObject({
      signature_agent: 'agent.example',
      signature: {
        status: 'signed',
        signed: {
          directory: 'https://agent.example/.well-known/http-message-signatures-directory',
          key_id: agentKey.keyId,
          request_hash: expect.stringMatching(/^[0-9a-f]{64}$/),
        },
      },
    })
    const recorded = document()?.signature?.signed
    const bytes = Buffer.from(recorded?.bytes ?? '', 'base64')
    expect(isSignedBy(agentKey.jwk.x, { base: recorded?.bases[0] ?? '', bytes })).toBe(true)
  })

  test.each([
    ['203.0.113.9', false, '203.0.113.9'],
    ['::FFFF:203.0.113.9', false, '203.0.113.9'],
    ['::ffff:cb00:7109', false, '::ffff:cb00:7109'],
    ['2001:db8:7:8::9', false, '2001:db8:7:8::9'],
    ['203.0.113.9', true, '203.0.113.0'],
    ['::ffff:203.0.113.9', true, '203.0.113.0'],
    ['2001:db8:7:8::9', true, '2001:db8:7::'],
  ])(
    'the address %s, with shortened addresses: %s, is %s in all events',
    async (remoteAddress, shortensAddresses, recorded) => {
      await restart({ remoteAddress })
      const client = clientOf(app, app.publishable({ shortensAddresses }))
      await client.open()
      await client.sendBatch(quiet)
      await client.requestResult(quiet)
      const types = ['DocumentOpened', 'BatchReceived', 'ResultRequested'] as const
      const events = types.flatMap((type) => app.eventsOf(type))
      expect(events.map((data) => data.ip_address)).toEqual(Array(3).fill(recorded))
      if (recorded !== remoteAddress) expect(JSON.stringify(events)).not.toContain(remoteAddress)
    },
  )

  test.each([
    ['clientPublicKey', { clientPublicKey: 'short' }],
    ['clientPublicKey', { clientPublicKey: undefined }],
    ['clientPublicKey', { clientPublicKey: Buffer.alloc(32).toString('base64url') }],
    ['sdk.platform', { sdk: { name: 'x', version: '1', platform: 'tv' } }],
    ['sdk.name', { sdk: { name: 'a\0b', version: '1', platform: 'web' } }],
    ['sdk', { sdk: undefined }],
    ['page', { page: undefined }],
    ['page', { page: null }],
    ['page.url', { page: { url: '/relative' } }],
    ['page.referrer', { page: { url: 'https://shop.example/', referrer: {} } }],
  ])('rejects an invalid %s with 422 and appends nothing', async (name, changes) => {
    const { status, json } = await open(changes)
    expect([status, json.error.details.fields]).toMatchObject([422, [{ name }]])
    expect(app.log.records).toEqual([])
  })

  test.each([
    [`https://u:p@shop.example/a?${'q'.repeat(4000)}`, 'https://shop.example/a'],
    ['garbage', null],
    [null, null],
  ])('a referrer of %.30s is recorded as %s', async (referrer, stored) => {
    const { status } = await open({ page: { url: 'https://shop.example/', referrer } })
    expect([status, document()?.referrer]).toEqual([200, stored])
  })

  test('an app without a page is recorded at about:blank, and null counts as absent', async () => {
    key = app.publishable({ clientTarget: 'native_ios' })
    const { status, json } = await open({
      resumeToken: null,
      continuity: null,
      page: null,
      sdk: ios,
    })
    expect([status, json.resumed]).toEqual([200, false])
    expect(document()).toMatchObject({ url: 'about:blank', referrer: null })
    expect(session()).toMatchObject({ continuity_ids: [] })
  })
})

describe('resuming', () => {
  test('documents of one session have separate keys and sequences', async () => {
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
    expect(app.eventsOf('SessionOpened')).toHaveLength(1)
    const documents = app.eventsOf('DocumentOpened')
    expect(documents.map(({ session_id }) => session_id)).toEqual(Array(3).fill(opened.sessionId))
  })

  test('a resume token expires 24 hours after the session opened, however often it was renewed', async () => {
    const opened = await clientOf(app, key).open()
    app.now.ms += 24 * 60 * 60 * 1000 - 1
    const resumed = await clientOf(app, key, { resumeToken: opened.resumeToken }).open()
    expect(resumed.resumed).toBe(true)
    app.now.ms += 2
    const after = await clientOf(app, key, { resumeToken: resumed.resumeToken }).open()
    expect(after.resumed).toBe(false)
    expect(after.sessionId).not.toBe(opened.sessionId)
  })

  test.each<[string, (opened: { resumeToken: string; documentId: string }) => string]>([
    ['has padding', ({ resumeToken }) => `${resumeToken}=`],
    ['ends with a line feed', ({ resumeToken }) => `${resumeToken}\n`],
    ['has a space in it', ({ resumeToken }) => resumeToken.replace(/(?<=^.{9})/, ' ')],
    ['is a document id', ({ documentId }) => documentId],
    ['is nonsense', () => 'nonsense'],
    ['is empty', () => ''],
    ['is long', () => 'A'.repeat(1024)],
  ])('a token that %s starts a new session', async (_, changed) => {
    const { json } = await open()
    const again = await open({ resumeToken: changed(json) })
    expect(again).toMatchObject({ status: 200, json: { resumed: false } })
    expect(again.json.sessionId).not.toBe(json.sessionId)
  })

  test.each([
    ['another organization', { organizationId: 'org_00000000000000000000000009' as const }],
    ['another environment', { environment: 'test' as const }],
  ])('a token of %s starts a new session with another continuity scope', async (_, principal) => {
    const { json } = await open()
    key = app.publishable(principal)
    const foreign = await open({ resumeToken: json.resumeToken })
    expect(foreign.json.resumed).toBe(false)
    expect(foreign.json.sessionId).not.toBe(json.sessionId)
    expect(foreign.json.continuityScope).not.toBe(json.continuityScope)
  })

  test("a page with an app's resume token starts a new session", async () => {
    const native = clientOf(app, app.publishable({ clientTarget: 'native_ios' }), { sdk: ios })
    const { resumeToken, sessionId } = await native.open()
    const { json } = await open({ resumeToken })
    expect(json.resumed).toBe(false)
    expect(json.sessionId).not.toBe(sessionId)
  })
})

describe('continuity', () => {
  async function stateId(options = {}): Promise<string> {
    const client = clientOf(app, key, options)
    await client.open()
    return (await client.sendBatch(quiet)).fingerprint?.state.id ?? ''
  }

  test('the state id of a session links the next one, which keeps the same id', async () => {
    await stateId({ continuity: await stateId() })
    const [first, second] = app.eventsOf('SessionOpened')
    expect(first?.continuity_ids).toEqual([])
    expect(second?.continuity_ids).toEqual([first?.continuity_id])
    expect(second?.continuity_id).toBe(first?.continuity_id)
  })

  test('the cookie takes precedence over the id stored by a script', async () => {
    const cookie = String((await open()).headers['set-cookie']).split(';')[0] ?? ''
    await open({ continuity: await stateId() }, { cookie: `a=1; ${cookie}; b=2` })
    const [byCookie, byStorage, both] = app.eventsOf('SessionOpened')
    expect(both?.continuity_ids).toEqual([byCookie?.continuity_id, byStorage?.continuity_id])
    expect(both?.continuity_id).toBe(byCookie?.continuity_id)
  })

  test('a forged id or one of another organization is ignored', async () => {
    const continuity = await stateId()
    key = app.publishable({ organizationId: 'org_00000000000000000000000009' })
    await open({ continuity }, { cookie: '__Host-sid=made-up' })
    expect(session()?.continuity_ids).toEqual([])
  })

  test('the scope is the same for every session of an organization and environment', async () => {
    expect((await open()).json.continuityScope).toBe((await open()).json.continuityScope)
  })
})
