import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { checkLooks, checkReach, type OpenConsole, openConsole } from '../support/console-page.ts'
import { approveAsPerson, requestSignup } from '../support/gate-approve.ts'
import { type Integrator, startIntegrator } from '../support/gate-integrator.ts'
import { needs } from '../support/needs.ts'

const { test } = needs('chromium')

let server: OpenConsole
let page: Page
let integrator: Integrator
let settings: string

beforeAll(async () => {
  server = await openConsole()
  page = server.page
  integrator = await startIntegrator()
  settings = `${server.tidegate.baseUrl}/console/test/settings?tab=gate`
}, 180_000)
afterAll(async () => {
  await server?.stop()
  await integrator?.close()
  expect(server.complaints).toEqual([])
})

async function post(path: string, body: object) {
  const { baseUrl, credentials } = server.tidegate
  const response = await fetch(`${baseUrl}${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${credentials.test.secret_key}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  })
  expect(response.status).toBe(201)
  return (await response.json()).data
}

async function registerService(): Promise<void> {
  const { organization_id } = server.tidegate.credentials
  const url = integrator.url('/')
  const { id } = await post(`/v1/organizations/${organization_id}/webhooks/endpoints`, {
    name: 'Approvals',
    url,
    event_types: ['gate.session.approved'],
  })
  await post('/v1/gate/services', {
    id: 'acme-mail',
    name: 'Acme Mail',
    description: 'Mail for agents.',
    website: url,
    webhook_endpoint_id: id,
    discoverable: true,
    dashboard_login_url: url,
  })
}

test('without a service, the page says how to register one', async () => {
  await page.goto(settings)
  const link = page.getByRole('link', { name: 'Register a service' })
  expect(await link.getAttribute('href')).toBe('/docs/guide/gate-services')
  await checkReach(page, 1280)
})

test('shows how far signups came, and revokes a token by its account', async () => {
  await registerService()
  const { baseUrl } = server.tidegate
  const signUp = (account_name: string) =>
    requestSignup(baseUrl, { service_id: 'acme-mail', account_name })
  for (const name of ['Robin', 'Ada'])
    expect(await approveAsPerson(server.tidegate, (await signUp(name)).id)).toBe(200)
  await signUp('Undecided')

  await page.goto(settings)
  const service = page.getByRole('region', { name: 'Acme Mail' })
  await service.getByText('open for signups').waitFor()
  await service.getByRole('listitem').first().waitFor()
  const steps = await service.getByRole('listitem').allInnerTexts()
  expect(steps.map((text) => text.replaceAll(/\s+/g, ' '))).toEqual([
    'Started 3 1 pending',
    'Approved 2 67 % of started',
    'Account created 2 100 % of approved',
    'Credentials delivered 0 0 % of created',
  ])
  const row = page.getByRole('row', { name: 'Robin' })
  await row.getByRole('button', { name: 'Revoke the token of Robin' }).press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Revoke the token of Robin?' })
  await dialog.getByText('unused login codes stop working').waitFor()
  await dialog.getByRole('button', { name: 'Revoke' }).press('Enter')
  await row.getByText('revoked').waitFor()
  await page.getByRole('row', { name: 'Ada' }).getByText('active').waitFor()
})

test('previews the consent page, whose buttons do nothing', async () => {
  await page.goto(settings)
  const opened = page.context().waitForEvent('page')
  await page.getByRole('link', { name: 'Preview consent page' }).press('Enter')
  const preview = await opened
  await preview.getByRole('heading', { name: 'Create an account at Acme Mail?' }).waitFor()
  await preview.getByText('Preview with sample data').waitFor()
  for (const name of ['Approve', 'Decline'])
    expect(await preview.getByRole('button', { name }).getAttribute('aria-disabled')).toBe('true')
  await checkReach(preview, 1280)
  await preview.close()
})

test('everyone can use it, in light, in dark and on a phone', async () => {
  await checkLooks(page, settings)
})
