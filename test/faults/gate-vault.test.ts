import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'
import { createPool } from '../../infra/postgres/pool.ts'
import {
  type DeliveryKeys,
  deliveryEnvelopeSchema,
  generateDeliveryKeys,
  openEnvelope,
} from '../../infra/wire/delivery-envelope.ts'
import { eventually } from '../support/eventually.ts'
import { consentProof } from '../support/gate-proof.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

let tidegate: RunningTidegate
beforeAll(async () => {
  tidegate = await startTidegate({ hasPostgres: true })
}, 60_000)
afterAll(() => tidegate?.stop())

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

const bundleSchema = z.object({ integrator: deliveryEnvelopeSchema, gate: deliveryEnvelopeSchema })

function opened(bundle: unknown, { privateKey }: DeliveryKeys) {
  const { integrator, gate } = bundleSchema.parse(bundle)
  return {
    outputs: openEnvelope(integrator, privateKey).outputs,
    ackToken: openEnvelope(gate, privateKey).ack_token,
  }
}

/** As when the kernel kills a process of it: all connections are lost, and what is not logged is emptied. */
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

test('after a crash of Postgres an agent picks up credentials that work, of the same account', async () => {
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
  const after = await poll()
  const { TIDEGATE_ORGANIZATION_ID: organization, TIDEGATE_SECRET_KEY: key = '' } = after.outputs
  expect(after.polled).toMatchObject({
    status: 'approved',
    gate_account_id: before.polled.gate_account_id,
  })
  expect(organization).toBe(before.outputs.TIDEGATE_ORGANIZATION_ID)
  await succeed(`organizations/${organization}`, { token: key })
  const former = { token: before.outputs.TIDEGATE_SECRET_KEY ?? '' }
  await eventually(async () =>
    expect((await ask(`organizations/${organization}`, former)).status).toBe(401),
  )
  await succeed(`gate/sessions/${id}/ack`, { token, body: { ack_token: after.ackToken } })
  expect((await ask(`gate/sessions/${id}`, { token })).status).toBe(410)
}, 120_000)
