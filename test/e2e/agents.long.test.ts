import path from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  type DirectoryServer,
  type Reply,
  startDirectory,
  startReverseDns,
} from '../services/scoring/identity/directory-server.ts'
import { desktopChrome } from '../services/scoring/support/snapshots.ts'
import { agentSignature, createAgentKey } from '../support/agent-signature.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { createTestClient } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { createRest } from '../support/rest.ts'
import { root } from '../support/test-projects.ts'

const key = createAgentKey()
const crawler = 'Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)'
const crawlerHost = 'spider-1.yandex.com'
// Address of a returned network, because documentation addresses are not looked up.
const crawlerAddress = '3ffe::1'

let agent: DirectoryServer
let dns: Awaited<ReturnType<typeof startReverseDns>>
let cluster: Cluster
const answer = Promise.withResolvers<Reply>()

beforeAll(async () => {
  agent = await startDirectory(() => answer.promise)
  const addresses = { 'agent.example': ['127.0.0.1'], [crawlerHost]: [crawlerAddress] }
  dns = await startReverseDns([crawlerHost], addresses)
  const env = {
    FIRST_PARTY_URLS: 'https://own.example',
    TRUSTED_PROXIES: '127.0.0.1',
    AGENT_LOOKUPS: 'on',
    PROGRAM: path.join(root, 'test/e2e/looking-up-inside.ts'),
    LOOKING_UP: JSON.stringify({ dnsServers: [dns.address], ca: agent.options.ca }),
  }
  cluster = await startCluster({ env })
}, 120_000)

afterAll(async () => {
  await cluster?.stop()
  await Promise.all([agent?.close(), dns?.close()])
})

/** The id of a session that hands off. */
async function visit(headers: Record<string, string>): Promise<string> {
  const client = createTestClient(cluster, { headers })
  const { sessionId } = await client.open()
  await client.sendBatch({ version: 1, elapsed_ms: 100, snapshot: desktopChrome.snapshot })
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
  return { ...agentSignature({ key, lines, created, nonce }), 'Signature-Agent': named }
}

const rest = () => createRest(cluster.baseUrl, cluster.owner.secret.key)

async function statusesOf(id: string) {
  const { web_bot_auth, agent: found } = await rest().session(id)
  return [web_bot_auth?.status, found?.status]
}

const handedOffAt = async (id: string) =>
  (await rest().sessions()).find((session) => session.id === id)?.facts?.handed_off_at

it('a signature is known by one more decision, once the directory of its agent has answered', async () => {
  const id = await visit(signed('one'))
  expect(await statusesOf(id)).toEqual(['unknown_key', 'declared'])
  const before = await rest().session(id)
  const at = await handedOffAt(id)
  answer.resolve({ body: JSON.stringify({ keys: [key.jwk] }) })
  await eventually(async () => expect(await statusesOf(id)).toEqual(['verified', 'signed']))
  const { decision, previous_decisions: earlier } = await rest().session(id)
  expect(decision).toMatchObject({ decision_status: 'final', automation_status: 'automated' })
  expect(earlier).toEqual([before.decision, ...before.previous_decisions])
  expect(at).toEqual(expect.any(String))
  expect(await handedOffAt(id)).toBe(at)
}, 120_000)

it('a crawler is verified by the host name of its address', async () => {
  const id = await visit({ 'user-agent': crawler, 'x-forwarded-for': crawlerAddress })
  await eventually(async () =>
    expect((await rest().session(id)).agent).toMatchObject({
      status: 'verified',
      provider: 'yandex',
      method: 'reverse_dns',
      evidence: { host_name: crawlerHost },
    }),
  )
}, 120_000)

it('what one process has fetched and a nonce that it has taken are known to another', async () => {
  await cluster.replace()
  const [again, next] = [await visit(signed('one')), await visit(signed('two'))]
  expect(await statusesOf(again)).toEqual(['invalid', 'declared'])
  expect(await statusesOf(next)).toEqual(['verified', 'signed'])
  expect(agent.requests).toEqual(['/.well-known/http-message-signatures-directory'])
}, 120_000)
