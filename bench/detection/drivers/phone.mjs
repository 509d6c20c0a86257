// Chromium that poses as a touch phone. Option: `package`. `chrome-remote-interface` varies its touches like a finger.
import { setTimeout as delay } from 'node:timers/promises'
import { plainChromium } from './attach.mjs'
import { createNumbers, drive, flags, options, text } from './common.mjs'

const next = createNumbers()
const userAgent =
  'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Mobile Safari/537.36'
const screen = { width: 412, height: 839 }
const scale = 2.625
const { chromium: executablePath, headless, folder, package: name } = options

const openers = {
  'playwright-core': openPlaywright,
  'patchright-core': openPlaywright,
  'puppeteer-core': openPuppeteer,
  'chrome-remote-interface': openProtocol,
}

async function openPlaywright() {
  const { chromium } = await import(name)
  const phone = {
    userAgent,
    viewport: screen,
    deviceScaleFactor: scale,
    isMobile: true,
    hasTouch: true,
  }
  const context = await chromium.launchPersistentContext(folder, {
    executablePath,
    headless,
    args: flags,
    ...phone,
  })
  const page = context.pages()[0]
  return { ...handsOf(page), close: () => context.close() }
}

async function openPuppeteer() {
  const puppeteer = (await import(name)).default
  const browser = await puppeteer.launch({
    executablePath,
    headless,
    userDataDir: folder,
    args: flags,
  })
  const page = (await browser.pages())[0]
  const viewport = { ...screen, deviceScaleFactor: scale, isMobile: true, hasTouch: true }
  await page.emulate({ userAgent, viewport })
  return { ...handsOf(page), close: () => browser.close() }
}

function handsOf(page) {
  return {
    load: (url) => page.goto(url).then(() => page.title()),
    tap: (id) => page.tap(`#${id}`),
    type: (id, words) => page.type(`#${id}`, words, { delay: 60 }),
  }
}

async function openProtocol() {
  const CDP = (await import('chrome-remote-interface')).default
  const { port } = new URL(await plainChromium())
  const client = await CDP({
    port: Number(port),
    local: true,
    target: (targets) => targets.find((t) => t.type === 'page'),
  })
  await client.Page.enable()
  const turned = { screenOrientation: { type: 'portraitPrimary', angle: 0 } }
  await client.Emulation.setDeviceMetricsOverride({
    ...screen,
    deviceScaleFactor: scale,
    mobile: true,
    ...turned,
    screenWidth: 412,
    screenHeight: 915,
  })
  await client.Emulation.setTouchEmulationEnabled({ enabled: true, maxTouchPoints: 5 })
  await client.Emulation.setUserAgentOverride({
    userAgent,
    platform: 'Linux armv81',
    userAgentMetadata: {
      brands: [
        { brand: 'Chromium', version: '156' },
        { brand: 'Not.A/Brand', version: '99' },
      ],
      fullVersion: '156.0.8078.79',
      platform: 'Android',
      platformVersion: '15.0.0',
      model: 'Pixel 8',
      mobile: true,
      architecture: '',
      bitness: '',
      wow64: false,
    },
  })
  if (options.workers) await replaceInWorkers(client)
  return {
    load: (url) => client.Page.navigate({ url }),
    tap: (id) => tapAt(client, id),
    type: (_, words) => typeBy(client, words),
    close: () => client.Browser.close(),
  }
}

/** Makes workers report the phone's platform, because emulation does not apply to them. */
async function replaceInWorkers(client) {
  const expression = `Object.defineProperty(WorkerNavigator.prototype, 'platform', { get: () => 'Linux armv81' })`
  client.on('Target.attachedToTarget', ({ sessionId }) => {
    client.send('Runtime.evaluate', { expression }, sessionId).catch(() => {})
    client.send('Runtime.runIfWaitingForDebugger', {}, sessionId).catch(() => {})
  })
  await client.Target.setAutoAttach({
    autoAttach: true,
    waitForDebuggerOnStart: true,
    flatten: true,
  })
}

async function tapAt(client, id) {
  const { result } = await client.Runtime.evaluate({
    expression: `JSON.stringify(document.getElementById('${id}').getBoundingClientRect())`,
  })
  const { left, top, width, height } = JSON.parse(result.value)
  let x = left + width * (0.3 + next() * 0.4)
  let y = top + height * (0.3 + next() * 0.4)
  const touch = (type) => {
    const point = {
      x,
      y,
      radiusX: 18 + next() * 9,
      radiusY: 16 + next() * 9,
      force: 0.2 + next() * 0.5,
    }
    return client.Input.dispatchTouchEvent({
      type,
      touchPoints: type === 'touchEnd' ? [] : [point],
    })
  }
  await delay(300 + next() * 500)
  await touch('touchStart')
  for (let moves = 0; moves < 3; moves++) {
    await delay(15 + next() * 12)
    x += next() - 0.5
    y += next() - 0.5
    await touch('touchMove')
  }
  await touch('touchEnd')
}

async function typeBy(client, words) {
  for (const letter of words) {
    await client.Input.dispatchKeyEvent({ type: 'keyDown', text: letter, key: letter })
    await client.Input.dispatchKeyEvent({ type: 'keyUp', key: letter })
    await delay(80 + next() * 90)
  }
}

let phone

await drive({
  async load(url) {
    phone = await openers[name]()
    await phone.load(url)
  },
  async act() {
    for (const id of ['name', 'email', 'message']) {
      await phone.tap(id)
      await phone.type(id, text[id])
    }
    await phone.tap('terms')
    await phone.tap('send')
  },
  close: () => phone.close(),
})
