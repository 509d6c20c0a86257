import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { toFieldValue } from '../../services/console/pages/shared/span.ts'
import { createProfile, openHeadless } from '../support/chromium.ts'
import { type OpenConsole, openConsole } from '../support/console-page.ts'
import { needs } from '../support/needs.ts'

const { test } = needs('chromium')

const dayMs = 86_400_000

let server: OpenConsole
let page: OpenConsole['page']
let tidegate: OpenConsole['tidegate']

beforeAll(async () => {
  server = await openConsole()
  page = server.page
  tidegate = server.tidegate
})
afterEach(() => expect(server.complaints.splice(0)).toEqual([]))
afterAll(() => server?.stop())

const open = (path: string) => page.goto(`${tidegate.baseUrl}/console/${path}`)
const dialog = () => page.getByRole('dialog')
const chooseAction = async (row: string, action: string) => {
  await page.getByRole('button', { name: `Actions for ${row}` }).click()
  await page.getByRole('button', { name: action, exact: true }).click()
}

test('a key is created with scopes, rotated, and revoked by typing its name', async () => {
  await open('live/settings')
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByRole('button', { name: 'Secret key' }).click()
  await page.getByLabel('Name').fill('Back end')
  await page.getByLabel('sessions:update').uncheck()
  await dialog().getByRole('button', { name: 'Create key' }).click()
  const secret = dialog().getByText(/^sk_live_/)
  const authorization = `Bearer ${await secret.textContent()}`
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText('sessions:read, fingerprints:read').waitFor()
  const read = async () =>
    (await fetch(`${tidegate.baseUrl}/v1/sessions/sid_x`, { headers: { authorization } })).status
  expect(await read()).toBe(404)
  await chooseAction('Back end', 'Rotate')
  await dialog().getByRole('button', { name: 'Rotate' }).click()
  await secret.waitFor()
  await page.keyboard.press('Escape')
  const old = page.locator('tr', { hasText: 'Ends in' })
  await old.getByRole('button', { name: 'Actions for Back end' }).click()
  await page.getByRole('button', { name: 'Revoke', exact: true }).click()
  const revoke = dialog().getByRole('button', { name: 'Revoke' })
  await page.getByLabel(/^Type “Back end”/).fill('Back')
  await revoke.click()
  await page.getByLabel(/^Type “Back end”/).fill('Back end')
  await revoke.click()
  await old.waitFor({ state: 'detached' })
  await page.getByText(/^Show revoked keys/).waitFor()
  await expect.poll(read, { timeout: 20_000 }).toBe(401)
})

test('a key is created with an end, which is checked at its field and moves with a rotation', async () => {
  await open('live/settings')
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByRole('button', { name: 'Key for web pages' }).click()
  await page.getByLabel('Name').fill('Campaign')
  const end = page.getByLabel('Expires')
  await end.fill('2020-01-01T00:00')
  await dialog().getByRole('button', { name: 'Create key' }).click()
  await dialog().getByText('Must be a time in the future.').waitFor()
  expect(server.complaints.splice(0)).toEqual([expect.stringContaining('422')])
  await end.fill(toFieldValue(Date.now() + 30.9 * dayMs))
  await dialog().getByRole('button', { name: 'Create key' }).click()
  await dialog()
    .getByText(/^Expires \d/)
    .waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  const keys = page.getByRole('row', { name: /Campaign/ })
  await keys.getByText('Ends in 31d').waitFor()
  await chooseAction('Campaign', 'Rotate')
  await dialog().getByRole('button', { name: 'Rotate' }).click()
  await dialog()
    .getByText(/^Expires \d/)
    .waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  await expect.poll(() => keys.getByText(/^Ends in (31d|1d|24h)$/).count()).toBe(2)
  await keys.filter({ hasText: '31d' }).getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  await end.fill('')
  await page.getByRole('button', { name: 'Save' }).click()
  await keys.getByText('Active').waitFor()
})

test('origins of a key are checked at the field', async () => {
  await open('live/settings?tab=keys')
  const key = page.locator('tr', { hasText: 'publishable, browser' })
  await key.first().getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('button', { name: 'Edit', exact: true }).click()
  const field = page.getByLabel('Allowed origins')
  await field.fill('https://shop.example\nhttp://shop.example')
  await page.getByRole('button', { name: 'Save' }).click()
  await dialog().getByText('Must be an https origin or https://*.host.').waitFor()
  expect(server.complaints.splice(0)).toEqual([expect.stringContaining('422')])
  await field.fill('')
  await page.getByRole('button', { name: 'Save' }).click()
  await dialog().waitFor({ state: 'detached' })
  await page.getByText('Any origin').first().waitFor()
})

test('a login link opens a session, which an admin ends', async () => {
  await open('live/settings?tab=people')
  await page.getByRole('button', { name: 'Create login link' }).click()
  await page.getByLabel('Name of the person').fill('Zoë')
  await dialog().getByRole('button', { name: 'Create login link' }).click()
  const link =
    (await dialog()
      .getByText(/#code=conlog_/)
      .textContent()) ?? ''
  await page.getByRole('button', { name: 'Done' }).click()
  const profile = await createProfile()
  const browser = await openHeadless(profile)
  const guest = await browser.newPage()
  await guest.goto(link)
  await guest.getByRole('button', { name: 'Zoë' }).waitFor()
  await page.reload()
  const row = page.locator('tr', { hasText: 'Zoë' })
  await row.getByRole('button', { name: /^End session of / }).click()
  await dialog().getByRole('button', { name: 'End session' }).click()
  await row.waitFor({ state: 'detached' })
  await guest.reload()
  await guest.getByLabel(/secret key/).waitFor()
  await browser.close()
  await profile.remove()
})

test('the audit log is filtered by action', async () => {
  await open('live/settings?tab=audit')
  await page.getByRole('cell', { name: 'API key issued' }).first().waitFor()
  await page.getByLabel('Actions').selectOption('OrganizationCreated')
  await page.getByRole('cell', { name: 'Organization created' }).waitFor()
  await expect.poll(() => page.getByRole('cell', { name: 'API key issued' }).count()).toBe(0)
  expect(page.url()).toContain('type=OrganizationCreated')
})
