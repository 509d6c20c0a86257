import { execFile } from 'node:child_process'
import { createPrivateKey, randomBytes } from 'node:crypto'
import { cp, readFile } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { randomId } from '../../infra/ids.ts'
import {
  type DeliveryRequest,
  deliveryEnvelopeSchema,
  generateDeliveryKeys,
  openEnvelope,
  sealEnvelope,
} from '../../infra/wire/delivery-envelope.ts'
import { webhookBody } from '../../infra/wire/webhooks/events.ts'
import { generateSigningSecret, signatureHeaders } from '../../infra/wire/webhooks/signature.ts'
import { judgeResponse } from '../../services/gate/approval/decide.ts'
import vector from '../fixtures/gate-delivery/vector.v1.json' with { type: 'json' }
import { docs } from '../support/code-block.ts'
import { type Receiver, receiverLanguages, startReceiver } from '../support/docs-receivers.ts'
import { needs } from '../support/needs.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const run = promisify(execFile)
const secret = generateSigningSecret(randomBytes)
const newSession = () => randomId('gate', randomBytes)

interface Approval {
  delivery: DeliveryRequest
  gateSessionId?: string
  type?: 'gate.session.approved' | 'webhook.test'
  secrets?: string[]
}

/** An approval as it is sent. */
function approval({
  delivery,
  gateSessionId = newSession(),
  type = 'gate.session.approved',
  secrets = [secret],
}: Approval) {
  const eventId = randomId('evt', randomBytes)
  const data = {
    service_id: 'acme-mail',
    gate_session_id: gateSessionId,
    gate_account_id: randomId('gacct', randomBytes),
    account_name: 'Grüße \u{1F98A}',
    metadata: { plan: 'pro' },
    foil: { verdict: 'human', score: 0.12 },
    delivery,
  }
  const body = webhookBody({
    id: eventId,
    type,
    created_at: Date.now(),
    data: JSON.stringify(data),
  })
  const timestamp = Math.floor(Date.now() / 1000)
  return { body, headers: signatureHeaders({ eventId, body, timestamp, secrets }) }
}

const answerSchema = z.strictObject({ encrypted_delivery: deliveryEnvelopeSchema })

for (const language of receiverLanguages({ python: needs('python-cryptography') })) {
  const { name, file, needing, prepare } = language
  needing.describe(`the receiver of the page in ${name}`, () => {
    const folder = temporaryFolder('gate-receiver')
    let receiver: Receiver
    const { delivery, privateKey } = generateDeliveryKeys()

    beforeAll(async () => {
      await cp(path.join(docs, 'examples/gate', file), path.join(folder, file))
      receiver = await startReceiver(await prepare(path.join(folder, file)), [secret])
    }, 180_000)
    afterAll(() => receiver?.stop())

    it('answers with an envelope that Gate accepts and that its key alone opens', async () => {
      const { status, body } = await receiver.post(approval({ delivery }))
      expect(status).toBe(200)
      expect(judgeResponse({ status, body: Buffer.from(body) }, delivery.key_id)).toMatchObject({
        kind: 'accepted',
      })
      const { encrypted_delivery } = answerSchema.parse(JSON.parse(body))
      const opened = openEnvelope(encrypted_delivery, privateKey)
      expect(opened).toEqual({
        version: 1,
        outputs: { ACME_API_KEY: expect.stringMatching(/^acme_[0-9a-f]{48}$/) },
      })
      expect(body).not.toContain('acme_')
      expect(() => openEnvelope(encrypted_delivery, generateDeliveryKeys().privateKey)).toThrow()
    })

    it('seals to the key of the published example, too', async () => {
      const published = {
        ...vector.delivery,
        version: 1,
        algorithm: 'x25519-hkdf-sha256/aes-256-gcm',
      } as const
      const { body } = await receiver.post(approval({ delivery: published }))
      const { encrypted_delivery } = answerSchema.parse(JSON.parse(body))
      const key = createPrivateKey({
        key: Buffer.from(vector.private_key_pkcs8, 'base64'),
        format: 'der',
        type: 'pkcs8',
      })
      expect(openEnvelope(encrypted_delivery, key).outputs).toHaveProperty('ACME_API_KEY')
    })

    it('makes one account for a signup, however often and at once it is asked, and seals anew', async () => {
      const gateSessionId = newSession()
      const asked = () => receiver.post(approval({ delivery, gateSessionId }))
      const answers = [...(await Promise.all([asked(), asked(), asked()])), await asked()]
      const envelopes = answers.map(
        ({ body }) => answerSchema.parse(JSON.parse(body)).encrypted_delivery,
      )
      const keys = envelopes.map(
        (envelope) => openEnvelope(envelope, privateKey).outputs.ACME_API_KEY,
      )
      expect(new Set(keys).size).toBe(1)
      for (const member of ['ephemeral_public_key', 'salt', 'iv'] as const)
        expect(new Set(envelopes.map((envelope) => envelope[member])).size).toBe(4)
      expect(receiver.output().split(gateSessionId)).toHaveLength(2)
    })

    it('refuses a body of 200 MB without reading it, and headers that make no sense', async () => {
      expect([401, 413, undefined]).toContain(
        await receiver.postBytes({ 'content-length': '200000000' }, 2_000_000),
      )
      const { body, headers } = approval({ delivery })
      for (const timestamp of ['9'.repeat(400), '\u00b2', '-1']) {
        const strange = { body, headers: { ...headers, 'webhook-timestamp': timestamp } }
        expect((await receiver.post(strange)).status).toBe(401)
      }
      expect((await receiver.post({ body, headers })).status).toBe(200)
      expect(receiver.output()).not.toMatch(/Traceback|Error|panic/)
    })

    it('refuses what Gate did not sign, and has nothing to say to other events', async () => {
      const foreign = approval({ delivery, secrets: [generateSigningSecret(randomBytes)] })
      expect(await receiver.post(foreign)).toEqual({ status: 401, body: '' })
      const { body, headers } = approval({ delivery })
      expect((await receiver.post({ body: `${body} `, headers })).status).toBe(401)
      expect(await receiver.post(approval({ delivery, type: 'webhook.test' }))).toEqual({
        status: 204,
        body: '',
      })
    })
  })
}

describe('what the page says of envelopes', () => {
  const file = path.join(docs, 'examples/gate/open-envelope.mjs')

  const open = async (pkcs8: string, envelope: object): Promise<unknown> =>
    JSON.parse((await run(process.execPath, [file, pkcs8, JSON.stringify(envelope)])).stdout)

  it('opens the published example', async () => {
    expect(await open(vector.private_key_pkcs8, vector.envelope)).toEqual(vector.payload)
  })

  it('opens what Gate seals, and nothing that was changed', async () => {
    const { privateKey, delivery } = generateDeliveryKeys()
    const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' }).toString('base64')
    const payload = {
      version: 1,
      outputs: { ACME_MAIL_GATE_AGENT_TOKEN: 'agt_x' },
      ack_token: 'gtack_x',
    } as const
    const envelope = sealEnvelope(payload, { delivery, random: randomBytes })
    expect(await open(pkcs8, envelope)).toEqual(payload)
    await expect(open(pkcs8, { ...envelope, tag: 'A'.repeat(22) })).rejects.toThrow()
  })
})

it('every table of the vault and beside it is named', async () => {
  const page = await readFile(path.join(docs, 'guide/gate-operators.md'), 'utf8')
  for (const table of ['gate_vault', 'gate_pages', 'gate_leases', 'gate_limits'])
    expect(page).toContain(`tidegate.${table}`)
})
