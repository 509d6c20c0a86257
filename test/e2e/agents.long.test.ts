import { randomBytes } from 'node:crypto'
import pino from 'pino'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { z } from 'zod'
import { readConfig } from '../../infra/config.ts'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { createOrganization, issueApiKey } from '../../services/organizations/commands.ts'
import type { Core } from '../../services/server/dependencies.ts'
import { allRoles, type Role } from '../../services/server/roles.ts'
import { type Server, startServer } from '../../services/server/server.ts'
import { createDemo } from '../../services/web/routes.ts'
import {
  type DirectoryServer,
  type Reply,
  startDirectory,
  startReverseDns,
} from '../services/scoring/identity/directory-server.ts'
import { desktopChrome } from '../services/scoring/support/snapshots.ts'
import { agentSignature, createAgentKey } from '../support/agent-signature.ts'
import { eventually } from '../support/eventually.ts'
import { createTestDatabase, type TestDatabase } from '../support/postgres.ts'
import { createRest } from '../support/rest.ts'
import { startWebhookReceiver, type WebhookReceiver } from '../support/webhook-receiver.ts'

const agentKey = createAgentKey()
const good: Reply = { body: JSON.stringify({ keys: [agentKey.jwk] }) }
const masterKeys = randomBytes(32).toString('base64')
// Of a network that was given back and that nobody has, so that the name of nobody's machine is asked for.
const crawlerAddress = '3ffe::1'
const crawler = 'Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)'
const patient = { timeoutMs: 60_000, intervalMs: 100 }

let database: TestDatabase
let agent: DirectoryServer
let dns: Awaited<ReturnType<typeof startReverseDns>>
let receiver: WebhookReceiver
let answer: PromiseWithResolvers<Reply>
const servers: Server[] = []
const keys = { organizationId: '', publishable: '', secret: '' }

beforeAll(async () => {
  database = await createTestDatabase()
  answer = Promise.withResolvers<Reply>()
  agent = await startDirectory(() => answer.promise)
  receiver = await startWebhookReceiver()
  dns = await startReverseDns(['spider-1.yandex.com'], {
    'agent.example': ['127.0.0.1'],
    'spider-1.yandex.com': [crawlerAddress],
  })
  await start(allRoles, makeKeys)
}, 120_000)
afterAll(async () => {
  for (const server of servers.reverse()) await server.stop()
  await Promise.all([agent?.close(), dns?.close(), receiver?.close()])
  await database?.drop()
})

