import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Environment } from '../../../../schemas/events.ts'
import { disableService, verifyService } from '../../../../services/gate/registry/commands.ts'
import { createRegistryList } from '../../../../services/gate/registry/routes.ts'
import { issueApiKey } from '../../../../services/organizations/commands.ts'
import {
  type GateTenant,
  gateOwner,
  gateTenant,
  registration,
} from '../../../support/gate-world.ts'
import { setStatus } from '../../../support/organization-status.ts'
import { publicUrl, type Send } from '../../../support/service-app.ts'
import { publishedSchema } from '../../readback/contract.ts'
import { type Services, startServices } from './services-app.ts'

const managed = publishedSchema('GateManagedServiceResponse')
const managedList = publishedSchema('GateManagedServiceListResponse')
const registryList = publishedSchema('GateRegistryListResponse')
const registryEntry = publishedSchema('GateRegistryEntryResponse')

let world: Services
let own: GateTenant

beforeAll(async () => {
  world = await startServices()
})
beforeEach(async () => {
  own = await gateTenant(world.deps)
})
afterAll(() => world?.stop())

const services = '/v1/gate/services'
const newId = () => `acme-${randomBytes(6).toString('hex')}`

function bodyFor(tenant: GateTenant, more: object = {}) {
  const { organizationId: _, environment: __, ...body } = registration(tenant)
  return { id: newId(), ...body, ...more }
}

function create(body: object = bodyFor(own), options: Partial<Send> = {}) {
  world.now.ms += 1
  return world.send({ method: 'POST', url: services, key: own.secretKey, body, ...options })
}

const one = (id: string, options: Partial<Send> = {}) =>
  world.send({ url: `${services}/${id}`, key: own.secretKey, ...options })
const patch = (id: string, body: object, options: Partial<Send> = {}) =>
  one(id, { method: 'PATCH', body, ...options })
const list = async (key = own.secretKey) => (await world.send({ url: services, key })).body.data

async function created(more: object = {}): Promise<string> {
  const { status, body } = await create(bodyFor(own, more))
  expect(status, JSON.stringify(body)).toBe(201)
  return body.data.id
}

async function keyOf(environment: Environment, scopes = ['*']): Promise<string> {
  const asked = {
    organizationId: own.organizationId,
    environment,
    name: 'Key',
    type: 'secret',
  } as const
  return (await issueApiKey(world.deps, { ...asked, scopes, by: 'operator' })).revealedKey
}

const errorOf = ({
  body,
}: {
  body: { error: { code: string; details?: { fields?: { name: string }[] } } }
}) => [body.error.code, ...(body.error.details?.fields ?? []).map(({ name }) => name)].join(' ')

