import type { Headers } from '../http.ts'
import { bearer, type World } from '../world.ts'

interface Operation {
  operationId: string
  security: Record<string, string[]>[]
  'x-required-scope'?: string
}

interface Described {
  name: string
  method: string
  /** As the description writes it. */
  template: string
  path: string
  keyType: string | undefined
  scope: string | undefined
}

const preflightPaths = [
  '/v2/collect/sessions',
  '/v2/collect/sessions/sid_x/documents/doc/batches',
  '/v2/collect/sessions/sid_x/documents/doc/results',
  '/v2/collect/network-checks',
  '/v2/collect/pings/p1',
  '/v2/collect/unknown',
]
const origin = { origin: 'https://shop.example.com' }

/** Every operation of the description with every kind of credential that does not open it, and other methods. */
export async function access(world: World): Promise<void> {
  const operations = await describedOperations(world)
  await unknownMethods(world, operations)
  await preflights(world)
  await badCredentials(world)
  const narrow = await world.key({ name: 'Narrow' })
  const { publishable_key: publishable } = world.credentials.live
  const { foreign } = world.organizations
  for (const { name, method, path, keyType, scope } of operations.filter((one) => one.keyType)) {
    const body = method === 'GET' ? undefined : {}
    const send = (credential: string, headers: Headers) =>
      world.record(`${name} with ${credential}`, `${method} ${path}`, headers, body)
    await send('no credential', {})
    if (keyType === 'publishableKey') await send('a secret key', world.live)
    else await send('a publishable key', bearer(publishable))
    if (scope !== undefined) await send('a narrow key', narrow)
    if (path.startsWith(world.own)) await send('a key of another organization', foreign.secret)
  }
}

async function describedOperations({ ask, own }: World): Promise<Described[]> {
  const { body } = await ask('GET /openapi.json')
  const document: { paths: Record<string, Record<string, Operation>> } = JSON.parse(
    body.toString('utf8'),
  )
  const values: Record<string, string> = {
    '/v1/organizations/{organizationId}': own,
    '{sessionId}': `sid_${'0'.repeat(26)}`,
    '{visitorId}': `vid_${'0'.repeat(26)}`,
    '{keyId}': `key_${'0'.repeat(26)}`,
    '{endpointId}': `we_${'0'.repeat(32)}`,
    '{eventId}': `evt_${'0'.repeat(26)}`,
    '{gateSessionId}': `gate_${'0'.repeat(26)}`,
    '{serviceId}': 'tidegate',
    '{documentId}': 'x'.repeat(80),
    '{pingId}': 'p1',
  }
  const filled = (path: string) =>
    Object.entries(values).reduce((text, [name, value]) => text.replace(name, value), path)
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: operation.operationId,
      method: method.toUpperCase(),
      template: path,
      path: filled(path),
      keyType: Object.keys(operation.security[0] ?? {})[0],
      scope: operation['x-required-scope'],
    })),
  )
}

async function unknownMethods({ record }: World, operations: Described[]): Promise<void> {
  const paths = new Map(operations.map(({ template, path }) => [template, path]))
  for (const [template, path] of paths) await record(`PUT ${template}`, `PUT ${path}`)
  for (const method of ['DELETE', 'POST', 'OPTIONS', 'TRACE'])
    await record(`${method} /v1/sessions`, `${method} /v1/sessions`)
}

async function preflights({ record }: World): Promise<void> {
  const asks = {
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'authorization',
  }
  for (const path of preflightPaths) {
    await record(`preflight ${path}`, `OPTIONS ${path}`, { ...origin, ...asks })
    await record(`preflight without origin ${path}`, `OPTIONS ${path}`)
  }
  await record('stray path of collect', 'GET /v2/collect/unknown', origin)
  await record('stray method of collect', 'GET /v2/collect/sessions', origin)
}

async function badCredentials(world: World): Promise<void> {
  const { record, live, credentials, organizations } = world
  const key = credentials.live.secret_key
  const typo = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0')
  const values: Record<string, string> = {
    'an empty header': '',
    'Basic instead of Bearer': `Basic ${Buffer.from('user:password').toString('base64')}`,
    'a key without its scheme': key,
    'Bearer without a token': 'Bearer',
    'two tokens': `Bearer ${key} ${key}`,
    'a token that is no key': 'Bearer nonsense',
    'a key with a typo': `Bearer ${typo}`,
    'an agent token': `Bearer agt_${'a'.repeat(40)}`,
    'bearer in lower case': `bearer ${key}`,
    'a suspended organization': organizations.suspended.secret.authorization ?? '',
    'a deleted organization': organizations.deleted.secret.authorization ?? '',
  }
  for (const [name, authorization] of Object.entries(values))
    await record(`sessions with ${name}`, 'GET /v1/sessions', { authorization })
  await record('secret key from a page', 'GET /v1/sessions', { ...live, ...origin })
  const others = {
    unknown: `org_${'0'.repeat(26)}`,
    malformed: 'nonsense',
    foreign: organizations.foreign.id,
  }
  for (const [name, id] of Object.entries(others))
    await record(`${name} organization`, `GET /v1/organizations/${id}`, live)
}
