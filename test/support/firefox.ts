import puppeteer, { type Browser, type Page } from 'puppeteer-core'
import { findProgram } from './needs/programs.ts'

/**
 * Opens headless Firefox on a fresh profile, driven by Puppeteer over WebDriver BiDi, because Playwright can only drive
 * its own build. Close it when done.
 */
export async function openFirefox(): Promise<Browser> {
  const file = findProgram('firefox-esr')
  if (!file) throw new Error('This needs Firefox: apt-get install firefox-esr')
  return puppeteer.launch({
    browser: 'firefox',
    executablePath: file,
    headless: true,
    timeout: 90_000,
  })
}

/**
 * Opens the URL and waits until the page has loaded. Puppeteer's `goto` for Firefox sometimes never resolves.
 */
export async function goTo(page: Page, url: string): Promise<void> {
  await page.evaluate(`window.isLeft = true; location.href = ${JSON.stringify(url)}`)
  await page.waitForFunction(`!window.isLeft && document.readyState === 'complete'`)
}
