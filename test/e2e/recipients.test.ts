import { deflateRawSync } from 'node:zlib'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openToken } from '../../docs/examples/express/verify-token.js'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { nodeClientCrypto } from '../../infra/wire/collect/node-client-crypto.ts'
import { headersOf } from '../../services/cli/simulate/generate/headers.ts'
import { planSession, webOnly } from '../../services/cli/simulate/generate/plan.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

let dev: RunningTidegate
beforeAll(async () => {
  dev = await startTidegate()
})
afterAll(() => dev?.stop())

/** A session of the reference client, which asks for results. */
async function openSession() {
  const plan = planSession('recipients', 0, webOnly)
  const client = createCollectClient({
    endpoint: dev.baseUrl,
    publishableKey: dev.credentials.live.publishable_key,
    sdk: plan.sdk,
    page: plan.page,
    crypto: nodeClientCrypto,
    deflate: (bytes: Uint8Array<ArrayBuffer>) => deflateRawSync(bytes),
    fetch: (path, request) =>
      fetch(path, { ...request, headers: { ...headersOf(plan), ...request.headers } }),
  })
  await client.open()
  for (const batch of plan.batches) await client.sendBatch(batch)
  return async () => (await client.requestResult(plan.closing)).sealedToken
}

async function callKeys<T>(method: string, path = '', body?: object): Promise<T> {
  const { organization_id, live } = dev.credentials
  const answer = await fetch(`${dev.baseUrl}/v1/organizations/${organization_id}/api-keys${path}`, {
    method,
    headers: {
      authorization: `Bearer ${live.secret_key}`,
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`)
  const { data }: { data: T } = JSON.parse(await answer.text())
  return data
}

it('a key opens tokens from its issue to its revocation, and those of before for good', async () => {
  const result = await openSession()
  const before = await result()
  const key = await callKeys<{ id: string; revealed_key: string }>('POST', '', {
    name: 'New',
    type: 'secret',
    environment: 'live',
    scopes: ['sessions:read'],
  })
  const during = await result()
  await callKeys('DELETE', `/${key.id}`)
  const after = await result()
  expect(openToken(during, key.revealed_key)).toMatchObject({ object: 'session_verification' })
  for (const token of [before, after])
    expect(() => openToken(token, key.revealed_key)).toThrow('sealed to other keys')
})