describe('creating', () => {
  test('answers the service, active, with what was said and nothing else', async () => {
    const request = bodyFor(own)
    const { status, body } = await create(request)
    expect(status).toBe(201)
    expect(managed.parse(body)).toBeDefined()
    const at = new Date(world.now.ms).toISOString()
    const { webhook_endpoint_id, ...said } = request
    expect(body.data).toEqual({
      object: 'gate_service',
      ...said,
      status: 'active',
      docs_url: 'https://acme.example',
      sdks: [],
      branding: { verified: false },
      consent: {},
      webhook_endpoint_id,
      created_at: at,
      updated_at: at,
    })
    expect((await one(request.id)).body.data).toEqual(body.data)
  })

  test('is neither discoverable nor a dashboard unless it is said', async () => {
    const { discoverable: _, dashboard_login_url: __, ...request } = bodyFor(own)
    const { data } = (await create(request)).body
    expect(data.discoverable).toBe(false)
    expect(data).not.toHaveProperty('dashboard_login_url')
    expect((await world.send({ url: `/v1/gate/registry/${data.id}` })).status).toBe(404)
  })

  test('takes all that is writable', async () => {
    const everything = {
      docs_url: 'https://acme.example/docs',
      sdks: [{ label: 'npm', install: 'npm i acme', url: 'https://acme.example/sdk' }],
      branding: {
        logo_url: 'https://acme.example/logo.svg',
        primary_color: '#abc',
        secondary_color: '#AABBCCDD',
        ascii_art: ' /\\ ',
      },
      consent: { terms_url: 'https://acme.example/t', privacy_url: 'https://acme.example/p' },
    }
    const { body } = await create(bodyFor(own, everything))
    expect(body.data).toMatchObject(everything)
    expect(managed.parse(body)).toBeDefined()
  })

  test.each(['id', 'name', 'description', 'website', 'webhook_endpoint_id'])(
    'needs %s',
    async (member) => {
      const { status, body } = await create({ ...bodyFor(own), [member]: undefined })
      expect([status, body.error.code]).toEqual([422, 'gate.validation_failed'])
      expect(body.error.details).toMatchObject({
        fields: [{ name: member, issue: 'required' }],
        parameter_set: 'gate_service_create',
      })
    },
  )

  test.each([
    [{ status: 'disabled' }, 'status'],
    [{ verified: true }, 'verified'],
    [{ object: 'gate_service' }, 'object'],
    [{ created_at: '2026-01-01T00:00:00.000Z' }, 'created_at'],
    [{ organization_id: 'org_1' }, 'organization_id'],
    [{ login_url: 'https://acme.example' }, 'login_url'],
    [{ branding: { verified: true } }, 'branding.verified'],
    [{ consent: { scopes: ['mail'] } }, 'consent.scopes'],
    [{ consent: { copy: 'Yes?' } }, 'consent.copy'],
    [
      { env_vars: [{ name: 'a', key: 'A', secret: true, dashboard_login: true }] },
      'env_vars.0.dashboard_login',
    ],
  ])('refuses %j', async (more, member) => {
    const { status, body } = await create(bodyFor(own, more))
    expect([status, body.error.code]).toEqual([422, 'gate.validation_failed'])
    expect(body.error.details.fields).toEqual([{ name: member, issue: 'not_allowed' }])
  })

  test('names the member that does not fit', async () => {
    const cases: [object, string][] = [
      [{ id: 'registry' }, 'id'],
      [{ website: 'http://acme.example' }, 'website'],
      [{ env_vars: [{ name: 'Path', key: 'Path', secret: false }] }, 'env_vars.0.key'],
      [{ name: 7 }, 'name'],
      [{ docs_url: null }, 'docs_url'],
    ]
    for (const [more, member] of cases) {
      expect(errorOf(await create(bodyFor(own, more)))).toBe(`gate.validation_failed ${member}`)
    }
  })

  test('needs an endpoint of the organization and environment that is told of approvals', async () => {
    const foreign = await gateTenant(world.deps)
    const elsewhere = await gateTenant(world.deps, { environment: 'test' })
    for (const id of [foreign.endpointId, elsewhere.endpointId, 'we_1', 'we_\0', ''])
      expect(errorOf(await create(bodyFor(own, { webhook_endpoint_id: id })))).toBe(
        'gate.validation_failed webhook_endpoint_id',
      )
  })

  test('repeated with its Idempotency-Key answers the same, even where the answer was lost', async () => {
    const body = bodyFor(own)
    const repeat = () => create(body, { headers: { 'idempotency-key': `key-${body.id}` } })
    const first = await repeat()
    const second = await repeat()
    await world.loseAnswers()
    const third = await repeat()
    expect([second, third].map(({ status, body }) => [status, body.data])).toEqual(
      Array(2).fill([201, first.body.data]),
    )
    expect(errorOf(await create(body))).toBe('request.conflict id')
    expect(await list()).toHaveLength(1)
  })

  test('an id is given once, whoever has it, and after its service is disabled, too', async () => {
    const id = await created()
    const other = await gateTenant(world.deps, { environment: 'test' })
    const claim = (id: string) => create(bodyFor(other, { id }), { key: other.secretKey })
    expect(errorOf(await claim(id))).toBe('request.conflict id')
    await one(id, { method: 'DELETE' })
    expect(errorOf(await claim(id))).toBe('request.conflict id')
    const system = await claim('tidegate')
    expect([system.status, errorOf(system)]).toEqual([409, 'request.conflict id'])
  })

  test('an id that shares the variable of its agent tokens with another is taken, too', async () => {
    const id = await created()
    for (const alike of ['_', '--', '-_']) {
      const { status, body } = await create(bodyFor(own, { id: id.replace('-', alike) }))
      expect([status, errorOf({ body })]).toEqual([409, 'request.conflict id'])
      expect(body.error.message).toContain('_GATE_AGENT_TOKEN')
    }
  })

  test('five are all an organization has, whatever their environment and status', async () => {
    const testOwner = { ...own, environment: 'test', secretKey: await keyOf('test') } as const
    for (let i = 0; i < 4; i++) await one(await created(), { method: 'DELETE' })
    const fifth = await create()
    expect(fifth.status).toBe(201)
    for (const { secretKey: key } of [own, testOwner]) {
      const { status, body } = await create(bodyFor(own), { key })
      expect([status, body.error.code, body.error.details.next_action]).toEqual([
        409,
        'request.conflict',
        'contact_support',
      ])
    }
    expect(await list()).toHaveLength(5)
    expect(await list(testOwner.secretKey)).toEqual([])
  })
})

