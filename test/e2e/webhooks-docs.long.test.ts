import { randomBytes } from 'node:crypto'
import { cp, readFile } from 'node:fs/promises'
import path from 'node:path'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { readConfig } from '../../infra/config.ts'
import { createRandom } from '../../infra/random.ts'
import { deliveryTypes, webhookBody } from '../../infra/wire/webhooks/events.ts'
import { generateSigningSecret, signatureHeaders } from '../../infra/wire/webhooks/signature.ts'
import { createGateMeter } from '../../services/gate/metrics.ts'
import { createWebhookMeter } from '../../services/webhooks/metrics.ts'
import { codeBlock as blockOf, docs } from '../support/code-block.ts'
import {
  type Receiver,
  receiverLanguages,
  type Sent,
  startReceiver,
} from '../support/docs-receivers.ts'
import { eventually } from '../support/eventually.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { bodyProblems } from '../support/webhook-contract.ts'

const codeBlock = (label: string) => blockOf('guide/webhooks.md', label)

const random = createRandom()
const newSecret = generateSigningSecret(random)
const oldSecret = generateSigningSecret(random)
const foreignSecret = generateSigningSecret(random)

/** A delivery as the service makes it, with a text that is not ASCII. */
function delivery({ secrets = [newSecret], age = 0 }: { secrets?: string[]; age?: number } = {}) {
  const eventId = `evt_${randomBytes(16).toString('hex').slice(0, 26)}`
  const data = JSON.stringify({ object: 'webhook_test', name: 'Grüße \u{1F98A} </script>', n: 1.5 })
  const body = webhookBody({ id: eventId, type: 'webhook.test', created_at: Date.now(), data })
  const timestamp = Math.floor(Date.now() / 1000) - age
  return { eventId, body, headers: signatureHeaders({ eventId, body, timestamp, secrets }) }
}

/** Deliveries are answered by a status. */
function statusOnly({ post, ...receiver }: Receiver) {
  return { ...receiver, post: async (sent: Sent) => (await post(sent)).status }
}

const languages = receiverLanguages()

for (const { name, file, needing, prepare } of languages) {
  needing.describe(`the receiver of the page in ${name}`, () => {
    const folder = temporaryFolder('receiver')
    let command: string[] = []
    let receiver: ReturnType<typeof statusOnly>

    beforeAll(async () => {
      await cp(path.join(docs, 'examples/webhooks', file), path.join(folder, file))
      command = await prepare(path.join(folder, file))
      receiver = statusOnly(await startReceiver(command, [newSecret]))
    }, 180_000)
    afterAll(() => receiver?.stop())

    it('takes a delivery, and deals with it once however often it comes', async () => {
      const sent = delivery()
      expect(await receiver.post(sent)).toBe(204)
      expect(await Promise.all([receiver.post(sent), receiver.post(sent)])).toEqual([204, 204])
      await eventually(() =>
        expect(receiver.output()).toContain(`handled ${sent.eventId} webhook.test`),
      )
      expect(receiver.output().split(sent.eventId)).toHaveLength(2)
    })

    it('refuses what was changed on its way', async () => {
      const { body, headers } = delivery()
      const timestamp = headers['webhook-timestamp']
      const withHeader = (name: string, value = '') => ({
        body,
        headers: { ...headers, [name]: value },
      })
      const changed = [
        { body: body.replace('1.5', '1.6'), headers },
        { body: `${body} `, headers },
        withHeader('webhook-id', `evt_${'0'.repeat(26)}`),
        withHeader('webhook-timestamp', String(Number(timestamp) + 1)),
        withHeader('webhook-timestamp', `${timestamp}.0`),
        withHeader('webhook-signature', 'v1,'),
        withHeader('webhook-signature', 'v1,Grue'),
        withHeader('webhook-signature', headers['webhook-signature']?.slice(3)),
      ]
      const statuses = await Promise.all(changed.map(receiver.post))
      expect(statuses).toEqual(changed.map(() => 401))
    })

    it('refuses what lacks a header, and takes what lacks the other form', async () => {
      const { body, headers } = delivery()
      for (const missing of ['webhook-id', 'webhook-timestamp', 'webhook-signature'])
        expect(await receiver.post({ body, headers: { ...headers, [missing]: '' } })).toBe(401)
      const standard = Object.entries(headers).filter(([header]) => header.startsWith('webhook-'))
      expect(await receiver.post({ body, headers: Object.fromEntries(standard) })).toBe(204)
    })

    it('refuses what is too old or too new, whatever its signature', async () => {
      for (const age of [310, 86_400, -310])
        expect(await receiver.post(delivery({ age }))).toBe(401)
      for (const age of [290, -290]) expect(await receiver.post(delivery({ age }))).toBe(204)
    })

    it('refuses a body of 200 MB without reading it, and headers that make no sense', async () => {
      expect([401, 413, undefined]).toContain(
        await receiver.postBytes({ 'content-length': '200000000' }, 2_000_000),
      )
      for (const length of ['-1', '1e3', '9'.repeat(400)])
        expect([400, 413]).toContain(await receiver.postBytes({ 'content-length': length }, 0))
      const { body, headers } = delivery()
      for (const timestamp of ['9'.repeat(400), '1'.repeat(5000), '-1', '\u00b2', '1.5', 'x'])
        expect(
          await receiver.post({ body, headers: { ...headers, 'webhook-timestamp': timestamp } }),
        ).toBe(401)
      expect(await receiver.post({ body, headers })).toBe(204)
      expect(receiver.output()).not.toMatch(/Traceback|Error|panic/)
    })

    it('verifies every delivery during a rotation, before and after it is told of the new secret', async () => {
      const during = [newSecret, oldSecret]
      for (const known of [[oldSecret], during]) {
        const rotating = statusOnly(await startReceiver(command, known))
        try {
          for (const secrets of [[oldSecret], during])
            expect(await rotating.post(delivery({ secrets }))).toBe(204)
          expect(await rotating.post(delivery({ secrets: [foreignSecret] }))).toBe(401)
        } finally {
          await rotating.stop()
        }
      }
      expect(await receiver.post(delivery({ secrets: during }))).toBe(204)
    })
  })
}

