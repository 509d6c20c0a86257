import { once } from 'node:events'
import { createServer } from 'node:http'
import { text } from 'node:stream/consumers'
import { afterEach, expect, it } from 'vitest'
import { freePort } from '../../../../infra/local/free-port.ts'
import { createRandom } from '../../../../infra/random.ts'
import {
  generateSigningSecret,
  signatureHeaders,
} from '../../../../infra/wire/webhooks/signature.ts'
import { eventually } from '../../../support/eventually.ts'
import { listen, stopListeners } from '../../../support/webhook-listener.ts'

afterEach(stopListeners)

const secret = generateSigningSecret(createRandom())
const event = {
  id: `evt_${'1'.repeat(26)}`,
  object: 'webhook_event',
  type: 'webhook.test',
  data: {},
}
const body = JSON.stringify(event)

const post = (url: string, { age = 0, sent = body } = {}) => {
  const timestamp = Math.floor(Date.now() / 1000) - age
  const headers = signatureHeaders({ eventId: event.id, body, timestamp, secrets: [secret] })
  return fetch(url, { method: 'POST', body: sent, headers })
}

it('webhooks listen --no-register forwards signed deliveries byte for byte, and returns the response', async () => {
  const received: { body: string; signature: unknown }[] = []
  const backend = createServer(async (request, response) => {
    received.push({ body: await text(request), signature: request.headers['webhook-signature'] })
    response.writeHead(418).end('teapot')
  })
  const port = await freePort()
  backend.listen(port, '127.0.0.1')
  await once(backend, 'listening')
  const forward = ['--forward', `http://127.0.0.1:${port}/x`]
  const flags = ['--no-register', '--secret', secret, '--json', ...forward]
  const listener = await listen(flags, '/nonexistent')
  expect(listener.endpointId).toBeUndefined()
  const response = await post(listener.url)
  expect([response.status, await response.text()]).toEqual([418, 'teapot'])
  expect(received).toEqual([{ body, signature: expect.stringMatching(/^v1,/) }])

  expect((await post(listener.url, { sent: `${body} ` })).status).toBe(401)
  expect((await post(listener.url, { age: 400 })).status).toBe(401)
  expect(received).toHaveLength(1)
  await eventually(() => expect(listener.lines).toHaveLength(3))
  const [, changed, old] = listener.seen()
  expect(changed?.signatures['webhook-signature']).toMatch(/^No signature matches/)
  expect(old?.signatures['X-Foil-Signature']).toMatch(/seconds old/)

  backend.close()
  await once(backend, 'close')
  expect((await post(listener.url)).status).toBe(502)
  expect(await listener.stop()).toBe(0)
})
