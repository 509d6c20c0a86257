import type { Data } from '../http.ts'
import { json } from '../http.ts'
import { bearer, type World } from '../world.ts'
import { withBodies, withoutBody } from './many.ts'

const name = 'Key'
const secret = { name, type: 'secret', scopes: ['sessions:read'] }

/** API keys: made of every kind, listed, changed, rotated, revoked. */
export async function apiKeys(world: World): Promise<void> {
  const create = { method: 'POST', path: `${world.own}/api-keys`, headers: world.live }
  await withoutBody(world, { name: 'create key', ...create })
  await refusedKeys(world)
  await withBodies(
    world,
    { name: 'create key', ...create },
    {
      'of a name alone': { name },
      'with scopes': { ...secret, scopes: ['sessions:read', 'sessions:read', 'api_keys:read'] },
      publishable: { name, type: 'publishable' },
      'with origins': {
        name,
        allowed_origins: [
          'https://Shop.example/',
          'https://*.shop.example',
          'https://shop.example',
        ],
      },
    },
  )
  await withBodies(
    world,
    { name: 'create key', ...create, headers: world.test },
    {
      'of the test environment': {
        name,
        environment: 'test',
        allowed_origins: ['http://localhost:3000'],
      },
    },
  )
  await withBodies(
    world,
    { name: 'create key', ...create },
    {
      'for iOS': { name, client_target: 'native-ios' },
      'for Android': { name, type: 'publishable', client_target: 'native-android' },
    },
  )
  await lists(world)
  await changes(world)
  await rotations(world)
  await revocations(world)
}

async function refusedKeys(world: World): Promise<void> {
  const create = { method: 'POST', path: `${world.own}/api-keys`, headers: world.live }
  await withBodies(
    world,
    { name: 'create key', ...create },
    {
      'nothing in it': {},
      'empty name': { name: '' },
      'long name': { name: 'x'.repeat(101) },
      'unknown type': { name, type: 'public' },
      'unknown environment': { name, environment: 'staging' },
      'another environment': { name, environment: 'test' },
      'unknown target': { name, client_target: 'ios' },
      'scopes without a type': { name, scopes: ['sessions:read'] },
      'secret without scopes': { name, type: 'secret' },
      'no scope': { ...secret, scopes: [] },
      'unknown scope': { ...secret, scopes: ['sessions:read', 'everything'] },
      'scopes of another type': { ...secret, scopes: 'sessions:read' },
      'publishable with scopes': { name, type: 'publishable', scopes: ['sessions:read'] },
      'secret with origins': { ...secret, allowed_origins: ['https://shop.example'] },
      'secret with a target': { ...secret, client_target: 'native-ios' },
      'native with origins': {
        name,
        client_target: 'native-ios',
        allowed_origins: ['https://shop.example'],
      },
      'origin with a path': { name, allowed_origins: ['https://shop.example/path'] },
      'origin of http': { name, allowed_origins: ['https://shop.example', 'http://shop.example'] },
      'origin of a whole domain': { name, allowed_origins: ['https://*.example'] },
      'origins of another type': { name, allowed_origins: [7] },
      'too many origins': {
        name,
        allowed_origins: Array.from({ length: 51 }, (_, i) => `https://a${i}.example`),
      },
      'unknown member': { name, rate_limit: 5 },
    },
  )
}

async function lists({ record, own, live, test }: World): Promise<void> {
  const list = (what: string, query: string, headers = live) =>
    record({ name: `list keys: ${what}`, method: 'GET', path: `${own}/api-keys${query}`, headers })
  await list('all', '')
  await list('by a test key', '', test)
  const first = await list('three', '?limit=3')
  const { next_cursor: cursor } = json(first).pagination
  await list('the next three', `?limit=3&cursor=${cursor}`)
  await list('another limit', `?limit=200&cursor=${cursor}`)
  await list('limit of 0', '?limit=0')
  await list('limit of 201', '?limit=201')
  await list('limit of a word', '?limit=many')
  await list('two limits', '?limit=1&limit=2')
  await list('no limit', '?limit=')
  await list('offset', '?offset=10')
  await list('unknown query', '?color=red')
  await list('cursor that is none', '?cursor=nonsense')
  await list('empty cursor', '?cursor=')
  await list('changed cursor', `?limit=3&cursor=${cursor}A`)
  await record({
    name: 'cursor of another list',
    method: 'GET',
    path: `/v1/sessions?cursor=${cursor}`,
    headers: live,
  })
}

