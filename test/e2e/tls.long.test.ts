import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { deflateRawSync } from 'node:zlib'
import { Agent, fetch as fetchBy } from 'undici'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { freePort } from '../../infra/local/free-port.ts'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { nodeClientCrypto } from '../../infra/wire/collect/node-client-crypto.ts'
import { headersOf } from '../../services/cli/simulate/generate/headers.ts'
import { planSession, webOnly } from '../../services/cli/simulate/generate/plan.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'
import { createAuthority } from '../support/tls-certificates.ts'

const authority = createAuthority()
const folder = mkdtempSync(path.join(tmpdir(), 'tidegate-tls-'))
const [certFile, keyFile] = [path.join(folder, 'tls.pem'), path.join(folder, 'tls.key')]
let server: RunningTidegate
let endpoint = ''

beforeAll(async () => {
  const { cert, key } = authority.issue({ host: 'localhost' })
  writeFileSync(certFile, cert)
  writeFileSync(keyFile, key)
  const port = await freePort()
  endpoint = `https://localhost:${port}`
  const env = { TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile, TLS_PORT: String(port) }
  server = await startTidegate({ env })
}, 60_000)

afterAll(async () => {
  await server?.stop()
  rmSync(folder, { recursive: true })
})

describe.each([
  ['HTTP/1.1', false],
  ['HTTP/2', true],
])('a whole session over TLS and %s', (_, allowH2) => {
  it('is scored, with the JA4 of its connection', async () => {
    const agent = new Agent({ allowH2, connect: { ca: authority.ca } })
    const plan = planSession('tls', 1, webOnly)
    const collect = createCollectClient({
      ...{
        endpoint,
        publishableKey: server.credentials.live.publishable_key,
        sdk: plan.sdk,
        page: plan.page,
      },
      ...{ crypto: nodeClientCrypto, deflate: (bytes: Uint8Array<ArrayBuffer>) => deflateRawSync(bytes) },
      fetch: (url, request) =>
        fetchBy(url, { ...request, headers: { ...headersOf(plan), ...request.headers }, dispatcher: agent }),
    })
    const { sessionId } = await collect.open()
    for (const batch of plan.batches) await collect.sendBatch(batch)
    await collect.requestResult(plan.closing)
    const authorization = `Bearer ${server.credentials.live.secret_key}`
    const answer = await fetchBy(`${endpoint}/v1/sessions/${sessionId}`, {
      headers: { authorization },
      dispatcher: agent,
    })
    const { data } = (await answer.json()) as { data: { connection_fingerprint: { ja4: { hash: string } } } }
    // The client names HTTP/1.1 first in both.
    expect(data.connection_fingerprint.ja4.hash).toMatch(/^t13d\d{4}h1_[0-9a-f]{12}_[0-9a-f]{12}$/)
    await agent.close()
  })
})
