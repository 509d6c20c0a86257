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
  createAccounts,
  type FailureMode,
  handleApproval,
  htmlPage,
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

function integrator(fail: FailureMode = 'never') {
  const printed: string[] = []
  const options = { accounts: createAccounts(randomBytes), serviceId: 'demo-service', secret, fail }
  const send = (body: string, signer = secret) => {
    const timestamp = Math.floor(Date.now() / 1000)
    const headers = Object.fromEntries(
      Object.entries(signatureHeaders({ eventId: 'evt_1', body, timestamp, secrets: [signer] })),
    )
    return handleApproval(
      { headers, body },
      { ...options, print: (line) => void printed.push(line) },
    )
  }
  const outputs = async (body: string) => {
    const { status, body: json = '' } = await send(body)
    expect(status).toBe(200)
    const envelope = deliveryEnvelopeSchema.parse(JSON.parse(json).encrypted_delivery)
    return openEnvelope(envelope, privateKey).outputs
  }
  return { send, outputs, printed }
}

test('the sample service ignores unknown members of a delivery', async () => {
  const later = { ...delivery, expires_at: 'from a newer version' }
  expect(await integrator().outputs(approvalOf({ delivery: later }))).toHaveProperty(
    'DEMO_SERVICE_API_KEY',
  )
})

test('the sample service creates one account per signup, even if the webhook is repeated, and never prints the key', async () => {
  const { outputs, printed } = integrator()
  const [first, again] = [await outputs(approvalOf()), await outputs(approvalOf())]
  expect(first).toEqual({
    DEMO_SERVICE_ACCOUNT_ID: 'gacct_1',
    DEMO_SERVICE_API_KEY: expect.stringMatching(/^demo_/),
  })
  expect(again).toEqual(first)
  const other = await outputs(approvalOf({ gate_session_id: 'gate_2' }))
  expect(other.DEMO_SERVICE_API_KEY).not.toBe(first.DEMO_SERVICE_API_KEY)
  expect(printed).toHaveLength(3)
  expect(printed.join()).not.toContain('demo_')
})

test('the sample service rejects webhooks with another signature or for another service', async () => {
  const { send } = integrator()
  const forged = await send(approvalOf(), generateSigningSecret(randomBytes))
  expect(forged).toEqual({ status: 401 })
  expect(await send(approvalOf({ service_id: 'other' }))).toEqual({ status: 422 })
  expect(await send('no JSON')).toEqual({ status: 422 })
})

test.each([
  ['500', 500],
  ['refuse', 403],
  ['garbage', 200],
] as const)('--fail %s simulates the failure', async (how, status) => {
  const response = await integrator(how).send(approvalOf())
  expect(response.status).toBe(status)
  expect(response.body ?? '').not.toContain('encrypted_delivery')
})

test('the sample service escapes HTML in names', () => {
  const { body, headers } = htmlPage(200, { title: `<img src=x onerror='a'>`, text: '"&' })
  expect(body).toContain('<h1>&lt;img src=x onerror=&#39;a&#39;&gt;</h1><p>&quot;&amp;</p>')
  expect(headers).toMatchObject({
    'content-security-policy': expect.stringContaining("default-src 'none'"),
  })
})

test('variable names of the sample service are valid in every shell', () => {
  expect(variableNames('3d-print_shop').apiKey).toBe('_3D_PRINT_SHOP_API_KEY')
})