describe('changing', () => {
  test('replaces what is named as a whole, and says when', async () => {
    const branding = { logo_url: 'https://acme.example/logo.svg', primary_color: '#abc' }
    const id = await created({ branding })
    const before = (await one(id)).body.data
    world.now.ms += 1000
    const { status, body } = await patch(id, {
      name: 'Acme Post',
      branding: { primary_color: '#def' },
    })
    expect(status).toBe(200)
    expect(managed.parse(body)).toBeDefined()
    expect(body.data).toEqual({
      ...before,
      name: 'Acme Post',
      branding: { primary_color: '#def', verified: false },
      updated_at: new Date(world.now.ms).toISOString(),
    })
    world.now.ms += 1000
    expect((await patch(id, { name: 'Acme Post' })).body.data).toEqual(body.data)
  })

  test('null takes the dashboard login and the documentation away', async () => {
    const id = await created({ docs_url: 'https://acme.example/docs' })
    const { data } = (await patch(id, { dashboard_login_url: null, docs_url: null })).body
    expect(data).not.toHaveProperty('dashboard_login_url')
    expect(data.docs_url).toBe('https://acme.example')
  })

  test('refuses what cannot be changed, and nothing at all', async () => {
    const id = await created()
    const codes: [object, string][] = [
      [{}, 'gate.validation_failed body'],
      [{ id: 'other' }, 'gate.validation_failed id'],
      [{ status: 'active' }, 'gate.validation_failed status'],
      [{ branding: { verified: true } }, 'gate.validation_failed branding.verified'],
      [{ website: null }, 'gate.validation_failed website'],
      [
        { webhook_endpoint_id: (await gateTenant(world.deps)).endpointId },
        'gate.validation_failed webhook_endpoint_id',
      ],
    ]
    for (const [body, expected] of codes) expect(errorOf(await patch(id, body))).toBe(expected)
  })

  test('refuses what makes the whole too large, and names the largest', async () => {
    const sdk = { label: 'npm', install: 'x'.repeat(900), url: 'https://acme.example/sdk' }
    const id = await created({ sdks: Array(15).fill(sdk) })
    const variable = (i: number) => ({ name: 'x'.repeat(90), key: `K${i}`, secret: true })
    const env_vars = Array.from({ length: 30 }, (_, i) => variable(i))
    expect(errorOf(await patch(id, { env_vars }))).toBe('gate.validation_failed sdks')
    expect((await patch(id, { env_vars, sdks: [] })).status).toBe(200)
  })

  test('a disabled service stays as it is', async () => {
    const id = await created()
    await one(id, { method: 'DELETE' })
    const { status, body } = await patch(id, { name: 'Again' })
    expect([status, body.error.code]).toEqual([409, 'request.conflict'])
  })

  test('ends the verification where people would take it for another service', async () => {
    const id = await created()
    const verifiedAfter = async (change: object) => {
      await verifyService(world.deps, { serviceId: id, verified: true })
      return (await patch(id, change)).body.data.branding.verified
    }
    expect(await verifiedAfter({ description: 'Mail.', branding: { primary_color: '#abc' } })).toBe(
      true,
    )
    expect(await verifiedAfter({ name: 'Acme Post' })).toBe(false)
    expect(await verifiedAfter({ website: 'https://acme.example/new' })).toBe(false)
    expect(await verifiedAfter({ branding: { logo_url: 'https://acme.example/new.svg' } })).toBe(
      false,
    )
  })
})

test('disabling is for good, and repeated it is the same', async () => {
  const id = await created()
  world.now.ms += 1000
  const first = await one(id, { method: 'DELETE' })
  expect([first.status, first.body.data.status]).toEqual([200, 'disabled'])
  expect(managed.parse(first.body)).toBeDefined()
  world.now.ms += 1000
  const again = await one(id, { method: 'DELETE' })
  expect([again.status, again.body.data]).toEqual([200, first.body.data])
  expect(errorOf(await one(id, { method: 'DELETE', body: { force: true } }))).toBe(
    'gate.validation_failed force',
  )
})

