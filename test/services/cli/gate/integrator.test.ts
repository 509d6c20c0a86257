import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  deliveryEnvelopeSchema,
  generateDeliveryKeys,
  openEnvelope,
} from '../../../../infra/wire/delivery-envelope.ts'
import {
  generateSigningSecret,
  signatureHeaders,
} from '../../../../infra/wire/webhooks/signature.ts'
import {
  answerApproval,
  createAccounts,
  type Failure,
  page,
  variableNames,
} from '../../../../services/cli/gate/integrator.ts'

const secret = generateSigningSecret(randomBytes)
const { privateKey, delivery } = generateDeliveryKeys()

function approvalOf(
  signup: { gate_session_id?: string; service_id?: string; delivery?: object } = {},
) {
  const data = {
    service_id: 'demo-service',
    gate_session_id: 'gate_1',
    gate_account_id: 'gacct_1',
    account_name: 'Ada',
    delivery,
    ...signup,
  }
  return JSON.stringify({ id: 'evt_1', type: 'gate.session.approved', data })
}

function integrator(fail: Failure = 'never') {
  const told: string[] = []
  const options = { accounts: createAccounts(randomBytes), serviceId: 'demo-service', secret, fail }
  const answer = (body: string, by = secret) => {
    const timestamp = Math.floor(Date.now() / 1000)
    const headers = Object.fromEntries(
      Object.entries(signatureHeaders({ eventId: 'evt_1', body, timestamp, secrets: [by] })),
    )
    return answerApproval({ headers, body }, { ...options, print: (line) => void told.push(line) })
  }
  const outputs = async (body: string) => {
    const { status, body: json = '' } = await answer(body)
    expect(status).toBe(200)
    const envelope = deliveryEnvelopeSchema.parse(JSON.parse(json).encrypted_delivery)
    return openEnvelope(envelope, privateKey).outputs
  }
  return { answer, outputs, told }
}

test('the sample service reads a delivery with a member that a later version added', async () => {
  const later = { ...delivery, expires_at: 'of a later version' }
  expect(await integrator().outputs(approvalOf({ delivery: later }))).toHaveProperty(
    'DEMO_SERVICE_API_KEY',
  )
})

test('the sample service gives a signup one account, however often it is told, and does not print the key', async () => {
  const { outputs, told } = integrator()
  const [first, again] = [await outputs(approvalOf()), await outputs(approvalOf())]
  expect(first).toEqual({
    DEMO_SERVICE_ACCOUNT_ID: 'gacct_1',
    DEMO_SERVICE_API_KEY: expect.stringMatching(/^demo_/),
  })
  expect(again).toEqual(first)
  const other = await outputs(approvalOf({ gate_session_id: 'gate_2' }))
  expect(other.DEMO_SERVICE_API_KEY).not.toBe(first.DEMO_SERVICE_API_KEY)
  expect(told).toHaveLength(3)
  expect(told.join()).not.toContain('demo_')
})

test('the sample service refuses what was signed by others, and what is about another service', async () => {
  const { answer } = integrator()
  const forged = await answer(approvalOf(), generateSigningSecret(randomBytes))
  expect(forged).toEqual({ status: 401 })
  expect(await answer(approvalOf({ service_id: 'other' }))).toEqual({ status: 422 })
  expect(await answer('no JSON')).toEqual({ status: 422 })
})

test.each([
  ['500', 500],
  ['refuse', 403],
  ['garbage', 200],
] as const)('fails when it is asked to: %s', async (how, status) => {
  const answer = await integrator(how).answer(approvalOf())
  expect(answer.status).toBe(status)
  expect(answer.body ?? '').not.toContain('encrypted_delivery')
})

test('the sample service shows names as text', () => {
  const { body, headers } = page(200, { title: `<img src=x onerror='a'>`, text: '"&' })
  expect(body).toContain('<h1>&lt;img src=x onerror=&#39;a&#39;&gt;</h1><p>&quot;&amp;</p>')
  expect(headers).toMatchObject({
    'content-security-policy': expect.stringContaining("default-src 'none'"),
  })
})

test('the sample service has variables that every shell takes', () => {
  expect(variableNames('3d-print_shop').apiKey).toBe('_3D_PRINT_SHOP_API_KEY')
})
