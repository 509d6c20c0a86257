// Real window whose tool acts without its default behavior. Options: `package`, `hands`.
import { setTimeout as delay } from 'node:timers/promises'
import { createNumbers, drive, flags, options, text } from './common.mjs'

const next = createNumbers()
const { chromium: executablePath, folder, package: name, hands } = options
let close
let page

async function open() {
  if (name === 'puppeteer-core') {
    const puppeteer = (await import(name)).default
    const args = [...flags, '--disable-blink-features=AutomationControlled']
    const settings = { headless: false, userDataDir: folder, defaultViewport: null, args }
    const browser = await puppeteer.launch({ executablePath, ...settings })
    close = () => browser.close()
    return (await browser.pages())[0]
  }
  const { chromium } = await import(name)
  const settings = { headless: false, viewport: null, args: flags }
  const context = await chromium.launchPersistentContext(folder, { executablePath, ...settings })
  close = () => context.close()
  return context.pages()[0]
}

const between = (least, most) => least + next() * (most - least)
let at = { x: 500, y: 420 }

/** Moves along a curved path, slow at both ends. */
async function moveTo(to) {
  const steps = Math.round(between(25, 45))
  const bend = between(-40, 40)
  for (let step = 1; step <= steps; step++) {
    const t = step / steps
    const eased = t ** 3 * (10 - 15 * t + 6 * t * t)
    const off = bend * Math.sin(Math.PI * eased) + (step < steps ? between(-1, 1) : 0)
    await page.mouse.move(
      at.x + (to.x - at.x) * eased + off,
      at.y + (to.y - at.y) * eased + off / 2,
    )
    await delay(between(6, 18))
  }
  at = to
}

async function pressOn(id) {
  const handle = await page.$(`#${id}`)
  const box = await handle.boundingBox()
  await moveTo({
    x: box.x + box.width * between(0.2, 0.7),
    y: box.y + box.height * between(0.3, 0.7),
  })
  await delay(between(60, 220))
  await page.mouse.down()
  await delay(between(60, 120))
  await page.mouse.up()
  await delay(between(250, 600))
}

/** Types with Shift for capitals, irregular hold times, and pauses before words. */
async function typeWith(words) {
  for (const letter of words) {
    const isCapital = letter !== letter.toLowerCase() || letter === '@'
    if (isCapital) await page.keyboard.down('Shift').then(() => delay(between(40, 90)))
    await page.keyboard.down(letter)
    await delay(between(35, 95))
    await page.keyboard.up(letter)
    if (isCapital) await page.keyboard.up('Shift')
    await delay(between(20, 120) + (letter === ' ' ? between(80, 300) : 0))
  }
}

async function careful() {
  await page.mouse.move(at.x, at.y)
  for (const id of ['name', 'email', 'message']) {
    await pressOn(id)
    await typeWith(text[id])
  }
  await pressOn('terms')
  await pressOn('send')
}

/** Uses the tool's own click and type, with a pause between keys. */
async function plainly(texts) {
  for (const [id, words] of Object.entries(texts)) {
    await page.click(`#${id}`)
    await page.type(`#${id}`, words, { delay: between(60, 110) })
  }
  await page.click('#send')
}

const ways = {
  careful,
  'lower-case': () =>
    plainly({ name: 'maria lindqvist', message: 'please call me back on monday' }),
  digits: () => plainly({ name: '4556737586899855', message: '072731' }),
  'one-click': () => page.click('#send'),
}

await drive({
  async load(url) {
    page = await open()
    await page.goto(url)
    await page.title().catch(() => page.title())
  },
  act: ways[hands],
  close: () => close(),
})
