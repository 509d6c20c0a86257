import { afterAll, beforeAll, expect, test } from 'vitest'
import { single } from '../../../infra/http/schemas.ts'
import { graceMs } from '../../../services/organizations/decide-key.ts'
import { apiKeySchema } from '../../../services/organizations/schemas.ts'
import { publishedSchema } from '../readback/contract.ts'
import { type Organizations, startOrganizations } from './support.ts'

let world: Organizations
let own: Awaited<ReturnType<Organizations['organization']>>
const published = publishedSchema('ApiKeyResponse')

beforeAll(async () => {
  world = await startOrganizations()
  own = await world.organization()
})
afterAll(() => world.stop())

const urlOf = (keyId: string) => `${own.path}/api-keys/${keyId}`
const patch = (keyId: string, body: unknown) =>
  world.send({ method: 'PATCH', url: urlOf(keyId), key: own.key, body })
const revoke = (keyId: string) => world.send({ method: 'DELETE', url: urlOf(keyId), key: own.key })
const rotate = (keyId: string, headers = {}) =>
  world.send({ method: 'POST', url: `${urlOf(keyId)}/rotations`, key: own.key, headers })
const secret = () => world.issue({ ...own, type: 'secret', scopes: ['organizations:read'] })
const publishable = () => world.issue({ ...own, type: 'publishable' })
const status = async (key: string) => (await world.send({ url: own.path, key })).status

test('name and scopes of a secret key change, and the new scopes count at once', async () => {
  const { keyId, revealedKey } = await secret()
  expect(await status(revealedKey)).toBe(200)
  const { status: code, body } = await patch(keyId, { name: 'New', scopes: ['sessions:read'] })
  expect(code).toBe(200)
  expect(single(apiKeySchema).safeParse(body).error).toBeUndefined()
  const known = { ...body, data: { ...body.data, client_target: undefined } }
  expect(published.safeParse(JSON.parse(JSON.stringify(known))).error).toBeUndefined()
  expect(body.data).toMatchObject({ id: keyId, name: 'New', scopes: ['sessions:read'] })
  expect(body.data).not.toHaveProperty('revealed_key')
  expect(await status(revealedKey)).toBe(403)
})

test('origins of a publishable key change', async () => {
  const { keyId } = await publishable()
  const { body } = await patch(keyId, { allowed_origins: ['https://*.Shop.example'] })
  expect(body.data).toMatchObject({ allowed_origins: ['https://*.shop.example'], scopes: null })
})

test.each([
  [{}, 'body', 'invalid'],
  [{ rate_limit: 1 }, 'rate_limit', 'not_allowed'],
  [{ name: 'A', rate_limit: 1 }, 'rate_limit', 'not_allowed'],
  [{ type: 'publishable' }, 'type', 'not_allowed'],
  [{ environment: 'test' }, 'environment', 'not_allowed'],
  [{ client_target: 'browser' }, 'client_target', 'not_allowed'],
  [{ status: 'active' }, 'status', 'not_allowed'],
  [{ allowed_origins: ['https://a.example'] }, 'allowed_origins', 'not_allowed'],
  [{ scopes: [] }, 'scopes', 'required'],
  [{ scopes: null }, 'scopes', 'invalid_type'],
  [{ scopes: ['organizations:manage'] }, 'scopes.0', 'invalid_value'],
  [{ name: '' }, 'name', 'invalid'],
])('changing a secret key to %j is refused: %s %s', async (change, name, issue) => {
  const { keyId } = await secret()
  const { status: code, body } = await patch(keyId, change)
  expect(code).toBe(422)
  expect(body.error.details).toMatchObject({
    parameter_set: 'api_key_update',
    fields: [{ name, issue }],
  })
  expect(body.error.message).toBe(`${name}: ${issue}`)
})

test('scopes of a publishable key are refused', async () => {
  const { keyId } = await publishable()
  const { status: code, body } = await patch(keyId, { scopes: ['*'] })
  expect([code, body.error.details.fields[0].name]).toEqual([422, 'scopes'])
})

