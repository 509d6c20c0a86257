import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createPool } from '../../infra/postgres/pool.ts'
import {
  type DeliveryEnvelope,
  generateDeliveryKeys,
  openEnvelope,
} from '../../infra/wire/delivery-envelope.ts'
import { dumpFolder } from '../support/dump.ts'
import { approveAsPerson } from '../support/gate-approve.ts'
import { createScanner } from '../support/secret-scan.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

let server: RunningTidegate
let dataDir = ''
beforeAll(async () => {
  dataDir = await mkdtemp(path.join(tmpdir(), 'tidegate-clean-stop-'))
  server = await startTidegate({ dataDir })
}, 120_000)
afterAll(() => rm(dataDir, { recursive: true, force: true }))

async function ask(
  method: string,
  where: string,
  { token, body }: { token?: string; body?: object } = {},
) {
  const answer = await fetch(`${server.baseUrl}/v1/gate/sessions${where}`, {
    method,
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  expect(answer.status).toBeLessThan(300)
  const { data }: { data: SessionData } = JSON.parse(await answer.text())
  return data
}

/** What the answers about a signup may have. */
interface SessionData {
  id: string
  poll_token: string
  delivery_bundle: { gate: DeliveryEnvelope }
}

/** A signup whose credentials wait for their agent. */
async function delivered() {
  const { privateKey, delivery } = generateDeliveryKeys()
  const body = { service_id: 'tidegate', account_name: 'Robin', delivery }
  const { id, poll_token: token } = await ask('POST', '', { body })
  expect(await approveAsPerson(server, id)).toBe(200)
  const { delivery_bundle } = await ask('GET', `/${id}`, { token })
  return { id, token, ackToken: openEnvelope(delivery_bundle.gate, privateKey).ack_token }
}

test('after a clean stop no file has the key of a delivery that has ended', async () => {
  const [ended, waiting] = [await delivered(), await delivered()]
  const pool = createPool({
    url: (await readFile(path.join(dataDir, 'database-url'), 'utf8')).trim(),
  })
  const { rows } = await pool.query<{ id: string; sealed: Buffer }>(
    'select gate_session_id as id, data_key_sealed as sealed from tidegate.gate_vault',
  )
  await pool.end()
  const keyOf = (id: string) => rows.find((row) => row.id === id)?.sealed ?? Buffer.alloc(0)
  const [gone, kept] = [keyOf(ended.id), keyOf(waiting.id)]
  await ask('POST', `/${ended.id}/ack`, { token: ended.token, body: { ack_token: ended.ackToken } })
  expect(await server.stop()).toBe(0)
  const scanner = createScanner([
    { name: 'ended', value: gone },
    { name: 'waiting', value: kept },
  ])
  const found = (await dumpFolder(dataDir, () => true)).flatMap((place) => scanner.scan(place))
  expect(new Set(found.map(({ secret }) => secret))).toEqual(new Set(['waiting']))
}, 180_000)
