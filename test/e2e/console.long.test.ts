import { createServer } from 'node:http'
import type { BrowserContext, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { openHeadless } from '../support/chromium.ts'
import {
  type ConsoleServer,
  checkLooks,
  complaintsOf,
  loaded,
  startConsoleServer,
  visitByProgram,
} from '../support/console-page.ts'
import { needs } from '../support/needs.ts'
import type { RunningTidegate } from '../support/tidegate.ts'

const { describe, test } = needs('chromium')

let server: ConsoleServer
let tidegate: RunningTidegate
let context: BrowserContext
let page: Page
let complaints: string[]

beforeAll(async () => {
  server = await startConsoleServer()
  tidegate = server.tidegate
})
afterAll(() => server?.stop())
beforeEach(async () => {
  context = await openHeadless(server.profile)
  page = await context.newPage()
  complaints = complaintsOf(page)
})
afterEach(async () => {
  await context.close()
  expect(complaints).toEqual([])
})

const open = (path: string) => page.goto(`${tidegate.baseUrl}/console/${path}`)
const rows = () => page.locator('table.rows tbody tr')

async function sizeOf(of: Locator) {
  const box = await of.boundingBox()
  if (!box) throw new Error('nothing is drawn')
  return box
}

async function placeIn(of: Locator, x: number, y: number): Promise<[number, number]> {
  const box = await sizeOf(of)
  return [box.x + x, box.y + y]
}

describe('sessions', () => {
  test('the own one is found, filtered, opened beside the list and closed again, and the address says it', async () => {
    await open('live/sessions')
    await rows().first().waitFor()
    await page.getByRole('button', { name: '+ filter' }).click()
    const adding = page.getByRole('region', { name: 'Add a filter' })
    await adding.getByRole('button', { name: /^bot/ }).click()
    await expect.poll(() => new URL(page.url()).searchParams.get('verdict')).toBe('bot')
    await page.locator('body').press('j')
    await page
      .getByRole('complementary', { name: 'Session' })
      .getByText('webdriver detected')
      .first()
      .waitFor()
    expect(new URL(page.url()).searchParams.get('open')).toMatch(/^sid_/)
    await page.reload()
    await page
      .getByRole('complementary', { name: 'Session' })
      .getByText('webdriver detected')
      .first()
      .waitFor()
    await page.goBack()
    await expect.poll(() => new URL(page.url()).searchParams.has('open')).toBe(false)
    expect(new URL(page.url()).searchParams.get('verdict')).toBe('bot')
  })

  test('a filter that nothing meets says so, and leads out', async () => {
    await open('live/sessions?country=XX&since=banana')
    await page
      .getByText('The time in the address cannot be read, so these are the last 24 hours')
      .waitFor()
    await page.getByText('No sessions meet these filters').waitFor()
    await page.getByRole('link', { name: 'Clear all filters' }).click()
    await rows().first().waitFor()
  })

  test('one is marked by keys', async () => {
    await open('live/sessions')
    await rows().first().getByRole('link', { name: /^sid_/ }).click()
    const focused = page.locator('.marks button:focus')
    await expect
      .poll(async () => {
        await page.keyboard.press('m')
        return focused.allTextContents()
      })
      .toEqual(['human'])
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.locator('button[aria-pressed="true"]', { hasText: 'bot' }).waitFor()
    await page.getByText('marked as bot').waitFor()
  })

  test('the chart says what a bar has, narrows the time, and goes back', async () => {
    await open('live/sessions?last=30d')
    const chart = page.locator('figure.chart')
    await chart.getByText('Days are UTC').waitFor()
    await chart.getByText(/The last bar is not a whole one: it is counted until /).waitFor()
    const plot = chart.locator('.plot .u-over')
    const { width, height } = await sizeOf(plot)
    await plot.hover({ position: { x: width - 2, y: height / 2 } })
    await chart.getByText(/together/).waitFor()
    await page.mouse.down()
    await page.mouse.move(...(await placeIn(plot, width / 2, height / 2)), { steps: 3 })
    await page.mouse.up()
    await expect.poll(() => new URL(page.url()).searchParams.has('since')).toBe(true)
    await chart.getByRole('link', { name: 'Zoom out' }).click()
    await expect.poll(() => new URL(page.url()).search).toBe('?last=30d')
    await chart.getByText('As a table').click()
    await chart.getByRole('row').last().getByRole('link').first().click()
    await page.waitForURL(/since=.*until=/)
    await rows().first().waitFor()
  })

  test('without the program that draws the chart its table is there', async () => {
    await page.route('**/uPlot*.js', (route) => route.abort())
    await open('live/sessions?last=30d')
    const chart = page.locator('figure.chart')
    await chart.getByText('The chart could not be loaded').waitFor()
    await chart.getByText('As a table').click()
    await chart.getByRole('row').last().getByRole('link').first().waitFor()
    await page.unroute('**/uPlot*.js')
    // The browser itself says that the file did not come.
    expect(complaints.splice(0)).toEqual([expect.stringContaining('Failed to load resource')])
  })

  test('any time can be chosen, and keys step through it', async () => {
    const parameters = () => Object.fromEntries(new URL(page.url()).searchParams)
    await open('live/sessions?last=1h&verdict=bot')
    await page.getByText('other times').click()
    const time = page.getByRole('navigation', { name: 'Time' })
    const [since, until] = [time.getByLabel('From'), time.getByLabel('Until')]
    const latest = await until.inputValue()
    await until.fill('2026-03-01T10:30')
    await since.fill(latest)
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByText('The end has to be later than the beginning').waitFor()
    await since.fill('2026-03-01T10:00')
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByText('No sessions meet these filters within this time').waitFor()
    const span = (from: string, to: string) => ({
      verdict: 'bot',
      since: new Date(from).toISOString(),
      until: new Date(to).toISOString(),
    })
    expect(parameters()).toEqual(span('2026-03-01T10:00', '2026-03-01T10:30'))
    await page.keyboard.press('[')
    await expect.poll(parameters).toEqual(span('2026-03-01T09:30', '2026-03-01T10:00'))
    await page.keyboard.press(']')
    await expect.poll(parameters).toEqual(span('2026-03-01T10:00', '2026-03-01T10:30'))
    await page.goBack()
    await page.goBack()
    await page.goBack()
    await expect.poll(parameters).toEqual({ last: '1h', verdict: 'bot' })
    await rows().first().waitFor()
  })

  test('text of visitors is shown as text', async () => {
    const url =
      'https://shop.example/<img src=x onerror=document.title="owned">?q=<script>document.title="owned"</script>'
    const sessionId = await visitByProgram(tidegate, {
      url,
      headers: { 'user-agent': '<b>agent</b>' },
    })
    await open(`live/sessions/${sessionId}`)
    await page.getByText('<b>agent</b>').first().waitFor()
    expect(await page.title()).not.toBe('owned')
    expect(await page.locator('main b', { hasText: 'agent' }).count()).toBe(0)
  })
})

const show = (state: 'hidden' | 'visible') =>
  page.evaluate(
    `Object.defineProperty(document, 'visibilityState', { value: '${state}', configurable: true })
     document.dispatchEvent(new Event('visibilitychange'))`,
  )

test('a page that is hidden asks for nothing until it is seen again', async () => {
  await page.clock.install()
  await open('live/sessions')
  await rows().first().waitFor()
  await show('hidden')
  await loaded(page)
  const asked: string[] = []
  page.on('request', (request) => asked.push(new URL(request.url()).pathname))
  await page.clock.runFor('03:00')
  expect(asked).toEqual([])
  await show('visible')
  await expect.poll(() => asked).toContain('/console/api/v1/sessions')
})

test.each(['overview', 'sessions', 'sessions?group=browser', 'webhooks', 'settings'])(
  '%s has nothing that hinders people, in light, in dark and on a phone',
  (path) => checkLooks(page, `${tidegate.baseUrl}/console/live/${path}`),
)

test('an endpoint is added, tested, given a new secret and disabled', async () => {
  const receiver = createServer((_request, response) => response.writeHead(204).end())
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const address = receiver.address()
  const port = typeof address === 'object' ? address?.port : undefined
  page.on('dialog', (dialog) => void dialog.accept())
  try {
    await open('live/overview')
    await page.getByRole('link', { name: /^A webhook/ }).click()
    await page.getByText('Add an endpoint').click()
    await page.getByLabel('Name').fill('<b>Shop</b>')
    await page.getByLabel('Address').fill(`http://127.0.0.1:${port}/hook`)
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await page.getByText('It is shown this once').waitFor()
    await page.getByRole('button', { name: 'Send a test' }).click()
    const test = page.locator('tr', { hasText: 'webhook.test' })
    await test.getByText('succeeded').waitFor()
    await test.getByRole('link', { name: 'webhook.test' }).click()
    await page.getByRole('region', { name: 'Delivery to <b>Shop</b>' }).getByText('204').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'New secret' }).click()
    await page.getByText(/^two, the previous one until in /).waitFor()
    await page.getByRole('button', { name: 'Disable' }).click()
    await page.getByText('disabled (manual)').waitFor()
  } finally {
    receiver.close()
  }
})

