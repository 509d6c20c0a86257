// Playwright and its patched variants. Options: `package`; `attach` connects to a Chromium started without flags.
import { plainChromium } from './attach.mjs'
import { drive, flags, options, text } from './common.mjs'

const { chromium } = await import(options.package)

let browser
let page

async function open() {
  if (options.attach) {
    browser = await chromium.connectOverCDP(await plainChromium())
    return browser.contexts()[0].pages()[0]
  }
  const { chromium: executablePath, headless } = options
  if (options.persistent) {
    browser = await chromium.launchPersistentContext(options.folder, {
      executablePath,
      headless,
      viewport: null,
      args: flags,
    })
    return browser.pages()[0]
  }
  browser = await chromium.launch({ executablePath, headless, args: flags })
  return browser.newPage()
}

await drive({
  async load(url) {
    page = await open()
    await page.goto(url)
    // Drivers that hide their contexts may have lost the first one.
    await page.title().catch(() => page.title())
  },
  async act() {
    await page.click('#name')
    await page.type('#name', text.name, { delay: options.delay ?? 0 })
    await page.locator('#email').pressSequentially(text.email)
    await page.fill('#message', text.message)
    await page.check('#terms')
    await page.selectOption('#topic', 'help')
    await page.mouse.wheel(0, 200)
    await page.click('#send')
  },
  close: () => browser.close(),
})
