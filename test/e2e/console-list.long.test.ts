import { readFile } from 'node:fs/promises'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { openHeadless } from '../support/chromium.ts'
import {
  type ConsoleServer,
  checkLooks,
  complaintsOf,
  startConsoleServer,
  visitByProgram,
} from '../support/console-page.ts'
import { needs } from '../support/needs.ts'

const { test } = needs('chromium')

let server: ConsoleServer
let context: BrowserContext
let page: Page
let complaints: string[]

beforeAll(async () => {
  server = await startConsoleServer(async (tidegate) => {
    await visitByProgram(tidegate)
    await visitByProgram(tidegate, { url: 'https://blog.example/=1+1,"x"' })
  })
  context = await openHeadless(server.profile)
  page = await context.newPage()
  complaints = complaintsOf(page)
})
afterAll(async () => {
  await context?.close()
  await server?.stop()
  expect(complaints).toEqual([])
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

test.each([
  ['overview', async () => {}],
  [
    'sessions',
    async () => {
      await page.getByText('Columns', { exact: true }).click()
    },
  ],
] as const)('%s hinders nobody, in light, in dark and on a phone', async (path, prepare) => {
  await checkLooks(page, urlOf(path), prepare)
})
