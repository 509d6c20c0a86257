import { expect, test } from 'vitest'
import { person } from '../../../support/console.ts'
import { useGateApi } from '../gate-api.ts'

const gate = await useGateApi()
const owner = await gate.owner()

async function preview(organizationId: string, environment = 'live') {
  const link = { organizationId, role: 'viewer', environments: ['live', 'test'] } as const
  const { headers } = await person(gate.app, gate.deps, link)
  const url = `/console/api/gate/services/${owner.serviceId}/consent-preview`
  const sent = { ...headers, 'tidegate-environment': environment }
  return gate.app.inject({ method: 'GET', url, headers: sent })
}

test('returns sample data of an own service, which cannot be approved', async () => {
  const response = await preview(owner.organizationId)
  expect(response.json().data).toMatchObject({
    kind: 'signup',
    account_name: 'Robin',
    approve_token: '',
    service: { id: owner.serviceId, name: 'Acme Mail' },
    variables: [{ key: 'ACME_API_KEY' }, { group: 'verified' }],
  })
  const { gate_session_id: id } = response.json().data
  expect((await gate.ask(`sessions/${id}/consent`)).status).toBe(404)
})

test('returns nothing to other organizations, other environments and without a login', async () => {
  const stranger = await gate.owner()
  expect((await preview(stranger.organizationId)).statusCode).toBe(404)
  expect((await preview(owner.organizationId, 'test')).statusCode).toBe(404)
  const url = `/console/api/gate/services/${owner.serviceId}/consent-preview`
  for (const headers of [{}, { authorization: `Bearer ${owner.secretKey}` }])
    expect((await gate.app.inject({ url, headers })).statusCode).toBe(401)
  expect((await gate.app.inject({ url: url.replace('/console/api', '/v1') })).statusCode).toBe(404)
})

test('the page loads all its files from the console, and no SDK', async () => {
  const url = `/console/consent-preview/live/${owner.serviceId}`
  const { body, headers } = await gate.app.inject({ url })
  expect(headers['content-security-policy']).toContain("script-src 'self'")
  const files = [...body.matchAll(/(?:href|src)="([^"]+)"/g)].map(([, file = '']) => file)
  expect(files.toSorted()).toEqual(
    ['mark.svg', 'mark.svg', 'consent.css', 'preview.js', 'site.css'].map((file) =>
      file === 'mark.svg' ? `../../assets/${file}` : `../${file}`,
    ),
  )
  for (const file of [...files.filter((name) => !name.endsWith('.svg')), '../view.js']) {
    const { pathname } = new URL(file, `http://localhost${url}`)
    expect([file, (await gate.app.inject({ url: pathname })).statusCode]).toEqual([file, 200])
  }
})
