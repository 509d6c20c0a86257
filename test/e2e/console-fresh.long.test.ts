import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { type OpenConsole, openConsole, recordTexts } from '../support/console-page.ts'
import { needs } from '../support/needs.ts'

const { test } = needs('chromium')

let server: OpenConsole
let page: Page

beforeAll(async () => {
  server = await openConsole()
  page = server.page
})
afterAll(() => server?.stop())

const urlOf = (path: string) => `${server.tidegate.baseUrl}/console/live/${path}`
const rows = (of = page) => of.locator('table.rows tbody tr')

test('a mark is on a list that was seen before it, as soon as the list is there', async () => {
  await page.goto(urlOf('sessions'))
  await rows()
    .getByRole('link', { name: /^Session sid_/ })
    .click()
  await page.getByRole('link', { name: 'Open as page' }).click()
  await page.getByRole('button', { name: 'fraud', exact: true }).click()
  await page.getByText('Labeled fraud', { exact: true }).waitFor()
  const recorded = await recordTexts(page, 'table.sessions tbody')
  await page.goBack()
  await rows().getByText('fraud', { exact: true }).waitFor()
  const texts = await recorded()
  expect(texts).not.toEqual([])
  expect(texts.filter((text) => !text.includes('fraud'))).toEqual([])
})

test('a mark beside the list is in the list, too, before the list would be asked for again', async () => {
  const tab = await server.context.newPage()
  await tab.clock.install()
  await tab.goto(urlOf('sessions'))
  await rows(tab)
    .getByRole('link', { name: /^Session sid_/ })
    .click()
  const legitimate = tab.getByRole('group', { name: 'Label as' }).getByText('legitimate')
  await legitimate.waitFor()
  await tab.clock.pauseAt(await tab.evaluate<number>('Date.now() + 1000'))
  await legitimate.click()
  const marked = rows(tab).getByText('legitimate', { exact: true })
  await expect
    .poll(async () => {
      await tab.clock.runFor(1)
      return marked.count()
    })
    .toBe(1)
  // All pages of the browser have one clock.
  await tab.clock.resume()
  await tab.close()
})

test('a refusal is not retried by itself, and a person can', async () => {
  const tab = await server.context.newPage()
  await tab.clock.install()
  let asked = 0
  await tab.route('**/console/api/v1/scoring/model', (route) => {
    asked++
    const error = { code: 'rate_limit.exceeded', message: 'Too many requests.' }
    return route.fulfill({ status: 429, json: { error } })
  })
  await tab.goto(urlOf('settings?tab=data'))
  await tab.getByText('Too many requests.').waitFor()
  await tab.clock.runFor('01:00')
  expect(asked).toBe(1)
  await tab.getByRole('button', { name: 'Try again' }).click()
  await expect.poll(() => asked).toBe(2)
  await tab.unrouteAll()
  await tab.getByRole('button', { name: 'Try again' }).click()
  await tab.getByText('Scoring model').waitFor()
  expect(await tab.getByRole('alert').count()).toBe(0)
  await tab.close()
})

test('nothing is left in memory for the next person who signs in', async () => {
  await page.goto(urlOf('sessions'))
  await rows().first().waitFor()
  await page.locator('.account button').first().click()
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await page.getByLabel(/secret key/).fill(server.tidegate.credentials.live.secret_key)
  await page.route('**/console/api/v1/sessions?*', (route) => route.abort())
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('The server is not responding.').waitFor()
  expect(await rows().count()).toBe(0)
  await page.unrouteAll()
  await rows().first().waitFor()
})

test('an erased person is shown no more: not on pages seen before, not by "back", not in another tab', async () => {
  const tab = await server.context.newPage()
  await tab.goto(urlOf('sessions'))
  await rows(tab)
    .getByRole('link', { name: /^Session sid_/ })
    .click()
  await tab.getByRole('link', { name: 'Open as page' }).click()
  const session = tab.locator('article.session')
  await session.waitFor()

  await page.goto(urlOf('visitors'))
  const link = rows().getByRole('link', { name: /^vid_/ })
  const id = (await link.getAttribute('href'))?.split('/').at(-1) ?? ''
  // So all that was seen stays fresh.
  await page.clock.install()
  await page.clock.pauseAt(await page.evaluate<number>('Date.now() + 1000'))
  await link.click()
  await page.getByRole('button', { name: 'Actions' }).click()
  await page.getByRole('button', { name: 'Erase …' }).click()
  await page.getByRole('dialog').getByRole('textbox').fill(id)
  await page.getByRole('button', { name: 'Erase permanently' }).click()
  await page.getByRole('heading', { name: 'Erased' }).waitFor()
  await page.clock.runFor(20)

  const recorded = await recordTexts(page, 'table.rows, .visitor')
  await page.getByRole('link', { name: 'Visitors' }).first().click()
  await page.getByText('No visitors yet').waitFor()
  await page.goBack()
  await page.getByText('Erased on').waitFor()
  expect(await recorded()).toEqual([])
  await page.clock.resume()
  await session.waitFor({ state: 'detached' })
  await tab.getByText('No session with this id', { exact: false }).waitFor()
})