test('an environment has its own list, newest first, disabled ones too', async () => {
  const ids = [await created(), await created(), await created()]
  await one(ids[0] ?? '', { method: 'DELETE' })
  const { body } = await world.send({ url: services, key: own.secretKey })
  expect(managedList.parse(body)).toBeDefined()
  expect(Object.keys(body)).toEqual(['data', 'meta'])
  expect(body.data.map(({ id }: { id: string }) => id)).toEqual(ids.toReversed())
  for (const url of [services, '/v1/gate/registry'])
    expect(errorOf(await world.send({ url: `${url}?offset=1`, key: own.secretKey }))).toBe(
      'request.validation_failed offset',
    )
})

test('what others have is not found, as what nobody has', async () => {
  const id = await created()
  const stranger = await gateOwner(world.deps)
  const keys = [stranger.secretKey, await keyOf('test')]
  for (const key of keys) {
    const sent: Partial<Send>[] = [
      {},
      { method: 'PATCH', body: { name: 'Mine' } },
      { method: 'DELETE' },
    ]
    for (const options of sent) {
      const answers = [await one(id, { ...options, key }), await one('nobody', { ...options, key })]
      const said = answers.map(({ status, body }) => [status, body.error.code, body.error.message])
      expect(said[0]).toEqual(said[1])
      expect(said[0]?.slice(0, 2)).toEqual([404, 'request.not_found'])
    }
    expect((await patch(id, { nonsense: 1 }, { key })).status).toBe(404)
    expect((await list(key)).map(({ id }: { id: string }) => id)).not.toContain(id)
  }
  for (const odd of ['Acme', 'a', '%00%00%00', 'tidegate', '..%2F..'])
    expect((await one(odd)).status).toBe(404)
  expect((await one(id)).body.data.name).toBe('Acme Mail')
})

test('reading and managing have scopes of their own', async () => {
  const id = await created()
  const reader = await keyOf('live', ['gate:services:read'])
  const manager = await keyOf('live', ['gate:services:manage'])
  const statuses = async (key: string) => [
    (await world.send({ url: services, key })).status,
    (await one(id, { key })).status,
    (await create(bodyFor(own), { key })).status,
    (await patch(id, { name: 'Acme' }, { key })).status,
    (await one(id, { key, method: 'DELETE' })).status,
  ]
  expect(await statuses(reader)).toEqual([200, 200, 403, 403, 403])
  expect(await statuses(manager)).toEqual([403, 403, 201, 200, 200])
})

test('an organization that is suspended is refused', async () => {
  const id = await created()
  const { organizationId } = own
  await setStatus(world.deps, organizationId, 'suspended')
  expect(errorOf(await create())).toBe('auth.organization_inactive')
  const path = { organizationId, environment: 'live', serviceId: id } as const
  await expect(disableService(world.deps, path)).rejects.toMatchObject({
    code: 'auth.organization_inactive',
  })
})

/** The list as another process has it, and how often it read definitions. */
function startRegistry({ pool }: Services) {
  let reads = 0
  const query: typeof pool.query = (...args: unknown[]) => {
    if (String(args[0]).includes('s.definition,')) reads++
    return Reflect.apply(pool.query, pool, args)
  }
  return { list: createRegistryList({ query }, publicUrl), reads: () => reads }
}