test('snippets have the key and the address of the server in them, and are copied', async () => {
  await context.grantPermissions(['clipboard-write'])
  await open('live/settings')
  const { publishable_key } = tidegate.credentials.live
  const parts = page.locator('section.part', {
    has: page.getByRole('heading', { name: 'Send sessions' }),
  })
  await parts.getByText(`import { start } from '${tidegate.baseUrl}/t.js'`).waitFor()
  await parts.getByText('Next', { exact: true }).click()
  await parts
    .getByText(
      `useTidegate({ publishableKey: '${publishable_key}', endpoint: '${tidegate.baseUrl}' })`,
    )
    .waitFor()
  await parts.getByRole('button', { name: 'Copy' }).click()
  await parts.getByRole('button', { name: 'Copied' }).waitFor()
})

test('the environment is in the address, and the other one has none of its sessions', async () => {
  await open('live/sessions')
  await rows().first().waitFor()
  await page.getByLabel('Environment').selectOption('test')
  await expect.poll(() => new URL(page.url()).pathname).toBe('/console/test/sessions')
  await page.getByText('No sessions within this time').waitFor()
})

test('who is logged in is asked before another link logs in', async () => {
  const questions: string[] = []
  page.on('dialog', (dialog) => {
    questions.push(dialog.message())
    void dialog.dismiss()
  })
  await open('live/overview#code=conlog_of_a_stranger')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  expect(questions).toEqual([expect.stringContaining('You are signed in as')])
})

async function logInBy(key: string): Promise<void> {
  await page.locator('summary', { hasText: /\S/ }).first().click()
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await page.getByLabel(/secret key/).fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  complaints = complaints.filter((text) => !text.includes('401'))
}

test('who signs out has to log in, and a key does it', async () => {
  await open('live/overview')
  await logInBy(tidegate.credentials.live.secret_key)
})

test('a key of one environment opens that one, and the other says that it was not given', async () => {
  await open('')
  await logInBy(tidegate.credentials.test.secret_key)
  expect(await page.getByLabel('Environment').inputValue()).toBe('test')
  await open('live/sessions')
  await page.getByText('was not given the environment live').waitFor()
  await page.getByRole('link', { name: 'Go to test' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
})
