import type { BrowserContext, Page } from 'playwright-core'
import { expect } from 'vitest'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { findFaults } from './axe.ts'
import { createProfile, openHeadless, type Profile } from './chromium.ts'
import { loginLinkOf, type RunningTidegate, startTidegate } from './tidegate.ts'

export interface ConsoleServer {
  tidegate: RunningTidegate
  /** Profile of the logged-in browser. */
  profile: Profile
  stop(): Promise<void>
}

/** Starts a server, runs `prepare`, and opens a browser through the login link. */
export async function startConsoleServer(
  prepare: (tidegate: RunningTidegate, page: Page) => Promise<unknown> = visitDemo,
  env: Record<string, string> = {},
): Promise<ConsoleServer> {
  // Tests open pages faster than people.
  const tidegate = await startTidegate({ env: { RATE_LIMIT_CONSOLE: '6000', ...env } })
  const profile = await createProfile()
  const first = await openHeadless(profile)
  const page = await first.newPage()
  await prepare(tidegate, page)
  // Waits for the first login to teach the server this engine, so that tests are not affected.
  const taught = page.waitForResponse(
    (response) =>
      response.url().endsWith('/console/api/engines') && response.request().method() === 'POST',
    { timeout: 90_000 },
  )
  await page.goto(loginLinkOf(tidegate))
  await page.getByRole('heading', { name: 'Overview' }).waitFor()
  await taught
  expect(page.url()).not.toContain('code')
  await first.close()
  return {
    tidegate,
    profile,
    async stop() {
      await profile.remove()
      await tidegate.stop()
    },
  }
}

export interface OpenConsole extends ConsoleServer {
  context: BrowserContext
  page: Page
  complaints: string[]
}

/** Does the same, with a page for all tests of a file. */
export async function openConsole(
  ...options: Parameters<typeof startConsoleServer>
): Promise<OpenConsole> {
  const server = await startConsoleServer(...options)
  const context = await openHeadless(server.profile)
  const page = await context.newPage()
  return {
    ...server,
    context,
    page,
    complaints: complaintsOf(page),
    async stop() {
      await context.close()
      await server.stop()
    },
  }
}

async function visitDemo({ baseUrl }: RunningTidegate, page: Page): Promise<void> {
  await page.goto(`${baseUrl}/demo?auto=1`)
  await page.waitForSelector('#result[data-state="done"]')
}

interface ProgramVisit {
  url?: string
  headers?: Record<string, string>
}

/** Returns a client of the collect protocol with the key of pages. */
export const clientOf = (
  { baseUrl, credentials }: RunningTidegate,
  { url = 'https://shop.example/', headers = {} }: ProgramVisit = {},
) =>
  createCollectClient({
    endpoint: baseUrl,
    publishableKey: credentials.live.publishable_key,
    page: { url },
    sdk: { name: 'test', version: '1', platform: 'web' },
    headers,
    fetch,
  })

/** Opens a session without a snapshot. Resolves with its id. */
export async function visitByProgram(
  tidegate: RunningTidegate,
  visit?: ProgramVisit,
): Promise<string> {
  const client = clientOf(tidegate, visit)
  const { sessionId } = await client.open()
  await client.requestResult({ version: 1, elapsed_ms: 5 })
  return sessionId
}

/** Returns a list that collects the page's console messages and uncaught errors. */
export function complaintsOf(page: Page): string[] {
  const complaints: string[] = []
  page.on('console', (message) => complaints.push(message.text()))
  page.on('pageerror', (error) => complaints.push(error.message))
  return complaints
}

/**
 * Looks at a page of the console in light, in dark and on a phone: nothing hinders people, and nothing is too wide.
 * `prepare` is done each time on the page.
 */
export async function checkLooks(page: Page, url: string, prepare = async () => {}): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const)
    for (const width of [1280, 360]) {
      await page.emulateMedia({ colorScheme })
      await page.setViewportSize({ width, height: 800 })
      await page.goto(url)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await prepare()
      await loaded(page)
      await checkReach(page, width)
    }
}

/**
 * Records each text that elements show from now on, even those that no frame paints. Holds until the page is loaded
 * anew.
 */
export async function recordTexts(page: Page, selector: string): Promise<() => Promise<string[]>> {
  const shown = `[...document.querySelectorAll('${selector}')].map((element) => element.textContent)`
  await page.evaluate(`{
    const texts = (window.recordedTexts = [])
    const changes = { childList: true, subtree: true, characterData: true }
    new MutationObserver(() => texts.push(...${shown})).observe(document.body, changes)
  }`)
  return () => page.evaluate<string[]>('window.recordedTexts')
}

/** Waits until the page has loaded. */
export async function loaded(page: Page): Promise<void> {
  await expect.poll(() => page.locator('.waiting').count()).toBe(0)
  await expect.poll(() => page.locator('[aria-busy="true"]').count()).toBe(0)
}

/** Checks the page for accessibility, and that nothing is wider than the window. */
export async function checkReach(page: Page, width: number): Promise<void> {
  expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
    width,
  )
  const cut = `[...document.querySelectorAll('nav a')].filter((one) => one.getBoundingClientRect().right > ${width})`
  expect(await page.evaluate<string[]>(`${cut}.map((one) => one.textContent)`)).toEqual([])
  expect(await page.evaluate<unknown>(findFaults)).toEqual([])
}
