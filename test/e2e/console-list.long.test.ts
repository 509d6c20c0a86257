import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import {
  checkLooks,
  type OpenConsole,
  openConsole,
  visitByProgram,
} from '../support/console-page.ts'
import { needs } from '../support/needs.ts'

const { test } = needs('chromium')

let server: OpenConsole
let page: Page

beforeAll(async () => {
  server = await openConsole(async (tidegate) => {
    await visitByProgram(tidegate)
    await visitByProgram(tidegate, { url: 'https://blog.example/=1+1,"x"' })
  })
  page = server.page
})
afterAll(async () => {
  await server?.stop()
  expect(server.complaints).toEqual([])
})

const urlOf = (path: string) => `${server.tidegate.baseUrl}/console/live/${path}`
const rows = () => page.locator('table.rows tbody tr')

beforeEach(async () => {
  await page.goto(urlOf('sessions'))
  await rows().first().waitFor()
})

test('the list is saved as CSV', async () => {
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'CSV' }).click(),
  ])
  const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\r\n')
  expect(download.suggestedFilename()).toBe('sessions.csv')
  expect(lines).toHaveLength(3)
  expect(lines[0]).toMatch(/^id,evaluated_at,verdict,/)
  await page.getByText('2 saved.').waitFor()
})

test('columns are in the address', async () => {
  await page.getByText('Columns', { exact: true }).click()
  await page.getByRole('checkbox', { name: 'System' }).check()
  await page.getByRole('checkbox', { name: 'Visitor' }).uncheck()
  await page.getByRole('columnheader', { name: 'System' }).waitFor()
  await page.reload()
  await page.getByRole('columnheader', { name: 'System' }).waitFor()
  expect(await page.getByRole('columnheader', { name: 'Visitor' }).count()).toBe(0)
})

test('new sessions are announced, and inserted when they are wanted', async () => {
  const id = await visitByProgram(server.tidegate)
  const button = page.getByRole('button', { name: '1 new' })
  await button.waitFor()
  expect(await page.getByTitle(id).count()).toBe(0)
  await button.click()
  await rows().first().getByTitle(id).waitFor()
  expect(await button.count()).toBe(0)
})

const parameters = () =>
  [...new URL(page.url()).searchParams].map(([name, value]) => `${name}=${value}`)

test('a value of a row is taken alone, left out and copied by keyboard', async () => {
  await server.context.grantPermissions(['clipboard-write'])
  const blog = page.getByRole('button', { name: 'blog.example', exact: true })
  const shop = page.getByRole('button', { name: 'shop.example', exact: true })
  const menu = page.getByRole('region', { name: 'Page blog.example' })
  await blog.press('Enter')
  await page.keyboard.press('Enter')
  await expect.poll(parameters).toEqual(['page_host=blog.example'])
  await shop.first().waitFor({ state: 'detached' })
  await blog.press('Enter')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await menu.getByRole('button', { name: 'Copied' }).waitFor()
  await page.keyboard.press('Escape')
  await menu.waitFor({ state: 'detached' })
  expect(await page.evaluate('document.activeElement.textContent')).toBe('blog.example')
  await page.getByLabel('Search').press('Control+V')
  expect(await page.getByLabel('Search').inputValue()).toBe('blog.example')
  await blog.click()
  const [value, below] = [await blog.boundingBox(), await menu.boundingBox()]
  const distance = (below?.y ?? 0) - (value?.y ?? 0) - (value?.height ?? 0)
  expect(Math.abs(distance)).toBeLessThan(10)
  await menu.getByRole('link', { name: 'Not this' }).click()
  await expect.poll(parameters).toEqual(['page_host[not]=blog.example'])
  await shop.first().waitFor()
  expect(await blog.count()).toBe(0)
})

test('a filter is turned in its place, and no value is one more value', async () => {
  await page.goto(urlOf('sessions?page_host=blog.example'))
  await page.getByRole('link', { name: 'Page is blog.example: change to is not' }).press('Enter')
  await expect.poll(parameters).toEqual(['page_host[not]=blog.example'])
  await page.getByRole('button', { name: '+ filter' }).click()
  await page.getByLabel('Field').selectOption('Browser')
  await page.getByRole('button', { name: /^none/ }).click()
  await expect.poll(parameters).toEqual(['page_host[not]=blog.example', 'without=browser'])
  await rows().first().waitFor()
  await page.getByLabel('Group by').selectOption('Country')
  await page.getByRole('link', { name: 'none', exact: true }).click()
  await expect.poll(parameters).toContain('without=country')
  await page.getByRole('link', { name: 'Browser is none: change to is not' }).click()
  await page.getByText('No sessions meet these filters').waitFor()
  await page.getByText('As API request').last().click()
  await page
    .getByText('page_host%5Bnot%5D=blog.example&without=country&without%5Bnot%5D=browser')
    .waitFor()
  await page.getByRole('link', { name: 'Clear all', exact: true }).click()
  await expect.poll(parameters).toEqual(['group=country'])
})

test('a list that has found nothing yet says how far it was read, and goes on', async () => {
  const lists = (url: URL) =>
    url.pathname === '/console/api/v1/sessions' && !url.searchParams.has('cursor')
  const pagination = { has_more: true, next_cursor: 'further', limit: 50, total: null }
  const json = { data: [], pagination, meta: { read_to: '2026-01-01T10:00:00.000Z' } }
  await page.route(lists, (route) => route.fulfill({ json }))
  await page.route(/cursor=further/, async (route) => {
    const url = new URL(route.request().url())
    url.searchParams.delete('cursor')
    await route.continue({ url: url.href })
  })
  await page.goto(urlOf('sessions?os%5Bnot%5D=Plan9'))
  await page.getByText(/^No session meets the filters since 1 Jan 2026/).waitFor()
  await page.getByRole('button', { name: 'Go on reading' }).click()
  await rows().first().waitFor()
  await page.unrouteAll()
})

test.each([
  ['overview', async () => {}],
  [
    'sessions?country%5Bnot%5D=DE&without=asn',
    async () => {
      await page.getByText('Columns', { exact: true }).click()
      await rows()
        .first()
        .getByRole('button', { name: /example$/ })
        .click()
      await page.getByRole('link', { name: 'Not this' }).waitFor()
    },
  ],
] as const)('%s hinders nobody, in light, in dark and on a phone', async (path, prepare) => {
  await checkLooks(page, urlOf(path), prepare)
})
