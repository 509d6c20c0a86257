import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { expect, test } from 'vitest'
import { openToken, verifyToken } from '../../docs/examples/express/verify-token.js'
import { secretHashOf } from '../../infra/crypto/api-keys.ts'
import { sealToken } from '../../infra/wire/sealed-token.ts'
import vector from '../fixtures/sealed-token/vector.v2.json' with { type: 'json' }
import { startCluster } from '../support/cluster.ts'
import { createTestClient } from '../support/devices.ts'

const examples = path.resolve(import.meta.dirname, '../../docs/examples')

function sealed(id: string, at: number): string {
  const decision = { event_id: id, evaluated_at: new Date(at).toISOString(), verdict: 'human' }
  return sealToken({
    payload: { decision },
    secretHashes: ['sk_live_a', 'sk_live_b'].map(secretHashOf),
    random: randomBytes,
  })
}

test('the examples have the same verification', async () => {
  const [express, nextjs] = await Promise.all(
    ['express', 'nextjs'].map((name) =>
      readFile(path.join(examples, name, 'verify-token.js'), 'utf8'),
    ),
  )
  expect(nextjs).toBe(express)
})

test('it opens the published vector with each of its keys', () => {
  for (const key of vector.secretKeys) expect(openToken(vector.token, key)).toEqual(vector.payload)
})

test('it refuses another key, a changed or cut token, and what is none', () => {
  const token = sealed('evt_1', Date.now())
  const bytes = Buffer.from(token, 'base64')
  for (let at = 0; at < bytes.length - 92; at++) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(() => openToken(changed.toString('base64'), 'sk_live_a'), `byte ${at}`).toThrow()
  }
  expect(() => openToken(token, 'sk_live_c')).toThrow('sealed to other keys')
  // Of text behind the padding, base64 of Node reads nothing.
  const [cut, longer] = [bytes.subarray(0, -1), Buffer.concat([bytes, Buffer.alloc(3)])]
  for (const bad of [
    cut.toString('base64'),
    longer.toString('base64'),
    '',
    'no token',
    undefined,
    {},
  ])
    expect(() => openToken(bad, 'sk_live_a')).toThrow()
})

test('it takes a token once, and only while it is recent', () => {
  const token = sealed('evt_2', Date.now())
  expect(verifyToken(token, 'sk_live_b')).toMatchObject({ decision: { verdict: 'human' } })
  expect(() => verifyToken(token, 'sk_live_b')).toThrow('used before')
  for (const at of [Date.now() - 3_600_000, Date.now() + 3_600_000])
    expect(() => verifyToken(sealed('evt_3', at), 'sk_live_a')).toThrow('too old')
})

test('a secret key opens what is sealed from its issue to its revocation, at once', async () => {
  await using undo = new AsyncDisposableStack()
  const cluster = await startCluster()
  undo.defer(() => cluster.stop())
  const client = createTestClient(cluster)
  await client.open()
  const seal = async (elapsed_ms: number) =>
    (await client.requestResult({ version: 1, elapsed_ms })).sealedToken
  const keys = `/v1/organizations/${cluster.owner.organizationId}/api-keys`
  const before = await seal(1)
  const issue = { name: 'New', type: 'secret', environment: 'live', scopes: ['sessions:read'] }
  const key = await cluster.read<{ id: string; revealed_key: string }>(keys, { body: issue })
  const during = await seal(2)
  await cluster.read(`${keys}/${key.id}`, { method: 'DELETE' })
  const after = await seal(3)
  expect(openToken(during, key.revealed_key)).toMatchObject({ object: 'session_verification' })
  for (const token of [before, after])
    expect(() => openToken(token, key.revealed_key)).toThrow('sealed to other keys')
}, 60_000)
