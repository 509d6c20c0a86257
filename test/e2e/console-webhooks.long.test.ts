import { afterAll, afterEach, beforeAll, expect } from 'vitest'
import { checkLooks, type OpenConsole, openConsole } from '../support/console-page.ts'
import { type LocalServer, serveLocally } from '../support/local-server.ts'
import { needs } from '../support/needs.ts'

const { test } = needs('chromium')

let server: OpenConsole
let page: OpenConsole['page']
let receiver: LocalServer
/** The receiver refuses requests. */
let isDown = true
const received: string[] = []

beforeAll(async () => {
  receiver = await serveLocally(({ headers }, response) => {
    received.push(String(headers['webhook-id']))
    response.writeHead(isDown ? 503 : 204).end(isDown ? 'orders-db is down' : '')
  })
  // A delivery fails for good after its second attempt.
  server = await openConsole(undefined, { WEBHOOK_RETRY_SECONDS: '0,0.2' })
  page = server.page
})
afterEach(() => expect(server.complaints.splice(0)).toEqual([]))
afterAll(async () => {
  await server?.stop()
  receiver?.close()
})

const open = (path: string) => page.goto(`${server.tidegate.baseUrl}/console/${path}`)
const dialog = () => page.getByRole('dialog')
const drawer = () => page.getByRole('complementary', { name: 'Event' })
const delivery = () => drawer().getByRole('region', { name: 'Delivery to Orders' })
const chooseAction = async (action: string) => {
  await page.getByRole('button', { name: 'Actions for Orders' }).click()
  await page.getByRole('button', { name: action, exact: true }).click()
}

test('an endpoint is added with a filter, which is checked at its field and shown again', async () => {
  await open('live/webhooks')
  await page.getByRole('button', { name: 'Add endpoint' }).click()
  await page.getByLabel('Name').fill('Orders')
  await page.getByLabel('URL').fill(`${receiver.url}/orders`)
  await page.getByLabel('bot', { exact: true }).check()
  const score = page.getByLabel(/at least this risk score/)
  await score.fill('200')
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await expect.poll(() => score.getAttribute('aria-invalid')).toBe('true')
  expect(server.complaints.splice(0)).toEqual([expect.stringContaining('422')])
  await score.fill('70')
  await page.getByRole('button', { name: 'Add', exact: true }).click()
  await dialog()
    .getByText(/^whsec_/)
    .waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText('filtered: session.result.persisted').waitFor()
  await chooseAction('Edit')
  expect(await score.inputValue()).toBe('70')
  expect(await page.getByLabel('bot', { exact: true }).isChecked()).toBe(true)
  expect(await page.getByLabel('human', { exact: true }).isChecked()).toBe(false)
  await page.keyboard.press('Escape')
})

test('a failed delivery is found by its endpoint, and retried with the keyboard', async () => {
  await open('live/webhooks')
  await chooseAction('Send test event')
  await delivery().getByText('failed 503').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: '1 failed' }).click()
  await page.getByRole('heading', { name: 'Deliveries to Orders' }).waitFor()
  await page.getByRole('cell', { name: 'failed 503' }).waitFor()
  await page.keyboard.press('j')
  await page.keyboard.press('Enter')
  const newest = delivery().locator('.attempt').first()
  await newest.getByText('Attempt 2').waitFor()
  await newest.getByText('orders-db is down').waitFor()
  await newest.getByText('Request headers').press('Enter')
  const headers = newest.getByText(/webhook-id: evt_/)
  await headers.waitFor()
  expect(await headers.innerText()).not.toContain('signature')
  isDown = false
  await delivery().getByRole('button', { name: 'Retry' }).press('Enter')
  await delivery().getByText('succeeded 204').waitFor()
  await delivery().getByText('Attempt 3').waitFor()
  expect(new Set(received).size).toBe(1)
  await page.keyboard.press('Escape')
  await page.getByText('No deliveries match these filters').waitFor()
  await page.getByLabel('Statuses').selectOption('succeeded')
  await page.getByRole('cell', { name: 'succeeded 204' }).waitFor()
})

test('failures of an endpoint are sent again', async () => {
  isDown = true
  await open('live/webhooks')
  await chooseAction('Send test event')
  await delivery().getByText('failed 503').waitFor()
  await page.keyboard.press('Escape')
  isDown = false
  received.length = 0
  await chooseAction('Resend …')
  await page.getByLabel('From').fill('')
  await dialog().getByRole('button', { name: 'Resend' }).click()
  await expect.poll(() => page.getByLabel('From').getAttribute('aria-invalid')).toBe('true')
  expect(server.complaints.splice(0)).toEqual([expect.stringContaining('422')])
  await page.getByLabel('From').fill('2026-01-01T00:00')
  await dialog().getByRole('button', { name: 'Resend' }).click()
  await dialog().getByText('Queued 1 delivery.').waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  await page
    .getByRole('row', { name: /webhook\.test/ })
    .first()
    .getByText('succeeded 204')
    .waitFor()
  expect(received).toHaveLength(1)
})

test('a delivery has nothing that hinders people, in light, in dark and on a phone', async () => {
  await open('live/webhooks')
  await page.getByRole('link', { name: 'Orders' }).click()
  await page.getByRole('link', { name: 'webhook.test' }).first().click()
  await checkLooks(page, page.url(), async () => {
    await delivery().getByText('Attempt 1').click()
    await delivery().getByText('Request headers').first().click()
  })
  await page.keyboard.press('Escape')
  await checkLooks(page, page.url(), () => chooseAction('Resend …'))
})
