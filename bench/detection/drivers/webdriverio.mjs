// WebdriverIO over WebDriver BiDi. `options.browser` is chrome or firefox.
import { spawn } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { remote } from 'webdriverio'
import { drive, flags, options, text } from './common.mjs'

let browser

const capabilities = {
  chrome: () => ({
    browserName: 'chrome',
    webSocketUrl: true,
    'goog:chromeOptions': { binary: options.chromium, args: flags },
  }),
  firefox: () => ({
    browserName: 'firefox',
    webSocketUrl: true,
    'moz:firefoxOptions': { binary: options.firefox },
  }),
}

async function startDriver() {
  const file = options.browser === 'chrome' ? options.chromedriver : options.geckodriver
  spawn(file, [`--port=${options.port}`], { stdio: 'ignore' })
  const ready = () => fetch(`http://127.0.0.1:${options.port}/status`).catch(() => undefined)
  for (let attempt = 0; attempt < 100 && !(await ready()); attempt++) await delay(100)
}

await drive({
  async load(url) {
    await startDriver()
    browser = await remote({
      hostname: '127.0.0.1',
      port: options.port,
      path: '/',
      logLevel: 'error',
      capabilities: capabilities[options.browser](),
    })
    await browser.url(url)
    await browser.getTitle()
  },
  async act() {
    for (const id of ['name', 'email', 'message']) {
      await browser.$(`#${id}`).click()
      await browser.$(`#${id}`).addValue(text[id])
    }
    await browser.$('#terms').click()
    await browser.$('#topic').selectByAttribute('value', 'help')
    await browser.$('#send').click()
  },
  close: () => browser.deleteSession(),
})
