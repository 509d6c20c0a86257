import type { BrowserContext, Page } from 'playwright-core'
import { expect } from 'vitest'
import { createCollectClient } from '../../infra/wire/collect/client.ts'
import { findFaults } from './axe.ts'
import { createProfile, openHeadless, type Profile } from './chromium.ts'
import { loginLinkOf, type RunningTidegate, startTidegate } from './tidegate.ts'

export interface ConsoleServer {
  tidegate: RunningTidegate
  /** Of a browser that is logged in. */
  profile: Profile
  stop(): Promise<void>
}

/** A server, what `prepare` does there, and a browser that came in by the link that the start prints. */
export async function startConsoleServer(
  prepare: (tidegate: RunningTidegate, page: Page) => Promise<unknown> = visitDemo,
): Promise<ConsoleServer> {
  const tidegate = await startTidegate()
  const profile = await createProfile()
  const first = await openHeadless(profile)
  const page = await first.newPage()
  await prepare(tidegate, page)
  // The first log-in teaches the server this engine, so that no test meets that.
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

/** The same with a page that is open for all tests of a file. */
export async function openConsole(
  prepare?: Parameters<typeof startConsoleServer>[0],
): Promise<OpenConsole> {
  const server = await startConsoleServer(prepare)
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

/** A session of a program that sends no snapshot; resolves to its id. */
export async function visitByProgram(
  tidegate: RunningTidegate,
  visit?: ProgramVisit,
): Promise<string> {
  const client = clientOf(tidegate, visit)
  const { sessionId } = await client.open()
  await client.requestResult({ version: 1, elapsed_ms: 5 })
  return sessionId
}

/** What the page says when something is wrong: messages of its console, and errors that nothing caught. */
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

/** Records each text that elements show from now on, even those that no frame paints. Holds until the page is loaded anew. */
export async function recordTexts(page: Page, selector: string): Promise<() => Promise<string[]>> {
  const shown = `[...document.querySelectorAll('${selector}')].map((element) => element.textContent)`
  await page.evaluate(`{
    const texts = (window.recordedTexts = [])
    const changes = { childList: true, subtree: true, characterData: true }
    new MutationObserver(() => texts.push(...${shown})).observe(document.body, changes)
  }`)
  return () => page.evaluate<string[]>('window.recordedTexts')
}

/** Everything that the page asked for is there. */
export async function loaded(page: Page): Promise<void> {
  await expect.poll(() => page.locator('.waiting').count()).toBe(0)
  await expect.poll(() => page.locator('[aria-busy="true"]').count()).toBe(0)
}

/** Nothing of what is there now hinders people, and nothing is wider than the window. */
export async function checkReach(page: Page, width: number): Promise<void> {
  expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBeLessThanOrEqual(
    width,
  )
  const cut = `[...document.querySelectorAll('nav a')].filter((one) => one.getBoundingClientRect().right > ${width})`
  expect(await page.evaluate<string[]>(`${cut}.map((one) => one.textContent)`)).toEqual([])
  expect(await page.evaluate<unknown>(findFaults)).toEqual([])
}
