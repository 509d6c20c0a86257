import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { deflateRawSync } from 'node:zlib'
import pg from 'pg'
import { Agent, fetch as fetchBy } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { answersOf } from '../../bench/recorded-answers.ts'
import { freePort } from '../../infra/local/free-port.ts'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { nodeClientCrypto } from '../../infra/wire/collect/node-client-crypto.ts'
import { headersOf } from '../../services/cli/simulate/generate/headers.ts'
import { planSession, type SessionPlan, webOnly } from '../../services/cli/simulate/generate/plan.ts'
import { eventually } from '../support/eventually.ts'
import { createRest } from '../support/rest.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'
import { createAuthority } from '../support/tls-certificates.ts'

const authority = createAuthority()
const folder = mkdtempSync(path.join(tmpdir(), 'tidegate-tls-'))
const [certFile, keyFile] = [path.join(folder, 'tls.pem'), path.join(folder, 'tls.key')]
let server: RunningTidegate
let endpoint = ''

const start = () => {
  const env = { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, TLS_PORT: new URL(endpoint).port }
  return startTidegate({ env, dataDir: path.join(folder, 'data') })
}

beforeAll(async () => {
  const { cert, key } = authority.issue({ host: 'localhost' })
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key)
  endpoint = `https://localhost:${await freePort()}`
  server = await start()
}, 60_000)

afterAll(async () => {
  await server?.stop()
  rmSync(folder, { recursive: true })
})

/** What a session of the plan, with answers as its browser gives them, says of its connection. */
async function connectionOf(plan: SessionPlan, agent: Agent) {
  const { live } = server.credentials
  const headers = headersOf(plan)
  const collect = createCollectClient({
    ...{ endpoint, publishableKey: live.publishable_key, sdk: plan.sdk, page: plan.page },
    ...{ crypto: nodeClientCrypto, deflate: (bytes: Uint8Array<ArrayBuffer>) => deflateRawSync(bytes) },
    fetch: (url, request) =>
      fetchBy(url, { ...request, headers: { ...headers, ...request.headers }, dispatcher: agent }),
  })
  const opened = await collect.open()
  const [{ snapshot, ...first }, ...others] = plan.batches
  const proofs = answersOf(headers['User-Agent'] ?? '', opened)
  await collect.sendBatch({ ...first, snapshot: { ...snapshot, proofs } })
  for (const batch of others) await collect.sendBatch(batch)
  await collect.requestResult(plan.closing)
  await agent.close()
  return (await createRest(server.baseUrl, live.secret_key).session(opened.sessionId)).connection_fingerprint
}

describe.each([
  ['HTTP/1.1', false],
  ['HTTP/2', true],
])('a whole session over TLS and %s', (_, allowH2) => {
  it('is scored, with the JA4 of its connection', async () => {
    const agent = new Agent({ allowH2, connect: { ca: authority.ca } })
    const connection = await connectionOf(planSession('tls', 1, webOnly), agent)
    // The client names HTTP/1.1 first in both.
    expect(connection?.ja4.hash).toMatch(/^t13d\d{4}h1_[0-9a-f]{12}_[0-9a-f]{12}$/)
  })
})

describe('which engine begins TLS in some way', () => {
  const plans = Array.from({ length: 150 }, (_, n) =>
    planSession('speakers', n, { ...webOnly, bots: 0, returning: 0 }),
  )
  const chromes = plans.filter(({ family }) => family === 'chrome-windows')
  const firefox = plans.find(({ family }) => family === 'firefox-windows')
  // Nobody has recorded a program that offers these alone.
  const ciphers = 'TLS_CHACHA20_POLY1305_SHA256:ECDHE-ECDSA-CHACHA20-POLY1305'

  /** From one of ten networks. */
  function spokenBy(plan: SessionPlan | undefined, network = 0) {
    if (!plan) throw new Error('there are too few plans')
    const localAddress = `127.0.${network % 10}.1`
    return connectionOf(plan, new Agent({ localAddress, connect: { ca: authority.ca, ciphers } }))
  }

  async function visitorsBehind(): Promise<number[]> {
    const client = new pg.Client(readFileSync(path.join(folder, 'data/database-url'), 'utf8').trim())
    await client.connect()
    const { rows } = await client
      .query(
        `select json_array_length(visitors::json) as count from read.answers where question = 'handshake'`,
      )
      .finally(() => client.end())
    return rows.map(({ count }) => count)
  }

  it('is known after a restart, once twenty visitors from ten networks did', async () => {
    const before = await spokenBy(chromes[0])
    expect(before).toMatchObject({ user_agent_alignment: 'unknown', ja4: { family: null } })
    await Promise.all(chromes.slice(1, 20).map((plan, n) => spokenBy(plan, n)))
    await eventually(async () => expect(await visitorsBehind()).toContain(20))
    await server.stop()
    server = await start()
    const ja4 = { hash: before?.ja4.hash, family: 'chromium', confidence: 'learned' }
    await eventually(async () =>
      expect(await spokenBy(chromes[20])).toMatchObject({ user_agent_alignment: 'match', ja4 }),
    )
    expect(await spokenBy(firefox)).toMatchObject({ user_agent_alignment: 'mismatch', ja4 })
  }, 120_000)
})
