import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { createKeyUsageBuffer } from '../../../infra/access/key-usage.ts'
import type { KeyRequest } from '../../../services/organizations/checked-input.ts'
import { rotationGraceMs } from '../../../services/organizations/decide-key.ts'
import { type ApiOrganization, startApi } from '../../support/api.ts'
import type { Send } from '../../support/send.ts'

let organization: ApiOrganization

const api = await startApi({ roles: ['api'] })
afterAll(() => api.stop())
beforeEach(async () => {
  organization = await api.organization()
})

const keysUrl = () => `${organization.path}/api-keys`
const urlOf = (keyId: string) => `${keysUrl()}/${keyId}`
const send = (request: Omit<Send, 'url'> & { url?: string }) =>
  api.send({ url: keysUrl(), key: organization.key, ...request })

function create(body: unknown, options: Partial<Send> = {}) {
  // Keys created in the same millisecond may be listed in any order.
  api.now.ms += 1
  return send({ method: 'POST', body, ...options })
}
const patch = (keyId: string, body: unknown) => send({ method: 'PATCH', url: urlOf(keyId), body })
const revoke = (keyId: string) => send({ method: 'DELETE', url: urlOf(keyId) })
const rotate = (keyId: string, options: Partial<Send> = {}) =>
  send({ method: 'POST', url: `${urlOf(keyId)}/rotations`, ...options })
const list = async (query = '', key = organization.key) =>
  send({ url: `${keysUrl()}${query}`, key })
const issue = (facts: Partial<KeyRequest>) =>
  api.issue({ organizationId: organization.organizationId, ...facts })
const secret = (scopes = ['organizations:read']) => issue({ scopes })
/** Returns the status of a read that requires `organizations:read`. */
const statusOf = async (key: string) => (await api.send({ url: organization.path, key })).status
const idsOf = ({ body }: { body: { data: { id: string }[] } }) => body.data.map(({ id }) => id)

describe('a new key', () => {
  test('that is secret is shown in full only once', async () => {
    const { status, headers, body } = await create({ name: ' Server ' })
    expect([status, headers['cache-control']]).toEqual([201, 'no-store'])
    const { revealed_key, ...data } = body.data
    expect(data).toMatchObject({ type: 'secret', environment: 'live', name: 'Server' })
    expect(revealed_key).toMatch(/^sk_live_/)
    const listed = await list('?limit=1')
    expect(listed.body.data).toEqual([data])
    expect(JSON.stringify(listed.body)).not.toContain(revealed_key)
  })

  test('that is publishable is always shown in full', async () => {
    const { body } = await create({ name: 'App', client_target: 'native-ios' })
    const { revealed_key: display_key, ...data } = body.data
    const expected = { type: 'publishable', client_target: 'native-ios', display_key }
    expect(data).toMatchObject(expected)
    expect((await list('?limit=1')).body.data).toEqual([data])
  })

  test('belongs to the environment of the calling key, unless test is requested', async () => {
    const { revealedKey: key } = await issue({ environment: 'test', scopes: ['*'] })
    const created = [
      await create({ name: 'A' }, { key }),
      await create({ name: 'A', environment: 'test' }),
      await create({ name: 'A' }),
    ]
    expect(created.map(({ body }) => body.data.environment)).toEqual(['test', 'test', 'live'])
    expect((await create({ name: 'A', environment: 'live' }, { key })).status).toBe(422)
  })

  const pasted = `sk_live_${'0'.repeat(38)}`
  test.each([
    [undefined, 'body', 'invalid_type'],
    [{ name: pasted.repeat(3) }, 'name', 'invalid'],
    [{ name: 'A', type: 'secret', scopes: [pasted] }, 'scopes.0', 'invalid_value'],
    [{ name: 'A', client_target: 'native_ios' }, 'client_target', 'invalid_value'],
    [{ name: 'A', allowed_origins: [pasted] }, 'allowed_origins.0', 'invalid'],
  ])('with %j is rejected: %s %s', async (body, name, issue) => {
    const response = await create(body)
    expect([response.status, response.body.error]).toMatchObject([
      422,
      { details: { fields: [{ name, issue }], parameter_set: 'api_key_create' } },
    ])
    expect(JSON.stringify(response.body)).not.toContain('00000000')
  })

  test('is not shown again to a key with fewer scopes and the same Idempotency-Key', async () => {
    const headers = { 'idempotency-key': 'mighty' }
    const keyRequest = { name: 'Mighty', type: 'secret', scopes: ['*'] }
    const created = await create(keyRequest, { headers })
    expect(created.status).toBe(201)
    const { revealedKey: key } = await secret(['api_keys:manage'])
    const refused = await create(keyRequest, { headers, key })
    expect([refused.status, refused.body.error.details.header_name]).toEqual([
      422,
      'Idempotency-Key',
    ])
    expect(JSON.stringify(refused.body)).not.toContain(created.body.data.revealed_key)
    const { revealedKey: alike } = await secret(['*'])
    expect((await create(keyRequest, { headers, key: alike })).body).toEqual(created.body)
  })
})