const made = async ({ quiet, own, live }: World, body: object): Promise<Data> =>
  json(await quiet({ method: 'POST', path: `${own}/api-keys`, headers: live, body })).data

const unknownIds = { unknown: `key_${'0'.repeat(26)}`, malformed: 'nonsense' }

async function changes(world: World): Promise<void> {
  const { own, live, record } = world
  const secretKey = await made(world, { ...secret, name: 'To be changed' })
  const browserKey = await made(world, { name: 'To be changed', type: 'publishable' })
  const update = (id: string) => ({ method: 'PATCH', path: `${own}/api-keys/${id}`, headers: live })
  await withBodies(
    world,
    { name: 'update secret key', ...update(secretKey.id) },
    {
      'nothing in it': {},
      'empty name': { name: '' },
      'another name': { name: ' Changed ' },
      'other scopes': { scopes: ['sessions:list'] },
      'no scope': { scopes: [] },
      'unknown scope': { scopes: ['everything'] },
      origins: { allowed_origins: ['https://shop.example'] },
      type: { type: 'publishable' },
    },
  )
  await withBodies(
    world,
    { name: 'update publishable key', ...update(browserKey.id) },
    {
      origins: { allowed_origins: ['https://shop.example:8443/'] },
      'no origin': { allowed_origins: [] },
      'origin that is none': { allowed_origins: ['shop.example'] },
      scopes: { scopes: ['sessions:read'] },
      'all at once': { name: 'Both', allowed_origins: ['https://shop.example'] },
    },
  )
  for (const [what, id] of Object.entries(unknownIds)) {
    await record({ name: `update ${what} key`, ...update(id), body: { name } })
  }
}

async function rotations(world: World): Promise<void> {
  const { record, own, live } = world
  const old = await made(world, { ...secret, name: 'To be rotated', scopes: ['*'] })
  const rotate = { method: 'POST', path: `${own}/api-keys/${old.id}/rotations`, headers: live }
  await record({ name: 'rotate with a body', ...rotate, body: { name } })
  await record({ name: 'rotate with a list', ...rotate, body: [] })
  const headers = { ...live, 'idempotency-key': 'rotation' }
  const replacement = await world.read({ name: 'rotate', ...rotate, headers })
  await record({ name: 'rotate, repeated', ...rotate, headers })
  await record({ name: 'rotate, repeated with an empty object', ...rotate, headers, body: {} })
  await record({ name: 'rotate again', ...rotate })
  await record({
    name: 'rotating key is renamed',
    method: 'PATCH',
    path: `${own}/api-keys/${old.id}`,
    headers: live,
    body: { name },
  })
  const get = { method: 'GET', path: own }
  await record({ name: 'rotated key in its grace', ...get, headers: bearer(old.revealed_key) })
  await record({ name: 'replacement', ...get, headers: bearer(replacement.revealed_key) })
  for (const [what, id] of Object.entries(unknownIds)) {
    await record({ name: `rotate ${what} key`, ...rotate, path: `${own}/api-keys/${id}/rotations` })
  }
}

async function revocations(world: World): Promise<void> {
  const { record, own, live, organizations } = world
  const key = await made(world, { ...secret, name: 'To be revoked', scopes: ['*'] })
  const revoke = { method: 'DELETE', path: `${own}/api-keys/${key.id}`, headers: live }
  await record({ name: 'revoke with a body', ...revoke, body: { force: true } })
  await record({ name: 'revoke with an empty object', ...revoke, body: {} })
  await record({ name: 'revoke again', ...revoke })
  await record({ name: 'revoked key', method: 'GET', path: own, headers: bearer(key.revealed_key) })
  await record({ name: 'revoked key is renamed', ...revoke, method: 'PATCH', body: { name } })
  await record({
    name: 'revoked key is rotated',
    ...revoke,
    method: 'POST',
    path: `${revoke.path}/rotations`,
  })
  for (const [what, id] of Object.entries(unknownIds)) {
    await record({ name: `revoke ${what} key`, ...revoke, path: `${own}/api-keys/${id}` })
  }
  const { foreign } = organizations
  const path = `/v1/organizations/${foreign.id}/api-keys/${key.id}`
  await record({
    name: 'revoke a key of another organization',
    ...revoke,
    path,
    headers: foreign.secret,
  })
}
