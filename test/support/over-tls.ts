import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { FastifyInstance, InjectOptions } from 'fastify'
import { Agent, request } from 'undici'
import { createTlsListener } from '../../infra/http/tls/listener.ts'
import { silent } from './projections.ts'
import { createAuthority } from './tls-certificates.ts'

const tlsProtocols = ['HTTP/1.1', 'HTTP/2'] as const
export type TlsProtocol = (typeof tlsProtocols)[number]

/** For `describe.each`: what reaches the app without a socket, and over TLS in both protocols. */
export const ways: [name: string, over: TlsProtocol | undefined][] = [
  ['in memory', undefined],
  ...tlsProtocols.map((over): [string, TlsProtocol] => [`over TLS and ${over}`, over]),
]

/**
 * From `begin` on, `app.inject` sends over TLS in that protocol, and each client address is one of loopback. Call it before
 * the app is ready; closing the app ends it.
 */
export async function sendOverTls(
  app: FastifyInstance,
  over: TlsProtocol,
): Promise<{ begin(): Promise<void> }> {
  const folder = mkdtempSync(path.join(tmpdir(), 'tidegate-over-tls-'))
  const authority = createAuthority()
  const { cert, key } = authority.issue({ host: 'localhost' })
  const [certFile, keyFile] = [path.join(folder, 'tls.pem'), path.join(folder, 'tls.key')]
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key)
  const listener = await createTlsListener(app, { certFile, keyFile, logger: silent })
  app.addHook('onClose', async () => rmSync(folder, { recursive: true }))
  return {
    async begin() {
      const port = await listener.listen({ port: 0, host: '127.0.0.1' })
      const to = { origin: `https://localhost:${port}`, allowH2: over === 'HTTP/2', ca: authority.ca }
      Object.assign(app, {
        inject: (given: InjectOptions | string) =>
          send(to, typeof given === 'string' ? { url: given } : given),
      })
    },
  }
}

interface Target {
  origin: string
  allowH2: boolean
  ca: string
}

async function send({ origin, allowH2, ca }: Target, given: InjectOptions) {
  const { method = 'GET', url, headers, payload, remoteAddress } = given
  const localAddress = remoteAddress?.replace(/^\d+/, '127')
  const ALPNProtocols = [allowH2 ? 'h2' : 'http/1.1']
  const dispatcher = new Agent({
    allowH2,
    ...(localAddress && { localAddress }),
    connect: { ca, ALPNProtocols },
  })
  const isBytes = typeof payload === 'string' || Buffer.isBuffer(payload) || payload === undefined
  const answer = await request(`${origin}${typeof url === 'string' ? url : ''}`, {
    ...{ method, dispatcher },
    headers: { ...(!isBytes && { 'content-type': 'application/json' }), ...headers },
    ...(payload !== undefined && { body: isBytes ? payload : JSON.stringify(payload) }),
  })
  const body = await answer.body.text()
  await dispatcher.close()
  return { statusCode: answer.statusCode, headers: answer.headers, body, json: () => JSON.parse(body) }
}