describe('the list', () => {
  test('has keys of both environments and revoked ones, newest first', async () => {
    const ids: string[] = [organization.keyId]
    for (const environment of ['live', 'test', 'live'] as const) {
      api.now.ms += 1
      ids.unshift((await issue({ environment, scopes: ['*'] })).keyId)
    }
    await revoke(ids[1] ?? '')
    const first = await list('?limit=3')
    expect(idsOf(first)).toEqual(ids.slice(0, 3))
    expect(first.body).toMatchObject({ data: [{}, { status: 'revoked' }, {}] })
    const rest = await list(`?limit=3&cursor=${first.body.pagination.next_cursor}`)
    expect(idsOf(rest)).toEqual([organization.keyId])
  })

  test('rejects an offset, and a cursor of another organization or environment', async () => {
    await secret()
    const { next_cursor } = (await list('?limit=1')).body.pagination
    const { revealedKey } = await issue({ environment: 'test', scopes: ['*'] })
    expect((await list(`?cursor=${next_cursor}`)).status).toBe(200)
    const refused = [await list('?offset=1'), await list(`?cursor=${next_cursor}`, revealedKey)]
    organization = await api.organization()
    refused.push(await list(`?cursor=${next_cursor}`))
    expect(refused.map(({ status }) => status)).toEqual([422, 422, 422])
  })

  test('shows when a key was last used', async () => {
    const usage = createKeyUsageBuffer(api.base)
    usage.recordUse(organization.keyId)
    await usage.close()
    const last_used_at = new Date(api.now.ms).toISOString()
    expect((await list()).body.data).toMatchObject([{ last_used_at }])
  })
})

describe('an update', () => {
  test('of name and scopes is returned, and the new scopes apply at once', async () => {
    const { keyId, revealedKey } = await secret()
    expect(await statusOf(revealedKey)).toBe(200)
    const { status, body } = await patch(keyId, { name: 'New', scopes: ['sessions:read'] })
    expect(status).toBe(200)
    expect(body.data).toMatchObject({ id: keyId, name: 'New', scopes: ['sessions:read'] })
    expect(body.data).not.toHaveProperty('revealed_key')
    expect(await statusOf(revealedKey)).toBe(403)
  })

  test.each([
    [{}, 'body', 'invalid'],
    [{ type: 'publishable' }, 'type', 'not_allowed'],
    [{ name: 'A', rate_limit: 1 }, 'rate_limit', 'not_allowed'],
  ])('to %j is rejected: %s %s', async (change, name, issue) => {
    const { status, body } = await patch((await secret()).keyId, change)
    expect([status, body.error.details]).toMatchObject([
      422,
      { parameter_set: 'api_key_update', fields: [{ name, issue }] },
    ])
  })

  test.each([undefined, [], { name: 1 }, { scopes: ['no'] }])(
    'to %j of a key that is revoked, unknown or malformed returns 404',
    async (body) => {
      const { keyId } = await secret()
      await revoke(keyId)
      for (const id of [keyId, `key_${'0'.repeat(26)}`, 'key_1'])
        expect([id, (await patch(id, body)).status]).toEqual([id, 404])
    },
  )
})

test('a revoked key is rejected at once, and can be revoked again', async () => {
  const { keyId, revealedKey } = await secret()
  expect(await statusOf(revealedKey)).toBe(200)
  const first = await revoke(keyId)
  const revoked_at = new Date(api.now.ms).toISOString()
  expect([first.status, first.body.data]).toMatchObject([200, { status: 'revoked', revoked_at }])
  expect(await statusOf(revealedKey)).toBe(401)
  api.now.ms += 1000
  expect((await revoke(keyId)).body.data).toEqual(first.body.data)
})

