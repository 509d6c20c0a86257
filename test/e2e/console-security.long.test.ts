import { once } from 'node:events'
import { createServer } from 'node:http'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { openHeadless } from '../support/chromium.ts'
import { type ConsoleServer, startConsoleServer } from '../support/console-page.ts'
import { needs } from '../support/needs.ts'

const { test } = needs('chromium')

let server: ConsoleServer
let context: BrowserContext
let page: Page

beforeAll(async () => {
  server = await startConsoleServer(async () => {})
  context = await openHeadless(server.profile)
  page = await context.newPage()
})
afterAll(async () => {
  await context?.close()
  await server?.stop()
})

const signOut = async () => {
  await page.goto(`${server.tidegate.baseUrl}/console/live/overview`)
  await page.locator('summary', { hasText: /\S/ }).first().click()
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
}

test('another site cannot frame the console', async () => {
  const html = `<iframe src="${server.tidegate.baseUrl}/console"></iframe>`
  const site = createServer((_, response) => response.setHeader('content-type', 'text/html').end(html))
  site.listen(0, '127.0.0.1')
  await once(site, 'listening')
  const address = site.address()
  await page.goto(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`)
  await expect.poll(() => page.frames()[1]?.url()).toBe('chrome-error://chromewebdata/')
  site.close()
})

test('who could not be signed out is told so, and stays where they are', async () => {
  await page.route('**/console/api/logout', (route) => route.abort())
  await signOut()
  await page.getByRole('alert').getByText('You are still signed in. The server did not answer.').waitFor()
  await page.unroute('**/console/api/logout')
  await signOut()
  await page.getByLabel(/secret key/).waitFor()
})
