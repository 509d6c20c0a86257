import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { openBrowser } from '../support/chromium.ts'
import { loaded } from '../support/console-page.ts'
import { needs } from '../support/needs.ts'
import { root } from '../support/test-projects.ts'
import { loginLinkOf, startTidegate } from '../support/tidegate.ts'

const { test } = needs('chromium')

const folder = path.join(root, 'docs/guide')
const takesPictures = process.env.PICTURES === '1'

/** Returns the guide's quotations of pages and its pictures, in order. */
async function guideWalk(): Promise<{ quoted: string[]; pictures: string[] }> {
  const guide = await readFile(path.join(folder, 'console.md'), 'utf8')
  const [, walk = ''] = /\n## From make run to your first session\n(.*?)\n## /s.exec(guide) ?? []
  const found = (pattern: RegExp) => [...walk.matchAll(pattern)].map(([, text = '']) => text)
  return { quoted: found(/"(.+?)"/g), pictures: found(/!\[.+?\]\((.+?)\)/g) }
}

test('a newcomer sees their own session explained, by the steps of the guide', async () => {
  const tidegate = await startTidegate()
  await using browser = await openBrowser()
  const { page } = browser
  try {
    await page.setViewportSize({ width: 1120, height: 780 })
    const { quoted, pictures } = await guideWalk()
    expect(await walk(page, loginLinkOf(tidegate))).toEqual({ quoted, pictures })
    for (const picture of pictures)
      expect((await stat(path.join(folder, picture))).size).toBeLessThan(100_000)
  } finally {
    await tidegate.stop()
  }
}, 120_000)

async function walk(page: Page, link: string): Promise<{ quoted: string[]; pictures: string[] }> {
  const begun = Date.now()
  const [quoted, pictures]: [string[], string[]] = [[], []]
  const said = (text: string) => {
    quoted.push(text)
    return { name: text, exact: true }
  }
  const picture = async (name: string) => {
    pictures.push(`pictures/${name}.png`)
    await loaded(page)
    if (takesPictures) await page.screenshot({ path: path.join(folder, `pictures/${name}.png`) })
  }
  await page.goto(link)
  await page.getByRole('heading', said('Getting started')).waitFor()
  await picture('console-overview')
  await page.getByRole('link', said('demo page')).click()
  await page.getByRole('button', said('Check this visit')).click()
  await page.waitForSelector('#result[data-state="done"]')
  await page.getByRole('link', said('Console')).click()
  await page.getByRole('link', said('Sessions')).click()
  const row = page
    .locator('table.rows tbody tr')
    .first()
    .getByRole('link', { name: /^Session sid_/ })
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
  return { quoted, pictures }
}
