import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { openBrowser } from '../support/chromium.ts'
import { loaded } from '../support/console-page.ts'
import { needs } from '../support/needs.ts'
import { createTestDatabase } from '../support/postgres.ts'
import { repeatSessions, simulate } from '../support/simulated-traffic.ts'
import { root } from '../support/test-projects.ts'
import { loginLinkOf, startTidegate } from '../support/tidegate.ts'

const { test } = needs('chromium')

const folder = path.join(root, 'docs/guide')
const takesPictures = process.env.PICTURES === '1'

/** Quotations of pages and pictures in a section of the guide, in order. */
interface Walk {
  quoted: string[]
  pictures: string[]
}

async function guideWalk(heading: string): Promise<Walk> {
  const guide = await readFile(path.join(folder, 'console.md'), 'utf8')
  const [, section = ''] = guide.split(`\n## ${heading}\n`)
  const [walk = ''] = section.split('\n## ')
  const found = (pattern: RegExp) => [...walk.matchAll(pattern)].map(([, text = '']) => text)
  return { quoted: found(/"(.+?)"/g), pictures: found(/!\[.+?\]\((.+?)\)/g) }
}

/** Compares a walk with its section of the guide. */
async function expectAsInGuide(heading: string, walk: Walk): Promise<void> {
  expect(walk).toEqual(await guideWalk(heading))
  for (const picture of walk.pictures)
    expect((await stat(path.join(folder, picture))).size).toBeLessThan(100_000)
}

/** Records what a walk uses. With PICTURES=1, also takes the pictures. */
function recordWalk(page: Page) {
  const walk: Walk = { quoted: [], pictures: [] }
  return {
    walk,
    said(text: string) {
      walk.quoted.push(text)
      return { name: text, exact: true }
    },
    async picture(name: string) {
      walk.pictures.push(`pictures/${name}.png`)
      await loaded(page)
      if (takesPictures) await page.screenshot({ path: path.join(folder, `pictures/${name}.png`) })
    },
  }
}

test('a newcomer sees their own session explained, by the steps of the guide', async () => {
  const tidegate = await startTidegate()
  await using browser = await openBrowser()
  const { page } = browser
  try {
    await page.setViewportSize({ width: 1120, height: 660 })
    const walk = await walkToOwnSession(page, loginLinkOf(tidegate))
    await expectAsInGuide('From make run to your first session', walk)
  } finally {
    await tidegate.stop()
  }
}, 120_000)

async function walkToOwnSession(page: Page, link: string): Promise<Walk> {
  const begun = Date.now()
  const { walk, said, picture } = recordWalk(page)
  await page.goto(link)
  await page.getByRole('heading', said('Getting started')).waitFor()
  await picture('console-overview')
  await page.getByRole('link', said('demo page')).click()
  await page.getByRole('button', said('Check this visit')).click()
  await page.waitForSelector('#result[data-state="done"]')
  await page.getByRole('link', said('Console')).click()
  await page.getByRole('link', said('Sessions')).click()
  const row = page.locator('table.rows tbody tr').first()
  await row.waitFor()
  await picture('console-sessions')
  await row.click()
  await page.getByRole('link', said('Open as page')).click()
  await page.locator('.signal summary').first().click()
  await page.getByText(said('Looks at').name).first().waitFor()
  console.log(
    `From the link to the explained session: ${((Date.now() - begun) / 1000).toFixed(1)} s`,
  )
  await picture('console-session')
  return walk
}

test('an analyst follows an attack from the overview to a saved view, by the steps of the guide', async () => {
  const database = await createTestDatabase()
  const tidegate = await startTidegate({ env: { DATABASE_URL: database.url } })
  await using browser = await openBrowser()
  const { page } = browser
  try {
    await page.setViewportSize({ width: 1120, height: 500 })
    await simulate(tidegate, 12, '--bots', '0.2', '--seed', 'usual')
    await repeatSessions(database.pool, { times: 50, everyMs: 3_600_000 })
    await simulate(tidegate, 120, '--attack', 'credential-stuffing', '--rate', '20')
    const walk = await walkToSavedView(page, loginLinkOf(tidegate))
    await expectAsInGuide('From an attack to a saved view', walk)
  } finally {
    await tidegate.stop()
    await database.drop()
  }
}, 300_000)

async function walkToSavedView(page: Page, link: string): Promise<Walk> {
  const { walk, said, picture } = recordWalk(page)
  await page.goto(link)
  const anomaly = page.locator('.anomalies a').first()
  await anomaly.waitFor()
  expect(await anomaly.innerText()).toMatch(/^\+\d+ sessions from \S+ on \/login since /)
  await page.getByRole('heading', said('Anomalies')).waitFor()
  await anomaly.evaluate((link) => link.scrollIntoView({ block: 'end' }))
  await picture('console-anomaly')
  await page.setViewportSize({ width: 1120, height: 440 })
  await anomaly.click()
  await page.locator('table.rows tbody tr').first().waitFor()
  await page.getByRole('checkbox', said('Select all loaded rows')).check()
  await page.getByText(said('Label as').name).waitFor()
  await page.locator('.bulk-bar').getByRole('button', { name: 'bot', exact: true }).click()
  await page.getByRole('button', said('Undo')).waitFor()
  await picture('console-labels')
  await page.getByRole('button', said('Save view')).click()
  await page.getByLabel(said('Name').name).fill('Login attack')
  await page.getByRole('button', said('Save')).click()
  await page.getByRole('link', said('Sessions')).waitFor()
  await page.getByRole('link', { name: 'Login attack' }).waitFor()
  await page.getByRole('heading', { name: 'Login attack' }).waitFor()
  await picture('console-view')
  return walk
}
