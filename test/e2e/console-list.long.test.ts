import { readFile } from 'node:fs/promises'
import axe from 'axe-core'
import type { BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { createProfile, openHeadless, type Profile } from '../support/chromium.ts'
import { needs } from '../support/needs.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

const { test } = needs('chromium')

let tidegate: RunningTidegate
let profile: Profile
let context: BrowserContext
let page: Page
const complaints: string[] = []

/** A session of a program; resolves to its id. */
async function visit(url = 'https://shop.example/'): Promise<string> {
  const client = createCollectClient({
    endpoint: tidegate.baseUrl,
    publishableKey: tidegate.credentials.live.publishable_key,
    sdk: { name: 'test', version: '1', platform: 'web' },
    page: { url },
    fetch,
  })
  const { sessionId } = await client.open()
  await client.requestResult({ version: 1, elapsed_ms: 5 })
  return sessionId
}

beforeAll(async () => {
  tidegate = await startTidegate()
  await visit()
  await visit('https://blog.example/=1+1,"x"')
  profile = await createProfile()
  context = await openHeadless(profile)
  page = await context.newPage()
  await page.goto(/http\S+\/console#code=\S+/.exec(tidegate.output())?.[0] ?? '')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  page.on('console', (message) => complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(error.message))
})
afterAll(async () => {
  await context?.close()
  await profile?.remove()
  await tidegate?.stop()
  expect(complaints).toEqual([])
})

const rows = () => page.locator('table.rows tbody tr')

beforeEach(async () => {
  await page.goto(`${tidegate.baseUrl}/console/live/sessions`)
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
  const id = await visit()
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
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1280, 360]) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 800 })
      await page.goto(`${tidegate.baseUrl}/console/live/${path}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await prepare()
      await expect.poll(() => page.locator('.waiting, [aria-busy="true"]').count()).toBe(0)
      expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
      await page.evaluate(axe.source)
      const { violations } = await page.evaluate<axe.AxeResults>('axe.run()')
      expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([])
    }
})