test('a revoked key is refused at once, shown as revoked, revoked again the same, and not changed', async () => {
  const { keyId, revealedKey } = await secret()
  expect(await status(revealedKey)).toBe(200)
  world.now.ms += 1000
  const first = await revoke(keyId)
  const at = new Date(world.now.ms).toISOString()
  expect([first.status, first.body.data.status, first.body.data.revoked_at]).toEqual([
    200,
    'revoked',
    at,
  ])
  expect(await status(revealedKey)).toBe(401)
  world.now.ms += 1000
  const again = await revoke(keyId)
  // When a key was used last is written beside the log, up to a second later.
  const shown = ({ data }: typeof first.body) => ({ ...data, last_used_at: null })
  expect([again.status, shown(again.body)]).toEqual([200, shown(first.body)])
  expect((await patch(keyId, { name: 'A' })).status).toBe(404)
  expect((await rotate(keyId)).status).toBe(404)
})

test('rotation issues a key alike, and the old one works for 24 hours', async () => {
  const { keyId, revealedKey: old } = await secret()
  const answer = await rotate(keyId)
  expect([answer.status, answer.headers['cache-control']]).toEqual([201, 'no-store'])
  const { revealed_key: replacement, ...data } = answer.body.data
  expect(data).toMatchObject({ status: 'active', scopes: ['organizations:read'], name: 'Key' })
  expect([await status(old), await status(replacement)]).toEqual([200, 200])
  const listed = await world.send({ url: `${own.path}/api-keys?limit=200`, key: own.key })
  expect(listed.body.data.find(({ id }: { id: string }) => id === keyId)).toMatchObject({
    status: 'rotating',
    rotated_at: new Date(world.now.ms).toISOString(),
    grace_expires_at: new Date(world.now.ms + graceMs).toISOString(),
  })
  const again = await rotate(keyId)
  expect([again.status, again.body.error.code]).toEqual([409, 'request.conflict'])
  world.now.ms += graceMs
  expect([await status(old), await status(replacement)]).toEqual([401, 200])
})

test('a key may rotate itself, and its old value may still revoke itself', async () => {
  const { key, ownerId, path } = await world.organization()
  const url = `${path}/api-keys/${ownerId}`
  const rotated = await world.send({ method: 'POST', url: `${url}/rotations`, key })
  expect(rotated.status).toBe(201)
  const revoked = await world.send({ method: 'DELETE', url, key })
  expect(revoked.body.data.status).toBe('revoked')
  expect((await world.send({ url: path, key })).status).toBe(401)
  expect((await world.send({ url: path, key: rotated.body.data.revealed_key })).status).toBe(200)
})

test('a rotation repeated by a key that may less shows nothing, though the rotated key may less by now', async () => {
  const { organizationId } = own
  const { keyId } = await world.issue({ organizationId, type: 'secret', scopes: ['*'] })
  const headers = { 'idempotency-key': 'rotate-mighty' }
  const first = await rotate(keyId, headers)
  expect(first.status).toBe(201)
  const scopes = ['api_keys:manage']
  await patch(keyId, { scopes })
  const { revealedKey: key } = await world.issue({ organizationId, type: 'secret', scopes })
  const request = { method: 'POST', url: `${urlOf(keyId)}/rotations`, key } as const
  const [again, anew] = [await world.send({ ...request, headers }), await world.send(request)]
  expect([again.status, anew.status]).toEqual([422, 409])
  expect(JSON.stringify(again.body)).not.toContain(first.body.data.revealed_key)
})

test('a rotation repeated with the same Idempotency-Key is one rotation', async () => {
  const { keyId } = await secret()
  const headers = { 'idempotency-key': 'rotate-once' }
  const [first, second] = [await rotate(keyId, headers), await rotate(keyId, headers)]
  expect([first.status, second.status]).toEqual([201, 201])
  expect(second.body).toEqual(first.body)
})

