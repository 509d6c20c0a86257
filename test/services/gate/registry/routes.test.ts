import { randomBytes } from 'node:crypto'
import { beforeEach, describe, expect, test } from 'vitest'
import { verifyService } from '../../../../services/gate/registry/commands.ts'
import { createRegistryReader } from '../../../../services/gate/registry/routes.ts'
import { issueApiKey } from '../../../../services/organizations/commands.ts'
import { type GateTenant, gateTenant, registration } from '../../../support/gate-world.ts'
import { publicUrl, type Send } from '../../../support/send.ts'
import { useGateApi } from '../gate-api.ts'

let tenant: GateTenant
const gate = await useGateApi()
beforeEach(async () => {
  tenant = await gateTenant(gate.deps)
})

function bodyFor(of: GateTenant, more: object = {}) {
  const { organizationId: _, environment: __, ...body } = registration(of)
  return { id: `acme-${randomBytes(6).toString('hex')}`, ...body, ...more }
}
function create(body: object = bodyFor(tenant), key = tenant.secretKey) {
  gate.now.ms += 1
  return gate.post('services', body, { key })
}
const managed = (id: string, more: Omit<Send, 'url'> = {}) =>
  gate.ask(`services/${id}`, { key: tenant.secretKey, ...more })
const patch = (id: string, body: object) => managed(id, { method: 'PATCH', body })
const disable = (id: string) => managed(id, { method: 'DELETE' })
const listed = async (key = tenant.secretKey): Promise<string[]> =>
  (await gate.ask('services', { key })).data.map(({ id }: { id: string }) => id)

async function created(more: object = {}): Promise<string> {
  const { outcome, data } = await create(bodyFor(tenant, more))
  expect(outcome).toBe('201')
  return data.id
}

async function testKey(): Promise<string> {
  const { organizationId } = tenant
  const asked = { organizationId, environment: 'test', name: 'Key', type: 'secret' } as const
  return (await issueApiKey(gate.deps, { ...asked, scopes: ['*'], by: 'operator' })).revealedKey
}

const invalid = (field: string) => `422 gate.validation_failed ${field}`

describe('creating', () => {
  test('names all missing fields and all read-only ones', async () => {
    const namesIn = ({ error }: Awaited<ReturnType<typeof create>>) =>
      error.details.fields.map(({ name }: { name: string }) => name).toSorted()
    const needed = ['description', 'id', 'name', 'webhook_endpoint_id', 'website']
    expect(namesIn(await create({}))).toEqual(needed)
    const body = bodyFor(tenant, {
      status: 'disabled',
      verified: true,
      object: 'gate_service',
      created_at: '2026-01-01T00:00:00.000Z',
      organization_id: 'org_1',
      login_url: 'https://acme.example',
      branding: { verified: true },
      consent: { scopes: ['mail'], copy: 'Yes?' },
      env_vars: [{ name: 'a', key: 'A', secret: true, dashboard_login: true }],
    })
    const [own, inner] = [
      ['created_at', 'login_url', 'object', 'organization_id', 'status', 'verified'],
      ['branding.verified', 'consent.copy', 'consent.scopes', 'env_vars.0.dashboard_login'],
    ]
    expect(namesIn(await create(body))).toEqual([...own, ...inner].toSorted())
  })

  test('requires an endpoint of the organization and environment', async () => {
    const foreign = await gateTenant(gate.deps)
    const elsewhere = await gateTenant(gate.deps, { environment: 'test' })
    for (const webhook_endpoint_id of [foreign.endpointId, elsewhere.endpointId, 'we_\0'])
      expect((await create(bodyFor(tenant, { webhook_endpoint_id }))).outcome).toBe(
        invalid('webhook_endpoint_id'),
      )
  })

  test('never reuses an id, even of a disabled service or across organizations', async () => {
    const id = await created()
    const other = await gateTenant(gate.deps, { environment: 'test' })
    const claim = async (asked: string) =>
      (await create(bodyFor(other, { id: asked }), other.secretKey)).outcome
    const taken = '409 request.conflict id'
    expect(await claim(id)).toBe(taken)
    await disable(id)
    // Both ids have the same agent token variable.
    for (const alike of [id, id.replace('-', '_'), id.replace('-', '--'), 'tidegate'])
      expect(await claim(alike)).toBe(taken)
  })

  test('allows an organization five services, whatever their environment and status', async () => {
    const key = await testKey()
    for (let i = 0; i < 4; i++) await disable(await created())
    await created()
    for (const by of [tenant.secretKey, key])
      expect((await create(bodyFor(tenant), by)).outcome).toBe('409 request.conflict')
    expect(await listed()).toHaveLength(5)
    expect(await listed(key)).toEqual([])
  })
})

