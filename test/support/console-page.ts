import axe from 'axe-core'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import { createProfile, openHeadless, type Profile } from './chromium.ts'
import { type RunningTidegate, startTidegate } from './tidegate.ts'

export interface ConsoleServer {
  tidegate: RunningTidegate
  /** Of a browser that is logged in. */
  profile: Profile
  stop(): Promise<void>
}

/** A server with one session, of the demo page, and a browser that came in by the link that the start prints. */
export async function startConsoleServer(): Promise<ConsoleServer> {
  const tidegate = await startTidegate()
  const profile = await createProfile()
  const first = await openHeadless(profile)
  const page = await first.newPage()
  await page.goto(`${tidegate.baseUrl}/demo?auto=1`)
  await page.waitForSelector('#result[data-state="done"]')
  await page.goto(/http\S+\/console#code=\S+/.exec(tidegate.output())?.[0] ?? '')
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  expect(page.url()).not.toContain('code')
  await first.close()
  return {
    ...{ tidegate, profile },
    async stop() {
      await profile.remove()
      await tidegate.stop()
    },
  }
}

/** What the page says when something is wrong: messages of its console, and errors that nothing caught. */
export function complaintsOf(page: Page): string[] {
  const complaints: string[] = []
  page.on('console', (message) => complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(error.message))
  return complaints
}

/** Looks at a page of the console in light, in dark and on a phone: nothing hinders people, and nothing is too wide. */
export async function checkLooks(page: Page, url: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1280, 360]) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 800 })
      await page.goto(url)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await expect.poll(() => page.locator('.waiting').count()).toBe(0)
      await expect.poll(() => page.locator('[aria-busy="true"]').count()).toBe(0)
      await checkReach(page, width)
    }
}

/** Nothing of what is there now hinders people, and nothing is wider than the window. */
export async function checkReach(page: Page, width: number): Promise<void> {
  expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
  await page.evaluate(axe.source)
  const { violations } = await page.evaluate<axe.AxeResults>('axe.run()')
  expect(violations.map(({ id, nodes }) => [id, nodes.map(({ html }) => html)])).toEqual([])
}
