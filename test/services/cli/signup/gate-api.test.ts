import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import { expect, onTestFinished, test } from 'vitest'
import {
  generateDeliveryKeys,
  openEnvelope,
  sealEnvelope,
} from '../../../../infra/wire/delivery-envelope.ts'
import { createGateApi } from '../../../../services/cli/signup/gate-api.ts'

test('unknown members from a newer server are ignored', async () => {
  const { privateKey, delivery } = generateDeliveryKeys()
  const sealed = () => ({
    ...sealEnvelope({ version: 1, outputs: { KEY: 'k' } }, { delivery, random: randomBytes }),
    sealed_at: 'later',
    key: { id: 1 },
  })
  const bundle = { integrator: sealed(), gate: sealed(), third: sealed() }
  const account = { gate_account_id: 'gacct_1', account_name: 'Ada' }
  const data = { status: 'approved', ...account, delivery_bundle: bundle, more: [] }
  const server = createServer(
    (_request, response) => void response.end(JSON.stringify({ data, meta: {} })),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const session = {
    id: `gate_${'0'.repeat(26)}`,
    poll_token: 't',
    consent_url: 'http://a/',
    confirmation_code: '',
    expires_at: '',
  } as const
  onTestFinished(() => void server.close())
  const polled = await createGateApi(`http://127.0.0.1:${port}`).poll(session)
  if (polled.status !== 'approved') throw new Error(polled.status)
  for (const envelope of [polled.delivery_bundle.integrator, polled.delivery_bundle.gate])
    expect(openEnvelope(envelope, privateKey).outputs).toEqual({ KEY: 'k' })
})
