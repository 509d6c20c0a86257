import puppeteer, { type Browser, type Page } from 'puppeteer-core'
import { findProgram } from './needs/programs.ts'

/**
 * Headless Firefox on a profile of its own, driven by puppeteer over WebDriver BiDi: playwright's Firefox is one that
 * it builds itself and downloads, and it cannot drive the one of Debian. Close it when done.
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
 * Opens the address and waits until all of it is there. Puppeteer's `goto` for Firefox now and then waits for ever, when the
 * page was loaded long ago.
 */
export async function goTo(page: Page, url: string): Promise<void> {
  await page.evaluate(`window.isLeft = true; location.href = ${JSON.stringify(url)}`)
  await page.waitForFunction(`!window.isLeft && document.readyState === 'complete'`)
}
