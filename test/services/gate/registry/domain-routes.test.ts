import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { verifyService } from '../../../../services/gate/registry/commands.ts'
import { issueApiKey } from '../../../../services/organizations/commands.ts'
import { type GateOwner, gateOwner } from '../../../support/gate-world.ts'
import type { Send } from '../../../support/service-app.ts'
import { type Services, startServices } from './services-app.ts'

let world: Services
let own: GateOwner

beforeAll(async () => {
  world = await startServices()
})
beforeEach(async () => {
  // Nobody else gets the name of a verified service.
  const name = `Harbour ${randomBytes(4).toString('hex')}`
  own = await gateOwner(world.deps, { fields: { name } })
})
afterAll(() => world?.stop())

const ask = (path: string, options: Partial<Send> = {}) =>
  world.send({ url: `/v1/gate/services/${own.serviceId}${path}`, key: own.secretKey, ...options })
const domain = () => ask('/domain')
const verify = (options: Partial<Send> = {}) =>
  ask('/domain/verify', { method: 'POST', ...options })
const patch = (body: object) => ask('', { method: 'PATCH', body })

async function showChallenge(): Promise<void> {
  const { name, value } = (await domain()).body.data.challenge.dns
  world.published.txt = { [name]: [value] }
}

const variable = (key: string) => ({ env_vars: [{ name: 'Key', key, secret: true }] })

test('the domain is verified where it shows the challenge, and its name is then that of variables', async () => {
  const before = await domain()
  expect(before.body.data).toMatchObject({
    object: 'gate_service_domain',
    service_id: own.serviceId,
    domain: 'acme.example',
    verified: false,
    env_prefix: null,
    challenge: { dns: { name: '_tidegate.acme.example', type: 'TXT' } },
  })
  const refused = await verify()
  expect([refused.status, refused.body.error.code]).toEqual([422, 'gate.validation_failed'])
  expect(refused.body.error.details.fields).toMatchObject([{ name: 'website', issue: 'not_shown' }])
  expect((await patch(variable('ACME_BASE_URL'))).body.error.details.fields).toMatchObject([
    { name: 'env_vars.0.key', issue: 'not_allowed' },
  ])
  await showChallenge()
  const verified = await verify()
  expect([verified.status, verified.body.data]).toEqual([
    200,
    { ...before.body.data, verified: true, env_prefix: 'ACME_' },
  ])
  expect((await patch(variable('ACME_BASE_URL'))).body.data).toMatchObject({
    verified_domain: 'acme.example',
    env_prefix: 'ACME_',
    branding: { verified: false },
  })
  const registered = await world.send({ url: `/v1/gate/registry/${own.serviceId}` })
  expect(registered.body.data).toMatchObject({
    verified_domain: 'acme.example',
    env_prefix: 'ACME_',
  })
})

test('it is an event with its actor, and repeated it asks nobody', async () => {
  await showChallenge()
  await verify()
  const asked = world.published.reads
  expect((await verify()).status).toBe(200)
  expect(world.published.reads).toBe(asked)
  expect(await world.count('GateServiceDomainVerified', own.serviceId)).toBe(1)
  const { rows } = await world.pool.query<{ payload: Buffer }>(
    `select value as payload from tidegate_log.records where key = $1 and headers->>'event_type' = $2`,
    [own.serviceId, 'GateServiceDomainVerified'],
  )
  expect(world.codec.decode(rows[0]?.payload ?? Buffer.alloc(0))).toMatchObject({
    data: { domain: 'acme.example', proof: 'dns' },
    cause: { actor: { type: 'key', id: own.secretKeyId } },
  })
})

test('another website ends it, another name or description does not; the operator can end it', async () => {
  await showChallenge()
  await verify()
  const verifiedDomain = async (change: object) => (await patch(change)).body.data.verified_domain
  expect(await verifiedDomain({ name: 'Acme Post', description: 'Post.' })).toBe('acme.example')
  expect(await verifiedDomain({ website: 'https://acme.example/post' })).toBeUndefined()
  await verify()
  await verifyService(world.deps, { serviceId: own.serviceId, verified: false })
  expect((await domain()).body.data).toMatchObject({ verified: false, env_prefix: null })
})

test("the operator's verification counts for variables, too", async () => {
  await verifyService(world.deps, { serviceId: own.serviceId, verified: true })
  expect((await domain()).body.data).toMatchObject({ verified: false, env_prefix: 'ACME_' })
  expect((await patch(variable('ACME_BASE_URL'))).status).toBe(200)
})

test("a challenge of another organization's service is none", async () => {
  await showChallenge()
  const other = await gateOwner(world.deps)
  own = { ...other }
  expect((await verify()).body.error.details.fields).toMatchObject([{ issue: 'not_shown' }])
})

test('what nobody can hold, and the name of somebody else, is not verified and not asked for', async () => {
  const asked = world.published.reads
  for (const website of [
    'https://github.io',
    'https://openai.example',
    'https://database.example',
  ]) {
    await patch({ website })
    expect((await verify()).body.error.details.fields).toMatchObject([
      { name: 'website', issue: 'not_allowed' },
    ])
  }
  expect(world.published.reads).toBe(asked)
})

test('30 looks a minute for a service', async () => {
  const statuses: number[] = []
  for (let i = 0; i < 31; i++) statuses.push((await verify()).status)
  expect(statuses).toEqual([...Array(30).fill(422), 429])
})

test('it takes no body, an active service, and a key that may manage', async () => {
  expect(
    (await verify({ body: { domain: 'evil.example' } })).body.error.details.fields,
  ).toMatchObject([{ name: 'domain' }])
  const { organizationId } = own
  const asked = {
    organizationId,
    environment: 'live',
    name: 'Key',
    type: 'secret',
    by: 'operator',
  } as const
  const reader = await issueApiKey(world.deps, { ...asked, scopes: ['gate:services:read'] })
  expect((await verify({ key: reader.revealedKey })).status).toBe(403)
  expect((await ask('/domain', { key: reader.revealedKey })).status).toBe(200)
  await ask('', { method: 'DELETE' })
  expect((await verify()).status).toBe(409)
  const unknown = `/v1/gate/services/acme-${randomBytes(4).toString('hex')}/domain/verify`
  expect((await world.send({ method: 'POST', url: unknown, key: own.secretKey })).status).toBe(404)
})
