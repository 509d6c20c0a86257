import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { deflateRawSync } from 'node:zlib'
import { Agent, fetch as fetchBy, type RequestInit } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../infra/config.ts'
import { type ReservedPort, reservePort } from '../../infra/http/listening.ts'
import { nodeClientCrypto } from '../../infra/wire/collect/node-client-crypto.ts'
import { maxBodyBytes } from '../../infra/wire/collect/protocol.ts'
import { openToken } from '../../infra/wire/sealed-token.ts'
import { headersOf } from '../../services/cli/simulate/generate/headers.ts'
import { planSession, webOnlyMix } from '../../services/cli/simulate/generate/plan.ts'
import { respondWhileStarting } from '../../services/server/starting.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { createTestClient } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { type LocalServer, serveLocally } from '../support/local-server.ts'
import { needs } from '../support/needs.ts'
import { createReverseProxies, type ReverseProxies, recipe } from '../support/reverse-proxies.ts'
import { createAuthority } from '../support/tls-certificates.ts'

/** The client's own address: another one than the proxy's, on the same machine. */
const clientAddress = '127.0.0.2'
const forged = { 'x-forwarded-for': '203.0.113.9' }

let proxies: ReverseProxies
let cluster: Cluster
let client: Agent
let proxyHost: Agent

beforeAll(async () => {
  const authority = createAuthority()
  client = new Agent({ localAddress: clientAddress, connect: { ca: authority.ca } })
  proxyHost = new Agent()
  proxies = await createReverseProxies({
    certificate: authority.issue({ host: '127.0.0.1' }),
    answers: async (url) => (await request(`${url}/t.js`)).arrayBuffer(),
  })
  cluster = await startCluster({ env: { TRUSTED_PROXIES: '127.0.0.1/32' } })
}, 60_000)

afterAll(async () => {
  await Promise.all([client?.destroy(), proxyHost?.destroy()])
  await proxies?.stop()
  await cluster?.stop()
})

interface Visit {
  sessionId: string
  sealedToken: string
  cookie: string
}

/** A whole session by the reference client, from `from`. */
async function visit(
  endpoint: string,
  headers: Record<string, string> = {},
  from = client,
): Promise<Visit> {
  const plan = planSession('proxies', 1, webOnlyMix)
  let cookie = ''
  const own = { ...headersOf(plan), ...headers }
  const collect = createTestClient(cluster, {
    endpoint,
    sdk: plan.sdk,
    ...(plan.page && { page: plan.page }),
    crypto: nodeClientCrypto,
    deflate: (bytes: Uint8Array<ArrayBuffer>) => deflateRawSync(bytes),
    fetch: async (url, request) => {
      const answer = await fetchBy(url, {
        ...request,
        headers: { ...own, ...request.headers },
        dispatcher: from,
      })
      cookie ||= answer.headers.getSetCookie().join('\n')
      return answer
    },
  })
  const { sessionId } = await collect.open()
  for (const batch of plan.batches) await collect.sendBatch(batch)
  const { sealedToken } = await collect.requestResult(plan.closing)
  return { sessionId, sealedToken, cookie }
}

/** Returns the event of this type that was recorded when the session was opened. */
async function recorded(type: string, sessionId: string) {
  const place = ['--open', '--topic', 'tidegate.collect.v1', '--type', type, '--key', sessionId]
  const { stdout } = await cluster.cli(['events', ...place])
  const [line = '{}'] = stdout.trim().split('\n')
  return JSON.parse(line).data
}

const addressOf = async ({ sessionId }: Visit) =>
  (await recorded('DocumentOpened', sessionId)).ip_address
const request = (url: string, init: RequestInit = {}) =>
  fetchBy(url, { ...init, dispatcher: client })
const serverOf = () => new URL(cluster.baseUrl).host

describe('without a proxy', () => {
  it('the header of a stranger does not count, and that of a proxy does', async () => {
    const direct = `http://${serverOf()}`
    expect(await addressOf(await visit(direct, forged))).toBe(clientAddress)
    expect(await addressOf(await visit(direct, forged, proxyHost))).toBe('203.0.113.9')
  })
})

