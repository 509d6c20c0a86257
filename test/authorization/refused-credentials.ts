import { randomBytes } from 'node:crypto'
import { generateApiKey } from '../../infra/crypto/api-keys.ts'
import { revokeApiKey } from '../../services/organizations/commands.ts'
import { setStatus } from '../support/organization-status.ts'
import {
  type Credential,
  credential,
  publishableKey,
  secretKey,
  type Tenants,
} from './credential.ts'
import type { World } from './world.ts'

type KeyType = 'secret' | 'publishable'

/** Credentials that every endpoint refuses. */
export async function refusedCredentials(
  world: World,
  { own, pastGrace }: Tenants & { pastGrace: string },
): Promise<Credential[]> {
  const { revealedKey } = await world.issue({ organizationId: own, type: 'secret', scopes: ['*'] })
  const invalid: [string, string][] = [
    ['Basic instead of Bearer', `Basic ${Buffer.from(revealedKey).toString('base64')}`],
    ['a key without its scheme', revealedKey],
    ['Bearer without a token', 'Bearer'],
    ['two tokens', `Bearer ${revealedKey} ${revealedKey}`],
    ['a token that is no key', 'Bearer nonsense'],
    ['an agent token', `Bearer agt_${'a'.repeat(40)}`],
    ['a key with a typo', `Bearer ${withTypo(revealedKey)}`],
    ['an unknown secret key', `Bearer ${unknownKey(world, 'secret')}`],
    ['an unknown publishable key', `Bearer ${unknownKey(world, 'publishable')}`],
    ['a revoked secret key', `Bearer ${await revokedKey(world, { own, type: 'secret' })}`],
    [
      'a revoked publishable key',
      `Bearer ${await revokedKey(world, { own, type: 'publishable' })}`,
    ],
    ['a secret key past its grace', `Bearer ${pastGrace}`],
  ]
  return [
    credential('no header', { flaw: 'missing' }),
    credential('an empty header', { flaw: 'missing', headers: { authorization: '' } }),
    ...invalid.map(([name, authorization]) =>
      credential(name, { flaw: 'invalid', headers: { authorization } }),
    ),
    ...(await keysOf(world, 'suspended')),
    ...(await keysOf(world, 'deleted')),
  ]
}

/** The keys of an organization that had this happen to it afterwards. */
async function keysOf(world: World, status: 'suspended' | 'deleted'): Promise<Credential[]> {
  const organizationId = await world.organization(`is-${status}`)
  const secret = await secretKey(world, { organizationId })
  const publishable = await publishableKey(world, { organizationId })
  await setStatus(world.deps, organizationId, status)
  return [
    credential(`secret key of a ${status} organization`, { flaw: 'inactive', headers: secret }),
    credential(`publishable key of a ${status} organization`, {
      flaw: 'inactive',
      headers: publishable,
    }),
  ]
}

async function revokedKey(
  world: World,
  { own, type }: { own: string; type: KeyType },
): Promise<string> {
  const request = type === 'secret' ? { type, scopes: ['*'] } : { type }
  const { keyId, revealedKey } = await world.issue({ organizationId: own, ...request })
  await revokeApiKey(world.deps, { organizationId: own, keyId, by: 'operator' })
  return revealedKey
}

function unknownKey({ deps: { keyring } }: World, type: KeyType): string {
  return generateApiKey({ type, environment: 'live', keyring, random: randomBytes }).key
}

function withTypo(key: string): string {
  return key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')
}
