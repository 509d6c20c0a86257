import { readFile } from 'node:fs/promises'
import type { BrowserContext, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { z } from 'zod'
import { openHeadless } from '../support/chromium.ts'
import {
  type ConsoleServer,
  checkLooks,
  checkReach,
  complaintsOf,
  loaded,
  startConsoleServer,
  visitByProgram,
} from '../support/console-page.ts'
import { serveLocally } from '../support/local-server.ts'
import { needs } from '../support/needs.ts'
import type { RunningTidegate } from '../support/tidegate.ts'

const { describe, test } = needs('chromium')

let server: ConsoleServer
let tidegate: RunningTidegate
let context: BrowserContext
let page: Page
let complaints: string[]
/** The session of the demo page, and that of a client that sent no snapshot. */
let driven: string
let bare: string

beforeAll(async () => {
  server = await startConsoleServer()
  tidegate = server.tidegate
  const { secret_key } = tidegate.credentials.live
  const answer = await answerTo(`${tidegate.baseUrl}/v1/sessions?limit=1`, secret_key)
  driven = listed.parse(answer).data[0]?.id ?? ''
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
const parameters = () => Object.fromEntries(new URL(page.url()).searchParams)
const textOfSession = (text: string) =>
  page.getByRole('complementary', { name: 'Session' }).getByText(text).first()

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
    await page.getByRole('button', { name: 'Filter', exact: true }).click()
    const adding = page.getByRole('region', { name: 'Filter', exact: true })
    await adding.getByRole('link', { name: /^bot/ }).click()
    await expect.poll(() => parameters().verdict).toBe('bot')
    await page.locator('body').press('j')
    await page.keyboard.press('Enter')
    await textOfSession('WebDriver detected').waitFor()
    expect(parameters().open).toMatch(/^sid_/)
    await page.reload()
    await textOfSession('WebDriver detected').waitFor()
    await page.goBack()
    await expect.poll(() => parameters().open).toBeUndefined()
    expect(parameters().verdict).toBe('bot')
  })

  test('a filter that nothing meets says so, and leads out', async () => {
    await open('live/sessions?country=XX&since=banana')
    await page.getByText('time range in the URL is invalid. Showing the last 24').waitFor()
    await page.getByText('No sessions match these filters').waitFor()
    await page.getByRole('link', { name: 'Clear all filters' }).click()
    await rows().first().waitFor()
  })

  test('one is marked by keys', async () => {
    await open('live/sessions')
    await rows()
      .first()
      .getByRole('link', { name: /^Session sid_/ })
      .click()
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
    await page.getByText('labeled bot').first().waitFor()
  })

  test('the chart says what a bar has, narrows the time, and goes back', async () => {
    await open('live/sessions?last=30d')
    const chart = page.locator('figure.chart')
    await chart.getByText('Days in UTC').waitFor()
    const plot = chart.locator('.plot .bars')
    const { width, height } = await sizeOf(plot)
    await plot.hover({ position: { x: width - 2, y: height / 2 } })
    await chart.getByText('(partial)').waitFor()
    await page.mouse.down()
    await page.mouse.move(...(await placeIn(plot, width / 2, height / 2)), { steps: 3 })
    await page.mouse.up()
    await expect.poll(() => parameters().since).toBeDefined()
    await chart.getByRole('link', { name: 'Zoom out' }).click()
    await expect.poll(() => new URL(page.url()).search).toBe('?last=30d')
    await chart.getByText('As a table').click()
    await chart.getByRole('row').last().getByRole('link').first().click()
    await page.waitForURL(/since=.*until=/)
    await rows().first().waitFor()
  })

  test('any time can be chosen, and keys step through it', async () => {
    await open('live/sessions?last=1h&verdict=bot')
    await page.getByRole('button', { name: 'Custom' }).click()
    const time = page.getByRole('navigation', { name: 'Time' })
    const [since, until] = [time.getByLabel('From'), time.getByLabel('Until')]
    await since.fill('2026-03-01T10:00')
    await until.fill('2026-03-01T10:30')
    await page.getByRole('button', { name: 'Show' }).click()
    await page.getByText('No sessions match these filters in this period').waitFor()
    const span = (from: string, to: string) => ({
      verdict: 'bot',
      since: new Date(from).toISOString(),
      until: new Date(to).toISOString(),
    })
    expect(parameters()).toEqual(span('2026-03-01T10:00', '2026-03-01T10:30'))
    await page.keyboard.press('[')
    await expect.poll(parameters).toEqual(span('2026-03-01T09:30', '2026-03-01T10:00'))
    await page.goBack()
    await page.goBack()
    await expect.poll(parameters).toEqual({ last: '1h', verdict: 'bot' })
    await rows().first().waitFor()
  })

  test('text of visitors is shown as text', async () => {
    const url =
      'https://shop.example/<img src=x onerror=document.title="owned">?q=<script>document.title="owned"</script>'
    const headers = { 'user-agent': '<b>agent</b>' }
    await open(`live/sessions/${await visitByProgram(tidegate, { url, headers })}`)
    await page.getByText('<b>agent</b>').first().waitFor()
    expect(await page.title()).not.toBe('owned')
    expect(await page.locator('main b', { hasText: 'agent' }).count()).toBe(0)
  })
})