const bodies: [unknown, string[]][] = [
  [{ rate_limit: 1 }, ['rate_limit: not_allowed']],
  [{ name: 'A', grace: 1 }, ['name: not_allowed', 'grace: not_allowed']],
  [[], ['body: invalid_type']],
  [['a'], ['body: invalid_type']],
  ['text', ['body: invalid_type']],
  [0, ['body: invalid_type']],
  [null, ['body: invalid_type']],
]
test.each(bodies)(
  '%j in the body of a rotation or a revocation is refused',
  async (body, issues) => {
    const { keyId } = await secret()
    const sent = [
      ['api_key_rotate', { method: 'POST', url: `${urlOf(keyId)}/rotations` }],
      ['api_key_revoke', { method: 'DELETE', url: urlOf(keyId) }],
    ] as const
    for (const [parameter_set, request] of sent) {
      const refused = await world.send({ ...request, key: own.key, body })
      const { details, message } = refused.body.error
      const found = details.fields.map(
        ({ name, issue }: Record<string, string>) => `${name}: ${issue}`,
      )
      expect([refused.status, message, found]).toEqual([422, issues[0], issues])
      expect(details.parameter_set).toBe(parameter_set)
    }
    expect((await rotate(keyId)).status).toBe(201)
  },
)

test('an empty object is no body', async () => {
  const { keyId } = await secret()
  const key = own.key
  const rotated = await world.send({
    method: 'POST',
    url: `${urlOf(keyId)}/rotations`,
    key,
    body: {},
  })
  expect(rotated.status).toBe(201)
  expect((await world.send({ method: 'DELETE', url: urlOf(keyId), key, body: {} })).status).toBe(
    200,
  )
})

test('a rotation repeated with {} in place of no body is the same', async () => {
  const { keyId } = await secret()
  const headers = { 'idempotency-key': 'rotate-without-body' }
  const url = `${urlOf(keyId)}/rotations`
  const first = await rotate(keyId, headers)
  const second = await world.send({ method: 'POST', url, key: own.key, body: {}, headers })
  expect([second.status, second.headers['idempotent-replayed']]).toEqual([201, 'true'])
  expect(second.body).toEqual(first.body)
})

test.each([undefined, {}, [], { name: 1 }, { type: 'secret' }, { scopes: ['no'] }])(
  'changing a key that is revoked, unknown or malformed to %j is not found',
  async (body) => {
    const { keyId } = await secret()
    await revoke(keyId)
    for (const id of [keyId, `key_${'0'.repeat(26)}`, 'key_1']) {
      const answer = await patch(id, body)
      expect([id, answer.status, answer.body.error.code]).toEqual([id, 404, 'request.not_found'])
    }
  },
)

test('a change of a revoked key that cannot be read, or of another type, is refused as that', async () => {
  const { keyId } = await secret()
  await revoke(keyId)
  const statusOf = async (type: string) => {
    const headers = { authorization: `Bearer ${own.key}`, 'content-type': type }
    const { statusCode } = await world.app.inject({
      method: 'PATCH',
      url: urlOf(keyId),
      headers,
      payload: '{',
    })
    return statusCode
  }
  expect([await statusOf('application/json'), await statusOf('text/plain')]).toEqual([400, 415])
})

test('what is not a key of this organization is not found, whatever it is', async () => {
  const other = await world.organization()
  const { revealedKey } = await secret()
  const strangers = [
    `key_${'0'.repeat(26)}`,
    'key_1',
    '%00',
    'x'.repeat(300),
    revealedKey,
    other.ownerId,
  ]
  const answers = await Promise.all(
    strangers.flatMap((keyId) => [revoke(keyId), rotate(keyId), patch(keyId, { name: 'A' })]),
  )
  expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([404]))
  expect(new Set(answers.map((answer) => answer.body.error.message)).size).toBe(1)
  expect(JSON.stringify(answers.map(({ body }) => body))).not.toContain(revealedKey)
  expect((await world.send({ url: other.path, key: other.key })).status).toBe(200)
})
