import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPool } from '../../infra/postgres/pool.ts'
import {
  type DeliveryKeys,
  generateDeliveryKeys,
  openEnvelope,
} from '../../infra/wire/delivery-envelope.ts'
import { bundleSchema } from '../../services/gate/vault.ts'
import { eventually } from '../support/eventually.ts'
import { consentProof } from '../support/gate-proof.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

let tidegate: RunningTidegate
let dataDir = ''
beforeAll(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'tidegate-vault-'))
  tidegate = await startTidegate({ dataDir })
}, 60_000)
afterAll(async () => {
  await tidegate?.stop()
  await rm(dataDir, { recursive: true, force: true })
})

interface Ask {
  token?: string
  body?: object
}

async function ask(place: string, { token, body }: Ask = {}) {
  const response = await fetch(`${tidegate.baseUrl}/v1/${place}`, {
    method: body ? 'POST' : 'GET',
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: JSON.parse(await response.text()) }
}

/** Asks until it succeeds, as who is told to retry does. */
async function succeed(place: string, asked?: Ask) {
  return eventually(
    async () => {
      const { status, body } = await ask(place, asked)
      if (status >= 300) throw new Error(`${place}: ${status} ${JSON.stringify(body)}`)
      return body.data
    },
    { timeoutMs: 60_000, intervalMs: 2100 },
  )
}

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
  const keys = generateDeliveryKeys()
  const body = { service_id: 'tidegate', account_name: 'Robin', delivery: keys.delivery }
  const { id, poll_token: token } = await succeed('gate/sessions', { body })
  const { approve_token } = await succeed(`gate/sessions/${id}/consent`)
  const { sealedToken } = await consentProof({
    baseUrl: tidegate.baseUrl,
    gateSessionId: id,
    approveToken: String(approve_token),
  })
  const approval = { approve_token, sealed_token: sealedToken, account_name: body.account_name }
  await succeed(`gate/sessions/${id}/approve`, { body: approval })
  const poll = async () => {
    const polled = await succeed(`gate/sessions/${id}`, { token })
    return { polled, ...opened(polled.delivery_bundle, keys) }
  }

  const before = await poll()
  await crashPostgres()
  expect((await poll()).polled.delivery_bundle).toEqual(before.polled.delivery_bundle)
  const { TIDEGATE_ORGANIZATION_ID: organization, TIDEGATE_SECRET_KEY: key = '' } = before.outputs
  await succeed(`organizations/${organization}`, { token: key })

  await tidegate.kill()
  tidegate = await startTidegate({ dataDir })
  const after = await poll()
  expect(after.polled.delivery_bundle).toEqual(before.polled.delivery_bundle)
  await succeed(`gate/sessions/${id}/ack`, { token, body: { ack_token: after.ackToken } })
  const { status, body: answer } = await ask(`gate/sessions/${id}`, { token })
  expect([status, answer.error.code]).toEqual([410, 'gate.delivery_consumed'])
}, 180_000)
