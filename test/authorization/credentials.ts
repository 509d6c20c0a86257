import { defaultScopes, type Scope, scopes } from '../../infra/access/principal.ts'
import { rotateApiKey } from '../../services/organizations/commands.ts'
import {
  bearer,
  type Credential,
  credential,
  publishableKey,
  secretKey,
  type Tenants,
} from './credential.ts'
import { refusedCredentials } from './refused-credentials.ts'
import type { World } from './world.ts'

const graceMs = 24 * 60 * 60 * 1000
const shop = { origin: 'https://shop.example' }
const evil = { origin: 'https://evil.example' }

/** Every kind of credential, in a world whose clock this moves past the grace of a rotated key. */
export async function createCredentials(world: World, tenants: Tenants): Promise<Credential[]> {
  const pastGrace = await rotatedKey(world, tenants.own)
  world.now.ms += graceMs
  return [
    ...(await secretCredentials(world, tenants)),
    ...(await publishableCredentials(world, tenants)),
    ...(await nativeCredentials(world, tenants)),
    ...(await refusedCredentials(world, { ...tenants, pastGrace })),
  ]
}

async function secretCredentials(world: World, { own, other }: Tenants): Promise<Credential[]> {
  const headers = await secretKey(world, { organizationId: own })
  const narrow = await world.issue({ organizationId: own })
  return [
    credential('the right secret key', { headers }),
    credential('bearer in lower case', {
      headers: { authorization: headers.authorization.replace('B', 'b') },
    }),
    credential('secret key from a page', { headers: { ...headers, ...shop } }),
    credential('secret key rotating within its grace', {
      headers: bearer(await rotatedKey(world, own)),
    }),
    credential('secret key of another organization', {
      headers: await secretKey(world, { organizationId: other }),
      organization: 'other',
    }),
    credential('secret key of the other environment', {
      headers: await secretKey(world, { organizationId: own, environment: 'test' }),
      environment: 'test',
    }),
    credential('secret key with the default scopes', {
      headers: bearer(narrow.revealedKey),
      scopes: defaultScopes,
    }),
  ]
}

async function publishableCredentials(
  world: World,
  { own: organizationId, other }: Tenants,
): Promise<Credential[]> {
  const web = await publishableKey(world, { organizationId })
  const ofShop = { organizationId, allowed_origins: [shop.origin] }
  const restricted = await publishableKey(world, ofShop)
  const theirs = await publishableKey(world, { organizationId: other })
  const test = await publishableKey(world, { organizationId, environment: 'test' })
  const publishable = (name: string, headers: Credential['headers'], facts = {}) =>
    credential(name, { type: 'publishable', headers, ...facts })
  return [
    publishable('publishable key', web),
    publishable('publishable key from any page', { ...web, ...evil }),
    publishable('publishable key in the iOS SDK', web, { platform: 'ios' }),
    publishable('publishable key of another organization', theirs, { organization: 'other' }),
    publishable('publishable key of the other environment', test, { environment: 'test' }),
    publishable('restricted key from its page', { ...restricted, ...shop }),
    publishable(
      'restricted key from another page',
      { ...restricted, ...evil },
      { origin: 'wrong' },
    ),
    publishable('restricted key without Origin', restricted, { origin: 'wrong' }),
  ]
}

async function nativeCredentials(
  world: World,
  { own: organizationId }: Tenants,
): Promise<Credential[]> {
  const keyOf = (client_target: 'native_ios' | 'native_android') =>
    publishableKey(world, { organizationId, client_target })
  const [ios, android] = [await keyOf('native_ios'), await keyOf('native_android')]
  const native = (name: string, headers: Credential['headers'], facts: Partial<Credential>) =>
    credential(name, { type: 'publishable', headers, target: 'native_ios', ...facts })
  const ofAndroid = { target: 'native_android' } as const
  return [
    native('iOS key in its SDK', ios, { platform: 'ios' }),
    native('iOS key in the Android SDK', ios, { platform: 'android' }),
    native('iOS key in the web SDK', ios, { platform: 'web' }),
    native('iOS key from a page', { ...ios, ...shop }, { origin: 'wrong', platform: 'ios' }),
    native('Android key in its SDK', android, { ...ofAndroid, platform: 'android' }),
    native('Android key in the iOS SDK', android, { ...ofAndroid, platform: 'ios' }),
  ]
}

/** For each scope, a secret key that carries it and no other. */
export function createScopedKeys(world: World, organizationId: string): Promise<Credential[]> {
  const named = scopes.filter((scope): scope is Exclude<Scope, '*'> => scope !== '*')
  return Promise.all(
    named.map(async (scope) => {
      const headers = await secretKey(world, { organizationId, scopes: [scope] })
      return credential(`secret key with ${scope}`, { headers, scopes: [scope] })
    }),
  )
}

async function rotatedKey(world: World, organizationId: string): Promise<string> {
  const { keyId, revealedKey } = await world.issue({
    organizationId,
    type: 'secret',
    scopes: ['*'],
  })
  await rotateApiKey(world.deps, { organizationId, keyId, by: 'operator' })
  return revealedKey
}
