import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { generateDeliveryKeys } from '../../../../infra/wire/delivery-envelope.ts'
import { generateConfirmationCode } from '../../../../infra/wire/gate.ts'
import { disableService } from '../../../../services/gate/registry/commands.ts'
import { sessionTtlMs } from '../../../../services/gate/sessions.ts'
import { gateOwner } from '../../../support/gate-world.ts'
import { publicUrl } from '../../../support/service-app.ts'
import { type Signups, startSignups } from './signup-app.ts'

let gate: Signups
beforeAll(async () => {
  gate = await startSignups()
})
afterAll(() => gate?.stop())

const { delivery } = generateDeliveryKeys()
const good = { service_id: 'tidegate', account_name: 'Robin', delivery }

function create(body: unknown, options: { headers?: Record<string, string>; ip?: string } = {}) {
  return gate.send({ method: 'POST', url: '', body, ...options })
}

async function refusal(changes: Record<string, unknown>) {
  const { status, body } = await create({ ...good, ...changes })
  return { status, code: body.error?.code, field: body.error?.details?.fields?.[0]?.name }
}

const invalid = (field: string) => ({ status: 422, code: 'gate.validation_failed', field })

describe('a new signup', () => {
  test('waits a quarter of an hour and shows its poll token once', async () => {
    const { status, headers, body } = await create({ ...good, metadata: { plan: 'free', n: 1 } })
    expect(status).toBe(201)
    expect(headers['cache-control']).toBe('no-store')
    expect(body.data).toEqual({
      object: 'gate_session',
      id: expect.stringMatching(/^gate_/),
      status: 'pending',
      poll_token: expect.stringMatching(/^gtpoll_/),
      consent_url: `${publicUrl}/gate/consent/${body.data.id}`,
      confirmation_code: expect.stringMatching(/^[0-9A-HJKMNP-TV-Z]{2}-[0-9A-HJKMNP-TV-Z]{3}$/),
      expires_at: new Date(gate.now.ms + sessionTtlMs).toISOString(),
    })
    const stored = await gate.session(body.data.id)
    expect(stored?.metadata).toBe('{"plan":"free","n":1}')
    expect(JSON.stringify(stored)).not.toContain(body.data.poll_token)
  })

  test('remembers who asked, without what could mislead whoever decides', async () => {
    const userAgent = `agent\u202e${'x'.repeat(300)}`
    const headers = { 'user-agent': Buffer.from(userAgent).toString('latin1') }
    const { body } = await create(good, { ip: '198.51.100.7', headers })
    const session = await gate.session(body.data.id)
    expect(session?.requested_ip).toBe('198.51.100.7')
    expect([...(session?.requested_user_agent ?? '')]).toHaveLength(200)
  })

  test('has a name without outer spaces, of characters that count as people count them', async () => {
    const { body } = await create({ ...good, account_name: `  ${'🐙'.repeat(100)} ` })
    expect((await gate.session(body.data.id))?.account_name).toBe('🐙'.repeat(100))
  })

  test('with the same Idempotency-Key is the same, also when its answer was lost', async () => {
    const options = { headers: { 'idempotency-key': 'k1' }, ip: '198.51.100.8' }
    const first = await create(good, options)
    const second = await create(good, options)
    expect(second.headers['idempotent-replayed']).toBe('true')
    expect(second.body).toEqual(first.body)
    await gate.loseAnswers()
    gate.now.ms += 1000
    expect((await create(good, options)).body.data).toEqual(first.body.data)
    const stranger = await create(good, { ...options, ip: '198.51.100.9' })
    expect(stranger.body.data.id).not.toBe(first.body.data.id)
  })
})

describe('a signup is refused', () => {
  test.each([
    ['', 'account_name'],
    [' \t ', 'account_name'],
    ['\u200b', 'account_name'],
    ['a'.repeat(101), 'account_name'],
    ['two\nlines', 'account_name'],
    ['nul\u0000', 'account_name'],
    ['\u202eevil', 'account_name'],
    ['\ud800', 'account_name'],
  ])('for the name %j', async (account_name, field) => {
    expect(await refusal({ account_name })).toEqual(invalid(field))
  })

  const deep = JSON.parse(`${'{"a":'.repeat(9)}1${'}'.repeat(9)}`)
  test.each([
    ['more than five members', Object.fromEntries('abcdef'.split('').map((key) => [key, 1]))],
    ['more than 4 KB', { a: 'é'.repeat(2100) }],
    ['deep nesting', deep],
    ['an array', [1]],
    ['null', null],
  ])('for metadata with %s', async (_what, metadata) => {
    expect(await refusal({ metadata })).toEqual(invalid('metadata'))
  })

  test('for a number in metadata that no double holds', async () => {
    const body = JSON.stringify({ ...good, metadata: { n: 0 } }).replace('"n":0', '"n":1e999')
    expect((await create(body)).body.error.details.fields[0].name).toBe('metadata')
  })

  test('for a delivery that nothing can be sealed to', async () => {
    const other = generateDeliveryKeys().delivery.key_id
    const lowOrder = Buffer.alloc(32)
    const changed = (changes: object) => refusal({ delivery: { ...delivery, ...changes } })
    expect(await changed({ key_id: other })).toEqual(invalid('delivery.key_id'))
    expect(await changed({ public_key: lowOrder.toString('base64url') })).toEqual(
      invalid('delivery.public_key'),
    )
    expect(await changed({ public_key: 'AAAA' })).toEqual(invalid('delivery.public_key'))
    expect(await changed({ version: 2 })).toEqual(invalid('delivery.version'))
    expect(await changed({ algorithm: 'rot13' })).toEqual(invalid('delivery.algorithm'))
    expect(await changed({ extra: 1 })).toEqual(invalid('delivery.extra'))
  })

  test('for members that it does not have', async () => {
    expect(await refusal({ scopes: ['*'] })).toEqual(invalid('scopes'))
  })

  test.each(['nobody', 'No', 'a\u0000b'])(
    'for the service %j, which there is not',
    async (service_id) => {
      expect(await refusal({ service_id })).toMatchObject({
        status: 404,
        code: 'request.not_found',
      })
    },
  )

  test('for a service that is hidden, disabled, or whose organization is not active', async () => {
    const hidden = await gateOwner(gate.deps, { fields: { discoverable: false } })
    const disabled = await gateOwner(gate.deps)
    const suspended = await gateOwner(gate.deps)
    expect((await gate.open(suspended.serviceId)).status).toBe('pending')
    await disableService(gate.deps, { ...disabled, serviceId: disabled.serviceId })
    await gate.setStatus(suspended.organizationId, 'suspended')
    for (const { serviceId } of [hidden, disabled, suspended])
      expect(await refusal({ service_id: serviceId })).toMatchObject({
        status: 404,
        code: 'request.not_found',
      })
  })

  test('from the sixth within a minute from one address, before anything is looked at', async () => {
    const ip = '198.51.100.20'
    for (let i = 0; i < 5; i++) expect((await create('not json', { ip })).status).toBe(400)
    const { status, headers, body } = await create(good, { ip })
    expect([status, body.error.code]).toEqual([429, 'gate.rate_limit'])
    expect(Number(headers['retry-after'])).toBeGreaterThan(0)
  })
})

test('confirmation codes are random, and say nothing of the session', () => {
  const codes = Array.from({ length: 100 }, () => generateConfirmationCode(randomBytes))
  for (const code of codes) expect(code).toMatch(/^[0-9A-HJKMNP-TV-Z]{2}-[0-9A-HJKMNP-TV-Z]{3}$/)
  expect(new Set(codes).size).toBeGreaterThan(95)
})
