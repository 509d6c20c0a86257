import { readFile } from 'node:fs/promises'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { z } from 'zod'
import { checkLooks, checkReach, type OpenConsole, openConsole } from '../support/console-page.ts'
import { needs } from '../support/needs.ts'

const { test } = needs('chromium')

let server: OpenConsole
let page: Page
/** Somebody who came three times. */
let visitor: string

beforeAll(async () => {
  server = await openConsole(async ({ baseUrl }, first) => {
    // A tab goes on with its session, so each visit is another one.
    for (const tab of [first, await first.context().newPage(), await first.context().newPage()]) {
      await tab.goto(`${baseUrl}/demo?auto=1`)
      await tab.waitForSelector('#result[data-state="done"]')
    }
  })
  const [newest] = listed.parse(await ask('/v1/fingerprints')).data
  visitor = newest?.id ?? ''
  page = server.page
})
afterAll(async () => {
  await server?.stop()
  expect(server.complaints).toEqual([])
})
beforeEach(() => open(visitor))

const listed = z.object({ data: z.array(z.object({ id: z.string() })) })

async function ask(
  path: string,
  { method = 'GET', body }: { method?: string; body?: object } = {},
) {
  const { baseUrl, credentials } = server.tidegate
  const headers = {
    authorization: `Bearer ${credentials.live.secret_key}`,
    'content-type': 'application/json',
  }
  const response = await fetch(`${baseUrl}${path}`, {
    method,
    headers,
    ...(body && { body: JSON.stringify(body) }),
  })
  expect(response.ok).toBe(true)
  return response.json()
}

const urlOf = (path: string) => `${server.tidegate.baseUrl}/console/live/${path}`
const entries = () => page.locator('.time-line > li')

async function open(id: string): Promise<void> {
  await page.goto(urlOf(`visitors/${id}`))
  await page.getByRole('heading', { level: 1 }).waitFor()
}

/** Chooses an action by keyboard. */
async function act(name: string): Promise<void> {
  await page.getByRole('button', { name: 'Actions' }).press('Enter')
  await page.getByRole('button', { name }).press('Enter')
}

/** By keyboard. */
async function type(field: Locator, text: string): Promise<void> {
  await field.focus()
  await page.keyboard.type(text)
}

test('the line has all sessions, how each was linked, and why', async () => {
  await expect.poll(() => entries().count()).toBe(3)
  await entries().nth(2).getByText('New visitor').waitFor()
  for (const i of [0, 1])
    await entries().nth(i).getByText('Matched by an id stored in the browser').waitFor()
  await entries().first().getByText('later, no changes').waitFor()
  await page.locator('body').press('j')
  expect(await page.locator(':focus').getAttribute('title')).toMatch(/^sid_/)
  await entries().first().locator('summary').press('Enter')
  await entries().first().getByText('Id stored in the browser').waitFor()
})

test('a session leads to its visitor, and a user or an id finds one', async () => {
  const { data } = listed.parse(await ask(`/v1/sessions?visitor_id=${visitor}`))
  const [{ id = '' } = {}] = data
  await ask(`/v1/sessions/${id}`, { method: 'PATCH', body: { client_user_id: '<b>ann</b>' } })
  await page.goto(urlOf(`sessions/${id}`))
  const related = page.getByRole('row', { name: /^Visitor vid_.* 30 days 3$/ })
  await related.getByRole('link', { name: '3' }).waitFor()
  await page.getByText('User attached: <b>ann</b>').waitFor()
  await page.getByTitle(visitor, { exact: true }).first().click()
  await page.getByRole('link', { name: '<b>ann</b>' }).click()
  await page.getByRole('row').getByTitle(visitor).waitFor()
  await page.locator('body').press('g')
  await page.locator('body').press('v')
  await page.getByRole('heading', { name: 'Visitors', exact: true }).waitFor()
  await page.locator('body').press('/')
  await page.keyboard.type(` ${visitor.toUpperCase()} `)
  await page.keyboard.press('Enter')
  await expect.poll(() => entries().count()).toBe(3)
})

test('sessions that are chosen on the line get a visitor of their own, and a merger takes that back', async () => {
  await entries().first().getByRole('checkbox').press('Space')
  await page.getByRole('button', { name: 'Split off 1' }).press('Enter')
  await type(page.getByLabel('Reason'), 'Two people.')
  await page.keyboard.press('Enter')
  const moved = page.getByRole('status').filter({ hasText: 'Moved 1 session to vid_' })
  const other = (await moved.getByRole('link').getAttribute('title')) ?? ''
  await expect.poll(() => entries().count()).toBe(2)
  await moved.getByRole('link').press('Enter')
  await expect.poll(() => entries().count()).toBe(1)
  await open(visitor)
  await act('Merge …')
  await page.getByLabel('Id of the other visitor').fill('vid_1')
  await type(page.getByLabel('Reason'), 'One person.')
  await page.keyboard.press('Enter')
  await page.locator('.field .error').waitFor()
  server.complaints.splice(0)
  await page.getByLabel('Id of the other visitor').fill(other)
  await page.keyboard.press('Enter')
  await page.getByText('Moved 1 session to this visitor').waitFor()
  await expect.poll(() => entries().count()).toBe(3)
  await open(other)
  await page.getByText('was merged into another').waitFor()
  server.complaints.splice(0)
  await page.getByRole('link').getByText(/^vid_/).click()
  await expect.poll(() => entries().count()).toBe(3)
})

test('all about the visitor is saved', async () => {
  const [download] = await Promise.all([page.waitForEvent('download'), act('Export as JSON')])
  expect(download.suggestedFilename()).toBe(`${visitor}.json`)
  const saved = JSON.parse(await readFile(await download.path(), 'utf8'))
  expect(saved.sessions).toHaveLength(3)
})

test('neither visitors nor one of them hinder people, and neither does the question before erasing', async () => {
  await checkLooks(page, urlOf('visitors'))
  await checkLooks(page, urlOf(`visitors/${visitor}`))
  await act('Erase …')
  await page.getByText('Erases 3 sessions with all decisions').waitFor()
  await checkReach(page, 360)
})

test('erasing wants the id typed, and leaves a receipt', async () => {
  await act('Erase …')
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await act('Erase …')
  const typed = page.getByLabel(/^Type/)
  await type(typed, 'yes')
  await page.keyboard.press('Enter')
  expect(await page.getByRole('dialog').isVisible()).toBe(true)
  await typed.fill('')
  await type(typed, visitor)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Erased' }).waitFor()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Save receipt' }).press('Enter'),
  ])
  const receipt = JSON.parse(await readFile(await download.path(), 'utf8'))
  expect(receipt).toMatchObject({ visitor_id: visitor, counts: { sessions: 3, visitors: 1 } })
  expect(server.complaints).toEqual([])
  await open(visitor).catch(() => {})
  await page.getByText(`Erased on `).getByText(receipt.id).waitFor()
  server.complaints.splice(0)
})