async function start(roles: readonly Role[], prepare: (core: Core) => Promise<void>): Promise<Server> {
  const config = readConfig({
    ...{ PORT: '0', FIRST_PARTY_URLS: 'https://own.example', TOPIC_PARTITIONS: '2' },
    ...{ TRUSTED_PROXIES: '127.0.0.1', WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8' },
  })
  const logger = pino({ level: 'silent' })
  const given = {
    config,
    databaseUrl: database.url,
    masterKeys,
    logger,
    clock: Date.now,
    random: randomBytes,
  }
  const server = await startServer({
    ...{ ...given, roles, lookingUp: { ...agent.options, dnsServers: [dns.address] } },
    async prepare(core, url) {
      await prepare(core)
      return createDemo({ publishableKey: keys.publishable, secretKey: keys.secret, baseUrl: () => url })
    },
  })
  servers.push(server)
  return server
}

async function makeKeys(core: Core): Promise<void> {
  const deps = { ...core, decide: core.decideAs({ type: 'operator', id: 'test' }) }
  const { organizationId } = await createOrganization(deps, { name: 'Acme', slug: 'acme' })
  const common = { organizationId, environment: 'live', by: 'operator' } as const
  const secret = await issueApiKey(deps, { ...common, name: 'Secret', type: 'secret', scopes: ['*'] })
  const page = await issueApiKey(deps, { ...common, name: 'Page', type: 'publishable' })
  Object.assign(keys, { organizationId, publishable: page.revealedKey, secret: secret.revealedKey })
}

const url = () => servers[0]?.url ?? ''

interface Visiting {
  headers?: Record<string, string>
  /** Default: the server that does everything. */
  at?: string
}

/** A session that hands off, as its back end sees it then. */
async function visit({ headers = {}, at = url() }: Visiting): Promise<string> {
  const { snapshot } = desktopChrome
  const client = createCollectClient({
    ...{ endpoint: at, publishableKey: keys.publishable, fetch, headers },
    ...{ sdk: { name: 'test', version: '1', platform: 'web' }, page: { url: 'https://shop.example/' } },
  })
  const { sessionId } = await client.open()
  await client.sendBatch({ version: 1, elapsed_ms: 100, snapshot })
  await client.requestResult({ version: 1, elapsed_ms: 200 })
  return sessionId
}

function signed(nonce: string): Record<string, string> {
  const named = `"${agent.origin}"`
  const lines: [string, string][] = [
    ['"@authority"', 'own.example'],
    ['"signature-agent"', named],
  ]
  const created = Math.floor(Date.now() / 1000)
  return { ...agentSignature({ key: agentKey, lines, created, nonce }), 'Signature-Agent': named }
}

const shown = (id: string) => createRest(url(), keys.secret).session(id)

async function statusesOf(id: string) {
  const { agent: found, web_bot_auth } = await shown(id)
  return [web_bot_auth?.status, found?.status, found?.provider]
}

async function post(path: string, body: object): Promise<unknown> {
  const response = await fetch(`${url()}/v1/organizations/${keys.organizationId}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${keys.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  expect(response.status).toBe(201)
  return response.json()
}

const delivered = z.object({
  data: z.object({
    session: z.object({ id: z.string() }),
    attribution: z.object({ agent: z.object({ status: z.string(), provider: z.string().nullable() }) }),
  }),
})

/** The agents of all webhook events about a session. */
const toldOf = (id: string) =>
  receiver.requests
    .map(({ body }) => delivered.parse(JSON.parse(body)).data)
    .flatMap(({ session, attribution }) => (session.id === id ? [attribution.agent] : []))

it('a signature is unknown_key, then signed by one more decision, and verified once its domain is trusted', async () => {
  const event_types = ['session.result.persisted']
  await post('/webhooks/endpoints', { name: 'Results', url: receiver.url('/'), event_types })
  const before = await visit({ headers: signed('one') })
  const domain = new URL(agent.origin).host
  expect(await statusesOf(before)).toEqual(['unknown_key', 'declared', domain])
  const { event_id } = (await shown(before)).decision
  answer.resolve(good)
  await eventually(
    async () => expect(await statusesOf(before)).toEqual(['verified', 'signed', domain]),
    patient,
  )
  const { decision } = await shown(before)
  expect(decision).toMatchObject({ decision_status: 'final', automation_status: 'automated' })
  expect(decision.event_id).not.toBe(event_id)
  await post('/agent-directories', { domain, name: 'Acme' })
  const after = await eventually(async () => {
    const id = await visit({ headers: signed(randomBytes(8).toString('hex')) })
    expect(await statusesOf(id)).toEqual(['verified', 'verified', 'Acme'])
    return id
  }, patient)
  expect((await shown(after)).decision.risk_score).toBe(70)
  expect(await statusesOf(before)).toEqual(['verified', 'signed', domain])
  await eventually(() => {
    expect(toldOf(before)).toMatchObject([{ status: 'declared', provider: domain }])
    expect(toldOf(after)).toMatchObject([{ status: 'verified', provider: 'Acme' }])
  }, patient)
  expect(agent.requests).toEqual(['/.well-known/http-message-signatures-directory'])
}, 180_000)

it('a crawler is declared, then verified by the host name of its address', async () => {
  const id = await visit({ headers: { 'user-agent': crawler, 'x-forwarded-for': crawlerAddress } })
  await eventually(async () => expect((await statusesOf(id))[1]).toBe('verified'), patient)
  expect((await shown(id)).agent).toMatchObject({
    ...{ provider: 'yandex', method: 'reverse_dns' },
    evidence: { host_name: 'spider-1.yandex.com' },
  })
  expect(dns.questions.every((question) => /agent\.example|yandex\.com|ip6\.arpa/.test(question))).toBe(true)
}, 180_000)

it('a nonce that one process has taken is invalid in another', async () => {
  const other = await start(['collect', 'scoring'], async () => {})
  const headers = signed('shared')
  const one = await visit({ headers })
  const two = await visit({ headers, at: other.url })
  const again = await visit({ headers })
  const all = await Promise.all([one, two, again].map(async (id) => (await statusesOf(id))[0]))
  expect(all).toEqual(['verified', 'invalid', 'invalid'])
}, 180_000)
