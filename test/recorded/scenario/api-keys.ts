import { type Data, json } from '../http.ts'
import { bearer, type World } from '../world.ts'

const name = 'Key'
const secret = { name, type: 'secret', scopes: ['sessions:read'] }
const origin = 'https://shop.example'

/** API keys: made of every kind, listed, changed, rotated, revoked. */
export async function apiKeys(world: World): Promise<void> {
  const { recordEach, recordMalformed, own, live, test } = world
  const create = `POST ${own}/api-keys`
  await recordMalformed('create key', create, () => live)
  await refusedKeys(world)
  await recordEach('create key', create, live, {
    'of a name alone': { name },
    'with scopes': { ...secret, scopes: ['sessions:read', 'sessions:read', 'api_keys:read'] },
    publishable: { name, type: 'publishable' },
    'with origins': {
      name,
      allowed_origins: ['https://Shop.example/', 'https://*.shop.example', origin],
    },
  })
  const local = { name, environment: 'test', allowed_origins: ['http://localhost:3000'] }
  await recordEach('create key', create, test, { 'of the test environment': local })
  await recordEach('create key', create, live, {
    'for iOS': { name, client_target: 'native-ios' },
    'for Android': { name, type: 'publishable', client_target: 'native-android' },
  })
  await lists(world)
  await changes(world)
  await rotations(world)
  await revocations(world)
}

async function refusedKeys({ recordEach, own, live }: World): Promise<void> {
  const many = Array.from({ length: 51 }, (_, i) => `https://a${i}.example`)
  await recordEach('create key', `POST ${own}/api-keys`, live, {
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
    'secret with origins': { ...secret, allowed_origins: [origin] },
    'secret with a target': { ...secret, client_target: 'native-ios' },
    'native with origins': { name, client_target: 'native-ios', allowed_origins: [origin] },
    'origin with a path': { name, allowed_origins: ['https://shop.example/path'] },
    'origin of http': { name, allowed_origins: [origin, 'http://shop.example'] },
    'origin of a whole domain': { name, allowed_origins: ['https://*.example'] },
    'origins of another type': { name, allowed_origins: [7] },
    'too many origins': { name, allowed_origins: many },
    'unknown member': { name, rate_limit: 5 },
  })
}

async function lists({ record, own, live, test }: World): Promise<void> {
  const list = (what: string, query: string, headers = live) =>
    record(`list keys: ${what}`, `GET ${own}/api-keys${query}`, headers)
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
  await record('cursor of another list', `GET /v1/sessions?cursor=${cursor}`, live)
}

const made = async ({ ask, own, live }: World, body: object): Promise<Data> =>
  json(await ask(`POST ${own}/api-keys`, live, body)).data

const unknownIds = { unknown: `key_${'0'.repeat(26)}`, malformed: 'nonsense' }

async function changes(world: World): Promise<void> {
  const { own, live, record, recordEach } = world
  const secretKey = await made(world, { ...secret, name: 'To be changed' })
  const browserKey = await made(world, { name: 'To be changed', type: 'publishable' })
  await recordEach('update secret key', `PATCH ${own}/api-keys/${secretKey.id}`, live, {
    'nothing in it': {},
    'empty name': { name: '' },
    'another name': { name: ' Changed ' },
    'other scopes': { scopes: ['sessions:list'] },
    'no scope': { scopes: [] },
    'unknown scope': { scopes: ['everything'] },
    origins: { allowed_origins: [origin] },
    type: { type: 'publishable' },
  })
  await recordEach('update publishable key', `PATCH ${own}/api-keys/${browserKey.id}`, live, {
    origins: { allowed_origins: ['https://shop.example:8443/'] },
    'no origin': { allowed_origins: [] },
    'origin that is none': { allowed_origins: ['shop.example'] },
    scopes: { scopes: ['sessions:read'] },
    'all at once': { name: 'Both', allowed_origins: [origin] },
  })
  for (const [what, id] of Object.entries(unknownIds))
    await record(`update ${what} key`, `PATCH ${own}/api-keys/${id}`, live, { name })
}

async function rotations(world: World): Promise<void> {
  const { record, own, live } = world
  const old = await made(world, { ...secret, name: 'To be rotated', scopes: ['*'] })
  const path = `${own}/api-keys/${old.id}`
  const rotate = `POST ${path}/rotations`
  await record('rotate with a body', rotate, live, { name })
  await record('rotate with a list', rotate, live, [])
  const once = { ...live, 'idempotency-key': 'rotation' }
  const replacement = await world.read('rotate', rotate, once)
  await record('rotate, repeated', rotate, once)
  await record('rotate, repeated with an empty object', rotate, once, {})
  await record('rotate again', rotate, live)
  await record('rotating key is renamed', `PATCH ${path}`, live, { name })
  await record('rotated key in its grace', `GET ${own}`, bearer(old.revealed_key))
  await record('replacement', `GET ${own}`, bearer(replacement.revealed_key))
  for (const [what, id] of Object.entries(unknownIds))
    await record(`rotate ${what} key`, `POST ${own}/api-keys/${id}/rotations`, live)
}

async function revocations(world: World): Promise<void> {
  const { record, own, live, organizations } = world
  const key = await made(world, { ...secret, name: 'To be revoked', scopes: ['*'] })
  const path = `${own}/api-keys/${key.id}`
  await record('revoke with a body', `DELETE ${path}`, live, { force: true })
  await record('revoke with an empty object', `DELETE ${path}`, live, {})
  await record('revoke again', `DELETE ${path}`, live)
  await record('revoked key', `GET ${own}`, bearer(key.revealed_key))
  await record('revoked key is renamed', `PATCH ${path}`, live, { name })
  await record('revoked key is rotated', `POST ${path}/rotations`, live)
  for (const [what, id] of Object.entries(unknownIds))
    await record(`revoke ${what} key`, `DELETE ${own}/api-keys/${id}`, live)
  const { id, secret: headers } = organizations.foreign
  const foreignPath = `/v1/organizations/${id}/api-keys/${key.id}`
  await record('revoke a key of another organization', `DELETE ${foreignPath}`, headers)
}