describe('the registry', () => {
  const registry = '/v1/gate/registry'
  const listed = async () =>
    (await world.send({ url: registry })).body.data.map(({ id }: { id: string }) => id)

  test('shows whoever asks what is active and discoverable, by id, and the built-in service', async () => {
    const shown = await created()
    const hidden = await created({ discoverable: false })
    const ended = await created()
    await one(ended, { method: 'DELETE' })
    const { status, body } = await world.send({ url: registry })
    expect(status).toBe(200)
    expect(registryList.parse(body)).toBeDefined()
    expect(Object.keys(body)).toEqual(['data', 'meta'])
    const ids = await listed()
    expect(ids).toEqual(ids.toSorted())
    expect(ids).toEqual(expect.arrayContaining([shown, 'tidegate']))
    for (const id of [hidden, ended]) {
      expect(ids).not.toContain(id)
      expect((await world.send({ url: `${registry}/${id}` })).status).toBe(404)
    }
    await patch(hidden, { discoverable: true })
    expect(await listed()).toContain(hidden)
  })

  test('shows nothing of an organization that is not active, and takes no signups for it', async () => {
    const id = await created()
    const { organizationId } = own
    const found = async () => [
      (await listed()).includes(id),
      (await world.send({ url: `${registry}/${id}` })).status,
    ]
    const set = (status: 'active' | 'suspended' | 'deleted') =>
      setStatus(world.deps, organizationId, status)
    expect(await found()).toEqual([true, 200])
    await set('suspended')
    expect(await found()).toEqual([false, 404])
    await set('active')
    expect(await found()).toEqual([true, 200])
    await set('deleted')
    expect(await found()).toEqual([false, 404])
  })

  test('is read again only when it is another, whichever process changed it', async () => {
    const first = startRegistry(world)
    const second = startRegistry(world)
    const id = await created()
    const named = async ({ list }: typeof first) => {
      const entries: { id: string; name: string; branding: object }[] = JSON.parse(
        (await list()).data,
      )
      return entries.find((entry) => entry.id === id)
    }
    const both = async () => [await named(first), await named(second)]
    for (const entry of await both()) expect(entry).toMatchObject({ name: 'Acme Mail' })
    const reads = [first.reads(), second.reads()]
    await Promise.all(Array.from({ length: 8 }, both))
    // Of this database others change nothing that is shown.
    await created({ discoverable: false })
    await both()
    expect([first.reads(), second.reads()]).toEqual(reads)
    // The clock stands still.
    for (const name of ['Acme Post', 'Acme Letters', 'Acme Mail']) {
      await patch(id, { name })
      for (const entry of await both()) expect(entry).toMatchObject({ name })
    }
    await verifyService(world.deps, { serviceId: id, verified: true })
    for (const entry of await both()) expect(entry).toMatchObject({ branding: { verified: true } })
    await one(id, { method: 'DELETE' })
    expect(await both()).toEqual([undefined, undefined])
  })

  test('is not sent again to who has it', async () => {
    const { headers } = await world.send({ url: registry })
    const again = () =>
      world.send({ url: registry, headers: { 'if-none-match': String(headers.etag) } })
    expect(await again()).toMatchObject({
      status: 304,
      body: undefined,
      headers: { etag: headers.etag },
    })
    await created()
    expect((await again()).status).toBe(200)
  })

  test('an entry says nothing of its owner', async () => {
    // Nobody else gets the name of a verified service.
    const name = `Harbour ${newId()}`
    const id = await created({ name })
    await verifyService(world.deps, { serviceId: id, verified: true })
    const { status, body } = await world.send({ url: `${registry}/${id}` })
    expect(status).toBe(200)
    expect(registryEntry.parse(body)).toBeDefined()
    expect(body.data).toEqual({
      id,
      status: 'active',
      discoverable: true,
      name,
      description: 'Mail for agents.',
      website: 'https://acme.example',
      dashboard_login_url: 'https://acme.example/auth/gate',
      env_vars: [{ name: 'API key', key: 'ACME_API_KEY', secret: true }],
      docs_url: 'https://acme.example',
      sdks: [],
      branding: { verified: true },
      consent: {},
      env_prefix: 'ACME_',
    })
    expect((await listed()).filter((listedId: string) => listedId === id)).toHaveLength(1)
  })

  test('the built-in service is verified and gives an organization', async () => {
    const { body } = await world.send({ url: `${registry}/tidegate` })
    expect(registryEntry.parse(body)).toBeDefined()
    expect(body.data).toMatchObject({
      id: 'tidegate',
      website: publicUrl,
      branding: { verified: true },
    })
    const keys = body.data.env_vars.map(({ key }: { key: string }) => key)
    expect(keys).toContain('TIDEGATE_SECRET_KEY')
  })

  test.each(['nobody', 'Tidegate', 'a', '%00%00%00', '\u202eabc'])(
    '%j is not found',
    async (id) => {
      const { status, body } = await world.send({
        url: `${registry}/${encodeURI(id).replace('%25', '%')}`,
      })
      expect([status, body.error.code]).toEqual([404, 'request.not_found'])
    },
  )
})

describe('verifying', () => {
  test('is for services of organizations', async () => {
    for (const serviceId of ['tidegate', 'nobody', 'a\0b'])
      await expect(verifyService(world.deps, { serviceId, verified: true })).rejects.toMatchObject({
        code: 'request.not_found',
      })
  })

  test('can be withdrawn', async () => {
    const id = await created()
    const verified = async () => (await one(id)).body.data.branding.verified
    await verifyService(world.deps, { serviceId: id, verified: true })
    expect(await verified()).toBe(true)
    await verifyService(world.deps, { serviceId: id, verified: false })
    expect(await verified()).toBe(false)
  })
})