describe.each([
  ['nginx', needs('nginx')],
  ['caddy', needs('caddy')],
] as const)('the recipe for %s', (name, { it }) => {
  let url = ''
  beforeAll(async () => {
    url = await proxies[name](serverOf(), recipe(name))
  })

  it("records the client's address, whatever the client says of it", async () => {
    expect(await addressOf(await visit(url))).toBe(clientAddress)
    expect(await addressOf(await visit(url, forged))).toBe(clientAddress)
  })

  it('takes a hand-off, and lets the continuity cookie through both ways', async () => {
    const first = await visit(url)
    const { key: secretKey } = cluster.owner.secret
    expect(openToken(first.sealedToken, { secretKey })).toMatchObject({
      session_id: first.sessionId,
    })
    const [, value] =
      /^(__Host-sid=[\w-]+); Max-Age=86400; Path=\/; HttpOnly; Secure; SameSite=None; Partitioned$/.exec(
        first.cookie,
      ) ?? []
    expect(value).toBeDefined()
    const again = await visit(url, { cookie: `theme=dark; ${value}` })
    const { continuity_id } = await recorded('SessionOpened', first.sessionId)
    expect((await recorded('SessionOpened', again.sessionId)).continuity_ids).toEqual([
      continuity_id,
    ])
  })

  it('hides what is of a process, and serves the rest', async () => {
    for (const path of ['/metrics', '/livez', '/readyz', '/console', '/console/api/session'])
      expect([path, (await request(url + path)).status]).toEqual([path, 404])
    for (const path of ['/openapi.json', '/docs/operate/proxies.md', '/gate/assets/consent.css'])
      expect([path, (await request(url + path)).status]).toEqual([path, 200])
    const { headers } = await request(`${url}/t.js`)
    expect(headers.get('cache-control')).toContain('max-age=300')
    const known = { 'if-none-match': headers.get('etag') ?? '' }
    expect((await request(`${url}/t.js`, { headers: known })).status).toBe(304)
  })

  it('passes on the largest body that there may be', async () => {
    const { publishable } = cluster.owner
    const path = '/v2/collect/sessions/sid_00000000000000000000000001/documents/x/batches'
    const answer = await request(url + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/octet-stream',
        authorization: `Bearer ${publishable.key}`,
      },
      body: new Uint8Array(maxBodyBytes),
    })
    // Read whole, and refused for a header that is not there.
    expect(await answer.json()).toMatchObject({ error: { code: 'request.validation_failed' } })
  })
})

describe.each([
  ['nginx', needs('nginx')],
  ['caddy', needs('caddy')],
] as const)('with a process that starts, the recipe for %s', (name, { it }) => {
  let starting: ReservedPort
  let url = ''
  beforeAll(async () => {
    const config = readConfig({})
    starting = await reservePort(
      { port: 0, host: '127.0.0.1' },
      respondWhileStarting({ config, random: randomBytes }),
    )
    const both = { nginx: 'server $& max_fails=0; server ', caddy: '$& ' }[name]
    const text = recipe(name).replaceAll(
      /10\.0\.0\.1[123]:8787/g,
      `${both}127.0.0.1:${starting.port}`,
    )
    url = await proxies[name](serverOf(), text.replaceAll('server server', 'server'))
  })
  afterAll(() => starting.release())

  it('passes on to the next', async () => {
    // Caddy learns of it by its first look.
    const statuses = async () =>
      new Set(
        await Promise.all(
          Array.from({ length: 20 }, async () => (await request(`${url}/t.js`)).status),
        ),
      )
    await eventually(async () => expect(await statuses()).toEqual(new Set([200])))
    if (name === 'caddy') await visit(url)
  })

  it('passes on what is sent as well while a process refuses connections', async () => {
    await starting.release()
    for (let i = 0; i < 4; i++) await visit(url)
  })
})

needs('nginx').describe('the recipe for nginx on the address of the pages', () => {
  let echo: LocalServer
  let url = ''
  beforeAll(async () => {
    echo = await serveLocally((incoming, answer) => answer.end(JSON.stringify(incoming.headers)))
    const [upstreams] = recipe('nginx').split('\n\n')
    const text = `${upstreams}\n${recipe('nginx-same-origin')}`
    url = await proxies.nginx(new URL(echo.url).host, text)
  })
  afterAll(() => echo?.close())

  it.each([
    ['login=secret; __Host-sid=abc_DEF-1; theme=dark', '__Host-sid=abc_DEF-1'],
    ['__Host-sid=abc', '__Host-sid=abc'],
    ['login=secret', undefined],
    ['not__Host-sid=abc', undefined],
  ])('of the cookies %j it passes on %j', async (cookie, passed) => {
    const headers = {
      cookie,
      ...forged,
      'user-agent': 'Own/1',
      'accept-language': 'de',
      origin: 'https://shop.example',
    }
    const answer = await request(`${url}/v2/collect/sessions`, { method: 'POST', headers })
    const arrived: IncomingHttpHeaders = JSON.parse(await answer.text())
    expect(arrived.cookie).toBe(passed)
    expect(arrived).toMatchObject({
      'user-agent': 'Own/1',
      'accept-language': 'de',
      origin: 'https://shop.example',
      'x-forwarded-for': clientAddress,
      host: '127.0.0.1',
    })
  })
})
