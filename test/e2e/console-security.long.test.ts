import { once } from 'node:events'
import { createServer } from 'node:http'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { z } from 'zod'
import { type OpenConsole, openConsole } from '../support/console-page.ts'
import { needs } from '../support/needs.ts'
import { loginLinkOf } from '../support/tidegate.ts'

const { test } = needs('chromium')

let server: OpenConsole
let page: Page

beforeAll(async () => {
  server = await openConsole(async () => {})
  page = server.page
})
afterAll(() => server?.stop())

/** Of another port of the same host, to which browsers send the cookie, too. */
async function openElsewhere(html: string): Promise<void> {
  const site = createServer((_, response) =>
    response.setHeader('content-type', 'text/html').end(html),
  )
  site.listen(0, '127.0.0.1')
  await once(site, 'listening')
  const address = site.address()
  await page.goto(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`)
  site.close()
}

const overview = () => page.goto(`${server.tidegate.baseUrl}/console/live/overview`)

const created = z.object({ data: z.object({ id: z.string(), revealed_key: z.string() }) })

const signOut = async () => {
  await overview()
  await page.locator('summary', { hasText: /\S/ }).first().click()
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
}

test('another site cannot frame the console', async () => {
  await openElsewhere(`<iframe src="${server.tidegate.baseUrl}/console"></iframe>`)
  await expect.poll(() => page.frames()[1]?.url()).toBe('chrome-error://chromewebdata/')
})

test('a form of another site signs nobody out', async () => {
  await openElsewhere(
    `<form method="post" action="${server.tidegate.baseUrl}/console/api/logout"><button>Win</button></form>`,
  )
  const answered = page.waitForResponse(/logout/)
  await page.getByRole('button').click()
  const answer = await answered
  expect((await answer.request().allHeaders()).cookie).toContain('tidegate_console=')
  expect([answer.status(), (await answer.json()).error.code]).toEqual([403, 'console.refused'])
  await overview()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
})

test('a script of another site reads and changes nothing', async () => {
  await openElsewhere('<p>Win</p>')
  const tried = (path: string, init: object) =>
    page.evaluate<string>(
      `fetch(${JSON.stringify(`${server.tidegate.baseUrl}/console/api/${path}`)}, ${JSON.stringify({ credentials: 'include', ...init })})
        .then(async (answer) => answer.type + (await answer.text()), (error) => error.name)`,
    )
  const body = JSON.stringify({ session_ids: ['sid_00000000000000000000000000'], label: 'bot' })
  const json = { 'content-type': 'application/json' }
  expect(await tried('session', {})).toBe('TypeError')
  expect(await tried('v1/marks', { method: 'POST', headers: json, body })).toBe('TypeError')
  const refused = page.waitForResponse(/marks/)
  expect(await tried('v1/marks', { method: 'POST', mode: 'no-cors', body })).toBe('opaque')
  expect((await refused).status()).toBe(403)
})

test('who could not be signed out is told so, and stays where they are', async () => {
  await page.route('**/console/api/logout', (route) => route.abort())
  await signOut()
  await page
    .getByRole('alert')
    .getByText('You are still signed in. The server did not answer.')
    .waitFor()
  await page.unroute('**/console/api/logout')
  await signOut()
  await page.getByLabel(/secret key/).waitFor()
})

test('a key that is revoked ends its session, and leaves nothing on the page', async () => {
  const { baseUrl, credentials } = server.tidegate
  const keys = `${baseUrl}/v1/organizations/${credentials.organization_id}/api-keys`
  const headers = {
    authorization: `Bearer ${credentials.live.secret_key}`,
    'content-type': 'application/json',
  }
  const body = JSON.stringify({ type: 'secret', name: 'short', environment: 'live', scopes: ['*'] })
  const { data } = created.parse(
    await (await fetch(keys, { method: 'POST', headers, body })).json(),
  )
  await server.context.clearCookies()
  await overview()
  await page.getByLabel(/secret key/).fill(data.revealed_key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  expect((await fetch(`${keys}/${data.id}`, { method: 'DELETE', headers })).status).toBe(200)
  // It may have noticed by itself.
  await page.evaluate(`document.querySelector('nav a[href$=settings]')?.click()`)
  await page.getByLabel(/secret key/).waitFor()
  expect(await page.getByRole('navigation').count()).toBe(0)
})

test('a link that was used before logs nobody in, and says so', async () => {
  await server.context.clearCookies()
  await page.goto(loginLinkOf(server.tidegate))
  await page.getByRole('alert').getByText('This login link was already used').waitFor()
  await page.getByLabel(/secret key/).waitFor()
  expect(page.url()).not.toContain('code')
})
