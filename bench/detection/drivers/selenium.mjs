// Selenium over WebDriver. Options: `browser` is chrome, firefox or webkit; `hidden` sets flags that hide it.
import { Builder, By, Capabilities } from 'selenium-webdriver'
import chrome from 'selenium-webdriver/chrome.js'
import firefox from 'selenium-webdriver/firefox.js'
import { DriverService } from 'selenium-webdriver/remote/index.js'
import { drive, flags, options, text } from './common.mjs'

let driver

const openers = {
  async chrome() {
    const chosen = new chrome.Options()
    chosen.setBinaryPath(options.chromium)
    chosen.addArguments(...flags, `--user-data-dir=${options.folder}`)
    if (options.headless) chosen.addArguments('--headless=new')
    if (options.hidden) {
      chosen.excludeSwitches('enable-automation')
      chosen.addArguments('--disable-blink-features=AutomationControlled')
    }
    if (options.bidi) chosen.enableBidi()
    const service = new chrome.ServiceBuilder(options.chromedriver)
    return new Builder()
      .forBrowser('chrome')
      .setChromeOptions(chosen)
      .setChromeService(service)
      .build()
  },
  async firefox() {
    const chosen = new firefox.Options().setBinary(options.firefox)
    if (options.headless) chosen.addArguments('-headless')
    const service = new firefox.ServiceBuilder(options.geckodriver)
    return new Builder()
      .forBrowser('firefox')
      .setFirefoxOptions(chosen)
      .setFirefoxService(service)
      .build()
  },
  async webkit() {
    const service = new DriverService.Builder(options.webkitdriver)
    service.addArguments(`--port=${options.port}`)
    service.setPort(options.port)
    service.setLoopback(true)
    const started = service.build()
    await started.start()
    const capabilities = new Capabilities({
      browserName: 'MiniBrowser',
      'webkitgtk:browserOptions': { binary: options.minibrowser, args: ['--automation'] },
    })
    return new Builder()
      .usingServer(`http://127.0.0.1:${options.port}`)
      .withCapabilities(capabilities)
      .build()
  },
}

const find = (id) => driver.findElement(By.id(id))

await drive({
  async load(url) {
    driver = await openers[options.browser]()
    await driver.get(url)
    await driver.getTitle()
  },
  async act() {
    for (const id of ['name', 'email', 'message']) {
      await find(id).click()
      await find(id).sendKeys(text[id])
    }
    await find('terms').click()
    await find('topic').findElement(By.css('option[value=help]')).click()
    if (options.browser === 'chrome') await driver.actions().scroll(200, 200, 0, 100).perform()
    await driver
      .actions()
      .move({ origin: find('send') })
      .click()
      .perform()
  },
  close: () => driver.quit(),
})