test('a change of a fixed field is rejected and named', async () => {
  const id = await created()
  const webhook_endpoint_id = (await gateTenant(gate.deps)).endpointId
  expect((await patch(id, {})).outcome).toBe(invalid('body'))
  for (const changes of [{ id: 'other' }, { status: 'active' }, { webhook_endpoint_id }])
    expect((await patch(id, changes)).outcome).toBe(invalid(Object.keys(changes).join()))
})

test('each environment has its own list, newest first, including disabled services', async () => {
  const ids = [await created(), await created(), await created()]
  await disable(ids[0] ?? '')
  expect(await listed()).toEqual(ids.toReversed())
  expect(await listed(await testKey())).toEqual([])
})

test('a service of another organization returns 404 before the body is validated', async () => {
  const id = await created()
  const key = await testKey()
  const answer = await managed(id, { method: 'PATCH', body: { nonsense: 1 }, key })
  expect(answer.outcome).toBe('404 request.not_found')
  for (const odd of ['Acme', 'a', '%00%00%00', 'tidegate', '..%2F..'])
    expect((await managed(odd)).status).toBe(404)
})

describe('the registry', () => {
  const shown = async (): Promise<string[]> =>
    (await gate.ask('registry')).data.map(({ id }: { id: string }) => id)
  /** Returns if the list and the single entry have the service. */
  const found = async (id: string) => [
    (await shown()).includes(id),
    (await gate.ask(`registry/${id}`)).status,
  ]

  test('lists active and discoverable services by id, and the built-in service', async () => {
    const hidden = await created({ discoverable: undefined })
    const id = await created()
    const ids = await shown()
    expect(ids).toEqual(ids.toSorted())
    expect(ids).toEqual(expect.arrayContaining([id, 'tidegate']))
    expect([await found(hidden), await found(id)]).toEqual([
      [false, 404],
      [true, 200],
    ])
    await disable(id)
    await patch(hidden, { discoverable: true })
    expect([await found(hidden), await found(id)]).toEqual([
      [true, 200],
      [false, 404],
    ])
  })

  test('lists no services of an inactive organization', async () => {
    const id = await created()
    for (const status of ['suspended', 'active', 'deleted'] as const) {
      await gate.setStatus(tenant.organizationId, status)
      expect(await found(id)).toEqual(status === 'active' ? [true, 200] : [false, 404])
    }
  })

  test('is read again only after it has changed, in whichever process', async () => {
    const { pool } = gate
    const startRegistry = () => {
      const counted = { reads: 0 }
      const query: typeof pool.query = (...args: unknown[]) => {
        if (String(args[0]).includes('s.definition,')) counted.reads++
        return Reflect.apply(pool.query, pool, args)
      }
      return { counted, list: createRegistryReader({ query }, publicUrl) }
    }
    const processes = [startRegistry(), startRegistry()]
    const id = await created()
    const entries = () =>
      Promise.all(
        processes.map(async ({ list }) =>
          JSON.parse((await list()).data).find((entry: { id: string }) => entry.id === id),
        ),
      )
    const reads = () => processes.map(({ counted }) => counted.reads)
    await entries()
    const before = reads()
    await Promise.all(Array.from({ length: 8 }, entries))
    await created({ discoverable: false })
    await entries()
    expect(reads()).toEqual(before)
    // The clock does not advance.
    for (const name of ['Acme Post', 'Acme Letters', 'Acme Mail']) {
      await patch(id, { name })
      expect(await entries()).toMatchObject([{ name }, { name }])
    }
    await verifyService(gate.deps, { serviceId: id, verified: true })
    const branding = { verified: true }
    expect(await entries()).toMatchObject([{ branding }, { branding }])
    await disable(id)
    expect(await entries()).toEqual([undefined, undefined])
  })

  test('is not sent again to a client with the current ETag', async () => {
    const { headers } = await gate.ask('registry')
    const again = () => gate.ask('registry', { headers: { 'if-none-match': String(headers.etag) } })
    expect(await again()).toMatchObject({
      status: 304,
      body: undefined,
      headers: { etag: headers.etag },
    })
    await created()
    expect((await again()).status).toBe(200)
  })
})
