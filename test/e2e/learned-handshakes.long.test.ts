import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { deflateRawSync } from 'node:zlib'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { answersOf } from '../../bench/recorded-answers.ts'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { nodeClientCrypto } from '../../infra/wire/collect/node-client-crypto.ts'
import { headersOf } from '../../services/cli/simulate/generate/headers.ts'
import {
  planSession,
  type SessionPlan,
  webOnly,
} from '../../services/cli/simulate/generate/plan.ts'
import { eventually } from '../support/eventually.ts'
import { createRest } from '../support/rest.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'tidegate-handshakes-'))
let server: RunningTidegate

const start = () => {
  const env = { TRUSTED_PROXIES: '127.0.0.1', EDGE_HEADERS: 'ja4=X-JA4' }
  return startTidegate({ env, dataDir: path.join(folder, 'data') })
}

beforeAll(async () => {
  server = await start()
}, 60_000)

afterAll(async () => {
  await server?.stop()
  rmSync(folder, { recursive: true })
})

/** Sends a session of the plan as an edge would, and returns what it says of its connection. */
async function connectionOf(plan: SessionPlan, edge: Record<string, string>) {
  const { live } = server.credentials
  const headers = headersOf(plan)
  const collect = createCollectClient({
    endpoint: server.baseUrl,
    publishableKey: live.publishable_key,
    sdk: plan.sdk,
    page: plan.page,
    crypto: nodeClientCrypto,
    deflate: (bytes: Uint8Array<ArrayBuffer>) => deflateRawSync(bytes),
    fetch: (url, request) =>
      fetch(url, { ...request, headers: { ...headers, ...request.headers, ...edge } }),
  })
  const opened = await collect.open()
  const [{ snapshot, ...first }, ...others] = plan.batches
  const proofs = answersOf(headers['User-Agent'] ?? '', opened)
  const { engineQuestions } = await collect.sendBatch({
    ...first,
    snapshot: { ...snapshot, proofs },
  })
  const { engine_answers } = answersOf(headers['User-Agent'] ?? '', { ...opened, engineQuestions })
  for (const batch of others) await collect.sendBatch({ ...batch, engine_answers })
  await collect.requestResult({ ...plan.closing, engine_answers })
  return (await createRest(server.baseUrl, live.secret_key).session(opened.sessionId))
    .connection_fingerprint
}

const chromium = 't13d1517h2_8daaf6152771_cb7bf5808d99'

it('has the JA4 that its edge says, and none that anybody else does', async () => {
  const plan = planSession('edge', 1, webOnly)
  const edge = { 'x-ja4': chromium, 'x-forwarded-for': '203.0.113.9' }
  expect((await connectionOf(plan, edge))?.ja4.hash).toBe(chromium)
  expect((await connectionOf(plan, { 'x-ja4': chromium }))?.ja4.hash).toBeNull()
  expect((await connectionOf(plan, { 'x-forwarded-for': '203.0.113.9' }))?.ja4.hash).toBeNull()
})

describe('which engine begins TLS in some way', () => {
  const plans = Array.from({ length: 600 }, (_, n) =>
    planSession('speakers', n, { ...webOnly, bots: 0, returning: 0 }),
  )
  const chromes = plans.filter(({ family }) => family === 'chrome-windows')
  const firefox = plans.find(({ family }) => family === 'firefox-windows')
  // No recorded program begins like this.
  const unrecorded = 't13d0212h1_0123456789ab_ba9876543210'

  /** From one of sixty networks. */
  function spokenBy(plan: SessionPlan | undefined, network = 0) {
    if (!plan) throw new Error('there are too few plans')
    const address = `127.0.${network % 60}.1`
    return connectionOf(plan, { 'x-ja4': unrecorded, 'x-forwarded-for': address })
  }

  async function query(text: string) {
    const client = new pg.Client(
      readFileSync(path.join(folder, 'data/database-url'), 'utf8').trim(),
    )
    await client.connect()
    return client.query(text).finally(() => client.end())
  }

  async function visitorsBehind(): Promise<number> {
    const { rows } = await query(
      `select max(json_array_length(visitors::json)) as count from read.answers where question = 'handshake'`,
    )
    return rows[0].count ?? 0
  }

  // Visits of a test all come within an hour, or two.
  const spreadOverHours = () =>
    query(`update read.answers set organizations = (
        select json_object_agg(tag, seen::jsonb || '{"hours": [1, 2, 3, 4, 5, 6]}')::text
        from json_each(organizations::json) as of(tag, seen)) where question = 'handshake'`)

  async function restart(): Promise<void> {
    await server.stop()
    server = await start()
  }

  it('is known after a restart, once twenty visitors with natural input from ten networks did, in six hours', async () => {
    const before = await spokenBy(chromes[0])
    expect(before).toMatchObject({ user_agent_alignment: 'unknown', ja4: { family: null } })
    const visits = chromes.slice(1, 90).entries()
    // Some ten at a time, because the server has two cores here.
    const send = async () => {
      for (const [n, plan] of visits) await spokenBy(plan, n)
    }
    await Promise.all(Array.from({ length: 10 }, send))
    await eventually(async () => expect(await visitorsBehind()).toBeGreaterThanOrEqual(20))
    await restart()
    expect(await spokenBy(chromes[90])).toMatchObject({ user_agent_alignment: 'unknown' })
    await spreadOverHours()
    await restart()
    const ja4 = { hash: unrecorded, family: 'chromium', confidence: 'learned' }
    await eventually(async () =>
      expect(await spokenBy(chromes[91])).toMatchObject({ user_agent_alignment: 'match', ja4 }),
    )
    expect(await spokenBy(firefox)).toMatchObject({ user_agent_alignment: 'mismatch', ja4 })
  }, 120_000)
})
