import { expect, onTestFinished, test } from 'vitest'
import { registerSampleService } from '../../../../services/cli/gate/registration.ts'
import { serveLocally } from '../../../support/local-server.ts'

test('a failed lookup of the service stops its registration', async () => {
  const requests: string[] = []
  const server = await serveLocally(({ method, url }, response) => {
    requests.push(`${method} ${url}`)
    const error = { code: 'service.unavailable', message: 'Not now.' }
    response.writeHead(503, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error }))
  })
  onTestFinished(() => void server.close())
  const target = {
    baseUrl: server.url.replace(/\/$/, ''),
    secretKey: 'sk_test_x',
    publishableKey: undefined,
    organizationId: 'org_1',
    environment: 'test' as const,
  }
  const service = { serviceId: 'sample', name: 'Sample', url: 'http://127.0.0.1:1/' }
  await expect(registerSampleService(target, service)).rejects.toThrow('Not now.')
  expect(requests).toEqual(['GET /v1/gate/services/sample'])
})