describe('the list of sessions', () => {
  beforeAll(async () => {
    bare = await visitByProgram(tidegate)
    await visitByProgram(tidegate, { url: 'https://blog.example/=1+1,"x"' })
  })
  beforeEach(async () => {
    await open('live/sessions')
    await rows().first().waitFor()
  })

  test('the list is saved as CSV', async () => {
    await open('live/sessions?page_host=blog.example')
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'CSV' }).click(),
    ])
    const lines = (await readFile(await download.path(), 'utf8')).trimEnd().split('\r\n')
    expect(download.suggestedFilename()).toBe('sessions.csv')
    expect(lines).toHaveLength(2)
    expect(lines[0]).toMatch(/^id,evaluated_at,verdict,/)
    await page.getByText('Saved 1 row').waitFor()
  })

  test('columns are in the address', async () => {
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByRole('checkbox', { name: 'System' }).check()
    await page.getByRole('checkbox', { name: 'Visitor' }).uncheck()
    await page.getByRole('columnheader', { name: 'System' }).waitFor()
    await page.reload()
    await page.getByRole('columnheader', { name: 'System' }).waitFor()
    expect(await page.getByRole('columnheader', { name: 'Visitor' }).count()).toBe(0)
  })

  test('new sessions are announced, and inserted when they are wanted', async () => {
    const id = await visitByProgram(tidegate)
    const button = page.getByRole('button', { name: '1 new' })
    await button.waitFor()
    const row = page.locator(`tr[data-id="${id}"]`)
    expect(await row.count()).toBe(0)
    await button.click()
    await row.waitFor()
    expect(await button.count()).toBe(0)
  })

  test('a value of a row is taken alone, left out and copied by keyboard', async () => {
    await open('live/sessions?columns=host')
    const blog = page.getByRole('button', { name: 'Host blog.example', exact: true })
    const shop = page.locator('td', { hasText: 'shop.example' })
    const menu = page.getByRole('region', { name: 'Host blog.example' })
    const row = rows().filter({ hasText: 'blog.example' })
    await row.getByRole('link', { name: /^Session/ }).focus()
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.keyboard.press('Enter')
    await expect.poll(parameters).toEqual({ columns: 'host', page_host: 'blog.example' })
    await shop.first().waitFor({ state: 'detached' })
    await row.hover()
    await blog.press('Enter')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await menu.getByRole('button', { name: 'Copied' }).waitFor()
    await page.keyboard.press('Escape')
    await menu.waitFor({ state: 'detached' })
    await page.getByLabel('Search').press('Control+V')
    expect(await page.getByLabel('Search').inputValue()).toBe('blog.example')
    await row.hover()
    await blog.click()
    await menu.getByRole('link', { name: 'Host is not blog.example' }).click()
    await expect.poll(parameters).toEqual({ columns: 'host', 'page_host[not]': 'blog.example' })
    await shop.first().waitFor()
    expect(await blog.count()).toBe(0)
  })

  test('rows are opened, swapped, selected and left by keys, the newest layer first', async () => {
    const opened = () => parameters().open
    const selected = page.locator('tbody').getByRole('checkbox', { checked: true })
    const ids = await rows().evaluateAll((all) => all.map((row) => row.getAttribute('data-id')))
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    await page.keyboard.press('x')
    await page.keyboard.press('Enter')
    await expect.poll(opened).toBe(ids[0])
    await page.keyboard.press('j')
    await expect.poll(opened).toBe(ids[1])
    await page.keyboard.press('Escape')
    await expect.poll(opened).toBeUndefined()
    expect(await selected.count()).toBe(1)
    await page.keyboard.press('Escape')
    await expect.poll(() => selected.count()).toBe(0)
    await page.keyboard.press('Enter')
    await expect.poll(opened).toBe(ids[1])
    await page.keyboard.press('x')
    await page.keyboard.press('Escape')
    await expect.poll(() => selected.count()).toBe(0)
    expect(opened()).toBe(ids[1])
    await page.getByRole('link', { name: 'Close' }).click()
    await rows().first().locator('td').nth(3).click()
    await expect.poll(opened).toBe(ids[0])
    await page.keyboard.press('Shift+Enter')
    await expect.poll(() => new URL(page.url()).pathname).toMatch(`/sessions/${ids[0]}`)
  })

  test('the order is in the address, and a column that only the loaded rows have says so', async () => {
    const requests: string[] = []
    page.on('request', (request) => requests.push(request.url()))
    const header = (name: string) => page.getByRole('columnheader', { name })
    const sort = (name: string) => header(name).getByRole('button').click()
    const scores = async () => (await page.locator('.verdict b').allInnerTexts()).map(Number)
    await sort('Verdict')
    await expect.poll(() => requests.at(-1)).toMatch(/sort=risk_score&order=desc/)
    const descending = (await scores()).toSorted((a, b) => b - a)
    await expect.poll(scores).toEqual(descending)
    await sort('Verdict')
    await expect.poll(scores).toEqual(descending.toReversed())
    expect(await header('Verdict').getAttribute('aria-sort')).toBe('ascending')
    await sort('Path')
    await page.getByRole('columnheader', { name: 'Path (loaded rows)' }).waitFor()
    const paths = page.locator('tbody td:nth-child(5)')
    const texts = (await paths.allInnerTexts()).map((text) => text.replace('⋯', '').trim())
    expect(texts).toEqual(texts.toSorted((a, b) => (a < b ? -1 : 1)))
    expect(parameters()).toEqual({ sort: 'page' })
  })

  test('sessions are selected with a range, labeled together, and the label is undone', async () => {
    const boxes = page.locator('tbody').getByRole('checkbox')
    const labeled = page.locator('tbody .badge', { hasText: 'fraud' })
    await boxes.nth(0).check()
    await boxes.nth(1).click({ modifiers: ['Shift'] })
    await page.getByText('2 selected').waitFor()
    await page.getByRole('button', { name: 'fraud', exact: true }).click()
    await page.getByText('2 sessions labeled fraud').waitFor()
    await expect.poll(() => labeled.count()).toBe(2)
    await page.getByRole('button', { name: 'Undo' }).click()
    await expect.poll(() => labeled.count()).toBe(0)
    await page.getByRole('checkbox', { name: 'Select all loaded rows' }).check()
    await page.getByText(`${await rows().count()} selected`).waitFor()
  })

  test('a view is saved, edited and deleted, and is the title of its page', async () => {
    const title = (text: string) => page.getByRole('heading', { name: text, exact: true }).waitFor()
    const save = () => page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true })
    await open('live/sessions?verdict=bot&group=country')
    await page.getByRole('button', { name: 'Save view' }).click()
    await page.getByLabel('Name').fill('Bots by country')
    await save().click()
    await title('Bots by country')
    await page.getByRole('link', { name: 'Clear all' }).click()
    await page.getByText('Edited', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Edit view' }).click()
    const actions = page.getByRole('region', { name: 'Edit view' })
    await actions.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByLabel('Name').fill('By country')
    await save().click()
    await title('By country')
    await page.getByText('Edited', { exact: true }).waitFor({ state: 'detached' })
    await page.getByRole('link', { name: 'Sessions', exact: true }).click()
    await title('Sessions')
    await page.getByRole('link', { name: 'By country' }).click()
    await expect.poll(() => parameters().group).toBe('country')
    await page.getByRole('button', { name: 'Edit view' }).click()
    await actions.getByRole('button', { name: 'Delete' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
    await title('Sessions')
    expect(parameters().view).toBeUndefined()
  })

  test('an alert on a view is created, edited and deleted', async () => {
    const dialog = page.getByRole('dialog')
    const row = page.getByRole('row', { name: /People/ })
    await open('live/sessions?verdict=human')
    await page.getByRole('button', { name: 'Save view' }).click()
    await page.getByLabel('Name').fill('People')
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Edit view' }).click()
    await page.getByRole('button', { name: 'Alert me' }).click()
    await page.getByLabel('Open at').fill('0')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByText('Must be an integer from 1 to 1000000 for the kind count.').waitFor()
    expect(complaints.splice(0)).toEqual([expect.stringContaining('422')])
    await page.getByLabel('Open at').fill('100000')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.waitFor({ state: 'detached' })
    await open('live/settings?tab=alerts')
    await row.getByText('Matching sessions ≥ 100 000 in 60 min').waitFor()
    await row.getByText('Quiet').waitFor()
    const actions = row.getByRole('button', { name: 'Actions for the alert on People' })
    await actions.click()
    await row.getByRole('button', { name: 'Edit' }).click()
    await page.getByLabel('Compare').selectOption('Percent of all sessions')
    await page.getByLabel('Open at').fill('12.5')
    await dialog.getByRole('button', { name: 'Save' }).click()
    await row.getByText('Percent of all sessions ≥ 12.5 % in 60 min').waitFor()
    await actions.click()
    await row.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await page.getByText('No alerts.').waitFor()
  })

  test('a filter is turned in its place, and no value is one more value', async () => {
    await open('live/sessions?page_host=blog.example')
    await page.getByRole('link', { name: 'Host is blog.example: change to is not' }).press('Enter')
    await expect.poll(parameters).toEqual({ 'page_host[not]': 'blog.example' })
    await page.getByRole('button', { name: 'Filter', exact: true }).click()
    await page.getByLabel('Field').selectOption('Browser')
    const none = page.getByRole('link', { name: /^none/ })
    await expect.poll(() => none.count()).toBe(1)
    await none.click()
    await expect.poll(parameters).toEqual({ 'page_host[not]': 'blog.example', without: 'browser' })
    await rows().first().waitFor()
    await page.getByLabel('Group by').selectOption('By country')
    await page.getByRole('link', { name: 'none', exact: true }).click()
    await expect.poll(() => new URL(page.url()).searchParams.getAll('without')).toContain('country')
    await page.getByRole('link', { name: 'Browser is none: change to is not' }).click()
    await expect.poll(() => parameters()['without[not]']).toBe('browser')
    await page.getByText('As API request').last().click()
    const query = 'page_host%5Bnot%5D=blog.example&without=country&without%5Bnot%5D=browser'
    await page.getByText(query).waitFor()
    await page.getByRole('link', { name: 'Clear all', exact: true }).click()
    await expect.poll(parameters).toEqual({ group: 'country' })
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
    await open('live/sessions?os%5Bnot%5D=Plan9')
    await page.getByText(/^Searched up to 1 Jan 2026/).waitFor()
    await page.getByRole('button', { name: 'Continue the search' }).click()
    await rows().first().waitFor()
    await page.unrouteAll()
  })
})

