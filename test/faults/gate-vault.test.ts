import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPool } from '../../infra/postgres/pool.ts'
import { type DeliveryKeys, openEnvelope } from '../../infra/wire/delivery-envelope.ts'
import { bundleSchema } from '../../services/gate/vault.ts'
import { eventually } from '../support/eventually.ts'
import { approveOverHttp, askGate, requestSignup } from '../support/gate-approve.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const dataDir = temporaryFolder('vault')
let tidegate: RunningTidegate
beforeAll(async () => {
  tidegate = await startTidegate({ dataDir })
}, 60_000)
afterAll(() => tidegate?.stop())

/** Polls until credentials are there, as who is told to retry does. */
const delivered = (id: string, token: string) =>
  eventually(
    async () => {
      const { status, data } = await askGate(tidegate.baseUrl, `sessions/${id}`, { token })
      if (status >= 300) throw new Error(`the poll was answered with ${status}`)
      return data.delivery_bundle
    },
    { timeoutMs: 60_000, intervalMs: 2100 },
  )

function opened(bundle: unknown, { privateKey }: DeliveryKeys) {
  const { integrator, gate } = bundleSchema.parse(bundle)
  return {
    outputs: openEnvelope(integrator, privateKey).outputs,
    ackToken: openEnvelope(gate, privateKey).ack_token,
  }
}

/** As when the kernel kills a process of it: all connections are lost, and Postgres recovers from its WAL. */
async function crashPostgres(): Promise<void> {
  const url = (await readFile(path.join(tidegate.dataDir, 'database-url'), 'utf8')).trim()
  const pool = createPool({ url, max: 2 })
  const [victim, witness] = [await pool.connect(), await pool.connect()]
  const ended = new Promise<void>((resolve) => witness.once('end', resolve))
  const { rows } = await victim.query<{ pid: number }>('select pg_backend_pid() as pid')
  process.kill(rows[0]?.pid ?? Number.NaN, 'SIGKILL')
  // Until then the others may still be served.
  await ended
  for (const client of [victim, witness]) client.release(true)
  await eventually(() => pool.query('select 1'), { timeoutMs: 60_000 })
  await pool.end()
}

test('credentials that wait outlive a crash of Postgres and a kill of the server, and nobody makes others', async () => {
  const { id, pollToken: token, keys } = await requestSignup(tidegate.baseUrl)
  const approval = { gateSessionId: id, account_name: 'Robin' }
  const approved = await approveOverHttp({ baseUrl: tidegate.baseUrl, ...approval })
  expect(approved.status).toBe(200)

  const before = await delivered(id, token)
  await crashPostgres()
  expect(await delivered(id, token)).toEqual(before)
  const { outputs, ackToken } = opened(before, keys)
  const organization = `${tidegate.baseUrl}/v1/organizations/${outputs.TIDEGATE_ORGANIZATION_ID}`
  const headers = { authorization: `Bearer ${outputs.TIDEGATE_SECRET_KEY}` }
  await eventually(async () => expect((await fetch(organization, { headers })).status).toBe(200))

  await tidegate.kill()
  tidegate = await startTidegate({ dataDir })
  expect(await delivered(id, token)).toEqual(before)
  const ack = { token, body: { ack_token: ackToken } }
  expect((await askGate(tidegate.baseUrl, `sessions/${id}/ack`, ack)).status).toBe(200)
  expect(await askGate(tidegate.baseUrl, `sessions/${id}`, { token })).toMatchObject({
    status: 410,
    code: 'gate.delivery_consumed',
  })
}, 180_000)
