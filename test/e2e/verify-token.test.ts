import { expect, test } from 'vitest'
import { openToken } from '../../services/web/server-sdk/index.ts'
import { startCluster } from '../support/cluster.ts'
import { createTestClient } from '../support/devices.ts'

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
  const session = await openToken(during, key.revealed_key)
  expect(session).toMatchObject({ object: 'session_verification' })
  for (const token of [before, after])
    await expect(openToken(token, key.revealed_key)).rejects.toThrow(
      'sealed to the keys of another',
    )
}, 60_000)