describe('the examples of the page', () => {
  const envelopes = {
    'session.fingerprint.calculated': 'SessionFingerprintCalculatedWebhookEvent',
    'session.result.persisted': 'SessionResultPersistedWebhookEvent',
    'gate.session.approved': 'GateSessionApprovedWebhookEvent',
    'webhook.test': 'WebhookEventEnvelope',
  } as const

  it.each(Object.entries(envelopes))(
    '%s is what the published interface says, as it is sent',
    async (name, envelope) => {
      const type = z.enum(deliveryTypes).parse(name)
      const example = JSON.parse(await codeBlock(`example: ${type}`))
      expect(example.type).toBe(type)
      const problems = (some: object) =>
        bodyProblems(envelope, JSON.stringify({ ...example, ...some }))
      expect(problems({})).toEqual([])
      expect(problems({ data: {} })).not.toEqual([])
      const { id, created, data } = example
      const event = { id, type, created_at: Date.parse(created), data: JSON.stringify(data) }
      expect(webhookBody(event)).toBe(JSON.stringify(example))
    },
  )
})

describe('what the pages say of numbers and names', () => {
  const idle = async () => ({ oldestDueAt: null, due: 0, failed: 0, now: 0 })

  it('the waits before the attempts are the default schedule', async () => {
    const page = await readFile(path.join(docs, 'guide/webhooks.md'), 'utf8')
    const [, row = ''] = /^\| wait before it \|(.*)\|$/m.exec(page) ?? []
    const units: Record<string, number> = { s: 1, min: 60, h: 3600 }
    const seconds = row.split('|').map((cell) => {
      const [, count = '0', unit = 's'] = /(\d+) (s|min|h)/.exec(cell) ?? []
      return Number(count) * (units[unit] ?? Number.NaN)
    })
    expect(seconds).toEqual(readConfig({}).WEBHOOK_RETRY_SECONDS)
  })

  it.each<[RegExp, (registry: Registry) => unknown]>([
    [/^\| `(tidegate_webhook_\w+)/gm, (registry) => createWebhookMeter(registry, idle)],
    [/^\| `(tidegate_gate_\w+)/gm, createGateMeter],
  ])('the metrics by %s are those that are measured', async (pattern, measure) => {
    const registry = new Registry()
    measure(registry)
    const page = await readFile(path.join(docs, 'operate/operations.md'), 'utf8')
    expect(Array.from(page.matchAll(pattern), ([, name]) => name)).toEqual(
      registry.getMetricsAsArray().map(({ name }) => name),
    )
  })
})
