import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { z } from 'zod'
import { openHeadless } from '../support/chromium.ts'
import {
  type ConsoleServer,
  checkLooks,
  checkReach,
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
/** Of the demo page, and of a client that sent no snapshot. */
let driven: string
let bare: string

beforeAll(async () => {
  server = await startConsoleServer()
  const { baseUrl, credentials } = server.tidegate
  const { secret_key } = credentials.live
  const { data } = listed.parse(await answerTo(`${baseUrl}/v1/sessions?limit=1`, secret_key))
  driven = data[0]?.id ?? ''
  bare = await visitByProgram(server.tidegate)
})
afterAll(() => server?.stop())
beforeEach(async () => {
  context = await openHeadless(server.profile)
  await context.grantPermissions(['clipboard-write'])
  page = await context.newPage()
  complaints = complaintsOf(page)
})
afterEach(async () => {
  await context.close()
  expect(complaints).toEqual([])
})

async function answerTo(url: string, key: string, init: RequestInit = {}): Promise<unknown> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const response = await fetch(url, { ...init, headers })
  expect([url, response.status]).toEqual([url, 200])
  return response.json()
}

const listed = z.object({ data: z.array(z.object({ id: z.string() })) })
const explained = z.object({
  data: z.object({
    decision: z.object({ risk_score: z.number() }),
    score: z.object({ steps: z.array(z.object({ total: z.number() })) }),
    log: z.object({ offset: z.number() }),
  }),
})

const urlOf = (id: string) => `${server.tidegate.baseUrl}/console/live/sessions/${id}`
const part = (title: string | RegExp) =>
  page.locator('section.part', { has: page.getByRole('heading', { name: title }) })

test('the steps lead to the score, and what a signal means opens by keyboard', async () => {
  await page.goto(urlOf(driven))
  const score = part(/^How the score of 100/)
  const rows = score.locator('tbody tr')
  await rows.first().waitFor()
  expect(await rows.last().locator('td').last().textContent()).toBe('100')
  const signal = score.locator('summary', { hasText: 'WebDriver detected' })
  await signal.focus()
  await page.keyboard.press('Enter')
  await score.getByText('people who drive their own browser').waitFor()
  await score.getByRole('heading', { name: /^Overruled/ }).waitFor()
  await score.getByRole('link', { name: 'Sessions with this signal' }).first().click()
  await expect.poll(() => new URL(page.url()).searchParams.get('signal')).toBe('webdriver_detected')
})

test('what was not looked at stands beside what was', async () => {
  await page.goto(urlOf(bare))
  await part('What was not looked at').getByText('behavioral').first().waitFor()
  await part('What was looked at').getByText('request headers').first().waitFor()
})

test('whose session it is can be said, and taken back', async () => {
  await page.goto(urlOf(bare))
  const field = page.getByLabel('Your id of the user')
  await field.fill('<b>ann</b>')
  await field.press('Enter')
  await page.getByText(', user <b>ann</b>').waitFor()
  await field.fill('')
  await page.getByRole('button', { name: 'Attach' }).click()
  await page.getByText(', no user').waitFor()
})

test('text that would turn or hide what stands beside it is shown by the codes of its characters', async () => {
  const id = await visitByProgram(server.tidegate, {
    url: 'https://shop.example/\u2069\u202egpj.exe',
  })
  const { baseUrl, credentials } = server.tidegate
  const user = '\u2069\u202enna\u200b'
  const body = JSON.stringify({ client_user_id: user })
  await answerTo(`${baseUrl}/v1/sessions/${id}`, credentials.live.secret_key, {
    method: 'PATCH',
    body,
  })
  await page.goto(urlOf(id))
  await page.getByText(', user \\u2069\\u202enna\\u200b').waitFor()
  expect(await page.getByLabel('Your id of the user').inputValue()).toBe(user)
  await page.goto(`${baseUrl}/console/live/sessions?columns=session,page,user`)
  await page.getByRole('button', { name: '\\u2069\\u202enna\\u200b' }).click()
  await page.getByRole('link', { name: 'Only this' }).click()
  await expect.poll(() => new URL(page.url()).searchParams.get('client_user_id')).toBe(user)
  await page.getByTitle(id).waitFor()
  expect(await page.locator('body').innerText()).not.toMatch(/\p{Bidi_Control}/u)
})

test('why it is of its visitor is answered when that is opened', async () => {
  await page.goto(urlOf(driven))
  await page.getByText('Why this visitor').click()
  await page.getByText('Nobody looked like it before').waitFor()
})

test('the API request that is copied answers what the page shows', async () => {
  await page.goto(urlOf(driven))
  await page.getByText('As API request').click()
  await page.locator('.api-request').getByRole('button', { name: 'Copy' }).click()
  await page.getByRole('button', { name: 'Copied' }).waitFor()
  const copied = (await page.locator('.api-request code').last().textContent()) ?? ''
  const [, url = ''] = /'(http[^']+)'/.exec(copied) ?? []
  const { secret_key } = server.tidegate.credentials.live
  const { data } = explained.parse(await answerTo(url, secret_key))
  expect(data.score.steps.at(-1)?.total).toBe(data.decision.risk_score)
  const place = await part('On the log').getByText(String(data.log.offset), { exact: true }).count()
  expect(place).toBeGreaterThan(0)
})

test('the page has nothing that hinders people, also with all of it open', async () => {
  await checkLooks(page, urlOf(driven))
  await page.evaluate(
    'for (const one of document.querySelectorAll("main details")) one.open = true',
  )
  await expect.poll(() => page.locator('[aria-busy="true"]').count()).toBe(0)
  await page.getByText('Nobody looked like it before').waitFor()
  await checkReach(page, 360)
})