describe('an expiry', () => {
  const inHours = (hours: number) => new Date(api.now.ms + hours * 3_600_000).toISOString()

  test('makes the key unusable, and is moved by an update', async () => {
    const requested = inHours(1)
    const created = await create({ name: 'Key', expires_at: requested })
    const { id, revealed_key: key, expires_at } = created.body.data
    expect([created.status, expires_at]).toEqual([201, requested])
    const patched = await patch(id, { expires_at: inHours(2) })
    expect(patched.body.data).toMatchObject({ expires_at: inHours(2), revoked_reason: null })
    api.now.ms += 7_199_999
    expect(await statusOf(key)).not.toBe(401)
    api.now.ms += 1
    expect(await statusOf(key)).toBe(401)
    expect((await patch(id, { expires_at: null })).status).toBe(404)
  })

  test.each([
    ['2020-01-01T00:00:00Z', 'expires_at'],
    ['tomorrow', 'ISO 8601'],
    [1_800_000_000, 'expires_at'],
  ])('of %j is rejected', async (expires_at, text) => {
    const { status, body } = await create({ name: 'Key', expires_at })
    expect([status, body.error.message]).toEqual([422, expect.stringContaining(text)])
  })
})

describe('a rotation', () => {
  test('issues an equal key, and the old one works for 24 hours', async () => {
    const { keyId, revealedKey: old } = await secret()
    const response = await rotate(keyId)
    expect([response.status, response.headers['cache-control']]).toEqual([201, 'no-store'])
    const { revealed_key: replacement, ...data } = response.body.data
    expect(data).toMatchObject({ status: 'active', scopes: ['organizations:read'], name: 'Key' })
    expect([await statusOf(old), await statusOf(replacement)]).toEqual([200, 200])
    const { data: listed } = (await list()).body
    expect(listed.find(({ id }: { id: string }) => id === keyId)).toMatchObject({
      status: 'rotating',
      rotated_at: new Date(api.now.ms).toISOString(),
      grace_expires_at: new Date(api.now.ms + rotationGraceMs).toISOString(),
    })
    expect((await rotate(keyId)).status).toBe(409)
    api.now.ms += rotationGraceMs
    expect([await statusOf(old), await statusOf(replacement)]).toEqual([401, 200])
  })

  test('can replace the calling key, whose old value can still revoke itself', async () => {
    const rotated = await rotate(organization.keyId)
    expect(rotated.status).toBe(201)
    expect((await revoke(organization.keyId)).body.data.status).toBe('revoked')
    expect(await statusOf(organization.key)).toBe(401)
    expect(await statusOf(rotated.body.data.revealed_key)).toBe(200)
  })

  test('repeated by a key with fewer scopes shows no secret, even if the rotated key now has fewer', async () => {
    const { keyId } = await secret(['*'])
    const headers = { 'idempotency-key': 'rotate-mighty' }
    const first = await rotate(keyId, { headers })
    expect(first.status).toBe(201)
    await patch(keyId, { scopes: ['api_keys:manage'] })
    const { revealedKey: key } = await secret(['api_keys:manage'])
    const [again, anew] = [await rotate(keyId, { key, headers }), await rotate(keyId, { key })]
    expect([again.status, anew.status]).toEqual([422, 409])
    expect(JSON.stringify(again.body)).not.toContain(first.body.data.revealed_key)
  })
})

test.each([
  [{ name: 'A', grace: 1 }, 'name is not allowed (and 1 more)'],
  [[], 'body must be an empty object, or no body'],
])('%j in the body of a rotation or revocation is rejected', async (body, message) => {
  const { keyId } = await secret()
  const refused = [
    await rotate(keyId, { body }),
    await send({ method: 'DELETE', url: urlOf(keyId), body }),
  ]
  expect(refused).toMatchObject(
    ['api_key_rotate', 'api_key_revoke'].map((parameter_set) => ({
      status: 422,
      body: { error: { message, details: { parameter_set } } },
    })),
  )
  expect((await rotate(keyId, { body: {} })).status).toBe(201)
})

test('anything but a key id returns 404, even the key itself, and is not repeated', async () => {
  const { revealedKey } = await secret()
  for (const id of ['key_1', '%00', 'x'.repeat(300), revealedKey]) {
    const responses = [await revoke(id), await rotate(id), await patch(id, { name: 'A' })]
    expect(responses.map(({ status }) => status)).toEqual([404, 404, 404])
    expect(JSON.stringify(responses.map(({ body }) => body))).not.toContain(revealedKey)
  }
})
