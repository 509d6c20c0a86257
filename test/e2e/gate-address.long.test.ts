import { afterAll, beforeAll, expect, test } from 'vitest'
import { cli } from '../support/cli.ts'
import { consentProof, pageKey } from '../support/gate-proof.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const gateSessionId = 'gate_00000000000000000000000001'

let server: RunningTidegate
beforeAll(async () => {
  server = await startTidegate({ env: { HOST: '::1', TRUSTED_PROXIES: '::1/128' } })
}, 60_000)
afterAll(() => server?.stop())

test('a server on an IPv6 address has consent pages there', async () => {
  expect(server.baseUrl).toMatch(/^http:\/\/\[::1\]:\d+$/)
  const asked = await fetch(`${server.baseUrl}/v1/gate/sessions/${gateSessionId}/consent`, {
    headers: { origin: server.baseUrl },
  })
  expect(asked.status).toBe(404)
  const { sealedToken } = await consentProof({ baseUrl: server.baseUrl, gateSessionId })
  expect(sealedToken).not.toBe('')
})

test('who asks too much with the key of the consent page keeps nobody else from it', async () => {
  const key = await pageKey(server.baseUrl, gateSessionId)
  const ask = async () => {
    const response = await fetch(`${server.baseUrl}/v2/collect/sessions`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key}`,
        origin: server.baseUrl,
        'x-forwarded-for': '198.51.100.9',
      },
    })
    await response.arrayBuffer()
    return response
  }
  let last = await ask()
  for (let asked = 1; last.status !== 429 && asked < 5000; asked += 50)
    last = (await Promise.all(Array.from({ length: 50 }, ask))).at(-1) ?? last
  expect(last.status).toBe(429)
  expect(last.headers.get('retry-after')).toBe('1')
  expect(last.headers.get('x-ratelimit-limit')).toBeNull()
  const { sealedToken } = await consentProof({
    baseUrl: server.baseUrl,
    gateSessionId,
    seed: 'another',
  })
  expect(sealedToken).not.toBe('')
})

test.each(['0.0.0.0', '::'])(
  'a server with Gate on %s says what it lacks without PUBLIC_URL',
  async (HOST) => {
    const settings = {
      HOST,
      PORT: '0',
      DATABASE_URL: 'postgres://127.0.0.1:1/none',
      TIDEGATE_MASTER_KEYS: 'A'.repeat(44),
    }
    const withGate = await cli(['serve', '--roles', 'api,gate'], settings)
    expect(withGate.stdout).toContain('PUBLIC_URL is not set or has a path')
    const withoutGate = await cli(['serve', '--roles', 'api'], settings)
    expect(withoutGate.stdout).not.toContain('PUBLIC_URL')
  },
)
