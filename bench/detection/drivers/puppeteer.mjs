// Puppeteer and its variants. Options: `package`, `stealth`, `ghost`, `protocol`, `evasion`.
import { createRequire } from 'node:module'
import { drive, flags, options, text } from './common.mjs'
import { evasions } from './evasions.mjs'

const require = createRequire(import.meta.url)

let browser
let page
let cursor

async function open() {
  const { chromium: executablePath, firefox, headless } = options
  if (options.package === 'puppeteer-real-browser') {
    const { connect } = require('puppeteer-real-browser')
    const customConfig = { chromePath: executablePath, userDataDir: options.folder }
    return connect({
      headless: false,
      args: flags,
      customConfig,
      disableXvfb: true,
      turnstile: false,
    })
  }
  const puppeteer = await pick()
  const launched = await puppeteer.launch({
    executablePath: options.browser === 'firefox' ? firefox : executablePath,
    browser: options.browser ?? 'chrome',
    headless,
    ...(options.protocol ? { protocol: options.protocol } : {}),
    userDataDir: options.folder,
    args: options.browser === 'firefox' ? [] : flags,
  })
  return { browser: launched, page: (await launched.pages())[0] ?? (await launched.newPage()) }
}

async function pick() {
  if (!options.stealth) return (await import(options.package)).default
  const { addExtra } = require('puppeteer-extra')
  const extra = addExtra(require('puppeteer-core'))
  return extra.use(require('puppeteer-extra-plugin-stealth')())
}

async function click(selector) {
  if (!cursor) return page.click(selector)
  await cursor.click(selector)
}

await drive({
  async load(url) {
    ;({ browser, page } = await open())
    if (options.ghost) cursor = (await import('ghost-cursor')).createCursor(page)
    if (options.evasion) await page.evaluateOnNewDocument(evasions[options.evasion])
    await page.goto(url)
    await page.title()
  },
  async act() {
    await click('#name')
    await page.type('#name', text.name)
    await click('#email')
    await page.type('#email', text.email, { delay: options.delay ?? 0 })
    await click('#message')
    await page.type('#message', text.message)
    await click('#terms')
    await page.select('#topic', 'help')
    if (options.browser !== 'firefox') await page.mouse.wheel({ deltaY: 200 })
    await click('#send')
  },
  close: () => browser.close(),
})