describe('a session', () => {
  const explained = z.object({
    data: z.object({
      decision: z.object({ risk_score: z.number() }),
      score: z.object({ steps: z.array(z.object({ total: z.number() })) }),
      log: z.object({ offset: z.number() }),
    }),
  })

  const part = (title: string | RegExp) =>
    page.locator('section.panel', { has: page.getByRole('heading', { name: title }) })

  test('the steps lead to the score, and what a signal means opens by keyboard', async () => {
    await open(`live/sessions/${driven}`)
    const score = part('Score breakdown')
    const rows = score.locator('tbody tr')
    await rows.first().waitFor()
    expect(await rows.last().locator('td').last().textContent()).toBe('100')
    const signal = score.locator('summary', { hasText: 'WebDriver detected' })
    await signal.focus()
    await page.keyboard.press('Enter')
    await score.getByText('people who drive their own browser').waitFor()
    await score.getByRole('heading', { name: 'Not counted' }).waitFor()
    await score.getByRole('link', { name: 'Sessions with this signal' }).first().click()
    await expect.poll(() => parameters().signal).toBe('webdriver_detected')
  })

  test('what was not looked at stands beside what was', async () => {
    await open(`live/sessions/${bare}`)
    const fact = (name: string) =>
      page.locator('.facts > div').filter({ has: page.getByText(name, { exact: true }) })
    await fact('Missing').getByText('behavioral').waitFor()
    await fact('Sources').getByText('request headers').waitFor()
  })

  test('whose session it is can be said, and taken back', async () => {
    await open(`live/sessions/${bare}`)
    const field = page.getByLabel('Your user id')
    await page.getByRole('button', { name: 'Attach' }).click()
    await field.fill('<b>ann</b>')
    await field.press('Enter')
    await page.getByRole('link', { name: '<b>ann</b>' }).waitFor()
    await page.getByRole('button', { name: 'Change' }).click()
    await field.fill('')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByRole('button', { name: 'Attach' }).waitFor()
  })

  test('text that would turn or hide what stands beside it is shown by the codes of its characters', async () => {
    const id = await visitByProgram(tidegate, { url: 'https://shop.example/\u2069\u202egpj.exe' })
    const { baseUrl, credentials } = tidegate
    const user = '\u2069\u202enna\u200b'
    const init = { method: 'PATCH', body: JSON.stringify({ client_user_id: user }) }
    await answerTo(`${baseUrl}/v1/sessions/${id}`, credentials.live.secret_key, init)
    await open(`live/sessions/${id}`)
    await page.getByRole('link', { name: '\\u2069\\u202enna\\u200b' }).waitFor()
    await page.getByRole('button', { name: 'Change' }).click()
    expect(await page.getByLabel('Your user id').inputValue()).toBe(user)
    await open('live/sessions?columns=page,user')
    const row = page.locator(`tr[data-id="${id}"]`)
    await row.hover()
    await row.getByRole('button', { name: 'User \\u2069\\u202enna\\u200b' }).click()
    await page.getByRole('link', { name: /^User is \\u2069/ }).click()
    await expect.poll(() => parameters().client_user_id).toBe(user)
    await row.waitFor()
    expect(await page.locator('body').innerText()).not.toMatch(/\p{Bidi_Control}/u)
  })

  test('why it is of its visitor is answered when that is opened', async () => {
    await open(`live/sessions/${driven}`)
    await page.getByText('Why this visitor').click()
    await page.getByText('No candidate: new visitor').waitFor()
  })

  test('the API request that is copied answers what the page shows', async () => {
    await open(`live/sessions/${driven}`)
    await page.getByText('As API request').click()
    await page.locator('.api-request').getByRole('button', { name: 'Copy' }).click()
    await page.getByRole('button', { name: 'Copied' }).waitFor()
    const copied = (await page.locator('.api-request code').last().textContent()) ?? ''
    const [, url = ''] = /'(http[^']+)'/.exec(copied) ?? []
    const { secret_key } = tidegate.credentials.live
    const { data } = explained.parse(await answerTo(url, secret_key))
    expect(data.score.steps.at(-1)?.total).toBe(data.decision.risk_score)
    const shown = await page.locator('details pre').first().textContent()
    expect(shown).toContain(`"offset": ${data.log.offset}`)
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

const settingsTabs = ['', 'install', 'agents', 'data', 'people', 'audit']

test.each([
  'overview',
  'sessions?group=browser',
  'webhooks',
  ...settingsTabs.map((tab) => `settings?tab=${tab}`),
])('%s has nothing that hinders people, in light, in dark and on a phone', (path) =>
  checkLooks(page, `${tidegate.baseUrl}/console/live/${path}`),
)

test('the list hinders nobody with its columns and a menu open', () => {
  const path = 'live/sessions?country%5Bnot%5D=DE&without=asn'
  return checkLooks(page, `${tidegate.baseUrl}/console/${path}`, async () => {
    const row = rows().first()
    await row.getByRole('checkbox').check()
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByRole('checkbox', { name: 'System' }).waitFor()
    await page.keyboard.press('Escape')
    await row.hover()
    await row.getByRole('button', { name: /^Path / }).click()
    await page.getByRole('link', { name: /^Path is not/ }).waitFor()
  })
})

test('a session hinders nobody, also with all of it open', async () => {
  await checkLooks(page, `${tidegate.baseUrl}/console/live/sessions/${driven}`)
  await page.evaluate(
    'for (const one of document.querySelectorAll("main details")) one.open = true',
  )
  await expect.poll(() => page.locator('[aria-busy="true"]').count()).toBe(0)
  await page.getByText('No candidate: new visitor').waitFor()
  await checkReach(page, 360)
})

const dialog = () => page.getByRole('dialog')
const chooseAction = async (row: string, action: string) => {
  await page.getByRole('button', { name: `Actions for ${row}` }).click()
  await page.getByRole('button', { name: action, exact: true }).click()
}

test('an endpoint is added, tested, given a new secret and disabled', async () => {
  const receiver = await serveLocally((_request, response) => response.writeHead(204).end())
  try {
    await open('live/overview')
    await page.getByRole('link', { name: /^Add a webhook/ }).click()
    await page.getByRole('button', { name: 'Add endpoint' }).click()
    await page.getByLabel('Name').fill('<b>Shop</b>')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await dialog().getByText('This is not an absolute URL.').waitFor()
    expect(complaints.splice(0)).toEqual([expect.stringContaining('422')])
    await page.getByLabel('URL').fill(`${receiver.url}/hook`)
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    await dialog()
      .getByText(/^whsec_/)
      .waitFor()
    await page.getByRole('button', { name: 'Done' }).click()
    await chooseAction('<b>Shop</b>', 'Send test event')
    const event = page.getByRole('complementary', { name: 'Event' })
    const delivery = event.getByRole('region', { name: 'Delivery to <b>Shop</b>' })
    await delivery.getByText('succeeded 204').waitFor()
    await page.locator('tr[aria-selected="true"]', { hasText: 'webhook.test' }).waitFor()
    await page.keyboard.press('Escape')
    await event.waitFor({ state: 'detached' })
    await page.getByText('Healthy').waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    await event.waitFor()
    await page.keyboard.press('Escape')
    await chooseAction('<b>Shop</b>', 'Rotate secret')
    await dialog().getByRole('button', { name: 'Rotate secret' }).click()
    await dialog()
      .getByText(/^whsec_/)
      .waitFor()
    await page.keyboard.press('Escape')
    await page.getByText('2 secrets').waitFor()
    await chooseAction('<b>Shop</b>', 'Disable')
    await dialog().getByRole('button', { name: 'Disable' }).click()
    await page.getByText('Disabled', { exact: true }).waitFor()
  } finally {
    receiver.close()
  }
})

test('snippets have the key and the address of the server in them, and are copied', async () => {
  await open('live/settings?tab=install')
  const { publishable_key } = tidegate.credentials.live
  const heading = page.getByRole('heading', { name: 'Send sessions' })
  const parts = page.locator('section.panel', { has: heading })
  await parts.getByText(`import { start } from '${tidegate.baseUrl}/t.js'`).waitFor()
  await parts.getByText('npm', { exact: true }).click()
  const options = `{ publishableKey: '${publishable_key}', endpoint: '${tidegate.baseUrl}' }`
  await parts.getByText(`start(${options})`).waitFor()
  await parts.getByRole('button', { name: 'Copy' }).click()
  await parts.getByRole('button', { name: 'Copied' }).waitFor()
})

test('the environment is in the address, and the other one has none of its sessions', async () => {
  await open('live/sessions')
  await rows().first().waitFor()
  await page.getByLabel('Environment').selectOption('test')
  await expect.poll(() => new URL(page.url()).pathname).toBe('/console/test/sessions')
  await page.getByText('No sessions in this period').waitFor()
})

async function logInBy(key: string): Promise<void> {
  await page.locator('.account button').first().click()
  await page.getByRole('button', { name: 'Sign out', exact: true }).click()
  await page.getByLabel(/secret key/).fill(key)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  complaints = complaints.filter((text) => !text.includes('401'))
}

test('a key of one environment opens that one, and the other says that it was not given', async () => {
  await open('')
  await logInBy(tidegate.credentials.test.secret_key)
  expect(await page.getByLabel('Environment').inputValue()).toBe('test')
  await open('live/sessions')
  await page.getByText('has no access to the environment live').waitFor()
  await page.getByRole('link', { name: 'Go to test' }).click()
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
})
