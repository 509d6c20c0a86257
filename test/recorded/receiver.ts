import { randomBytes } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { sealEnvelope } from '../../infra/wire/delivery-envelope.ts'
import { serveLocally } from '../support/local-server.ts'

/**
 * Receiver of webhooks, and the service that gets approvals. The path says how it answers: /accept with 200,
 * /refuse with 500, /sign-up with sealed credentials, /wait with those once `release` is called.
 */
export async function startReceiver() {
  const { promise: released, resolve: release } = Promise.withResolvers<void>()
  const { promise: waiting, resolve: onWaiting } = Promise.withResolvers<void>()

  let held = Promise.resolve()

  const server = await serveLocally(async (request, response) => {
    const body = await text(request)
    await held
    if (request.url === '/refuse') return void response.writeHead(500).end('Not today.')
    if (request.url === '/wait') {
      onWaiting()
      await released
    }
    response.end(request.url === '/accept' ? '{}' : signUp(body))
  })
  return {
    host: new URL(server.url).host,
    url: (path: string) => server.url + path,
    /** Resolves once somebody waits. */
    waiting,
    release,
    /** Lets every request wait until the returned function is called. */
    hold(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>()
      held = promise
      return resolve
    },
    close: server.close,
  }
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>

function signUp(body: string): string {
  const { delivery } = JSON.parse(body).data
  const payload = { version: 1 as const, outputs: { ACME_API_KEY: 'acme-key' } }
  return JSON.stringify({
    encrypted_delivery: sealEnvelope(payload, { delivery, random: randomBytes }),
  })
}
