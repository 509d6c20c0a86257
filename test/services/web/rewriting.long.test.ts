import { afterAll, beforeAll, expect } from 'vitest'
import type { Snapshot } from '../../../schemas/observations.ts'
import { needs } from '../../support/needs.ts'
import { evaluateClient, slugs } from '../scoring/support/sessions.ts'
import { answers } from '../scoring/support/snapshots.ts'
import { createSdkBench, handOver, lastSnapshot, type SdkBench } from './sdk-page.ts'

/** A driver's script runs in every frame, the page's own script only in the page. */
const scopes: Script['of'][] = ['page', 'every frame']

const { describe, test } = needs('chromium')

let bench: SdkBench

beforeAll(async () => {
  bench = await createSdkBench()
})
afterAll(() => bench.close())

interface Script {
  /** Runs only in the page, like the page's own script, or in every frame, like a driver's. */
  of: 'page' | 'every frame'
  text: string
}

const inPage = (text: string) => `if (self === top) {${text}}`

/** Returns the snapshot of a page in which the script ran first. */
async function snapshotAfter(script?: Script): Promise<Snapshot> {
  const { page, problems } = await bench.open({
    ...(script && { script: script.of === 'page' ? inPage(script.text) : `{${script.text}}` }),
  })
  await handOver(bench, page)
  expect(problems).toEqual([])
  return lastSnapshot(bench.server)
}

/** Evaluates a snapshot without the traces of a headless browser. */
function evaluated(snapshot: Snapshot) {
  const windowed: Snapshot = JSON.parse(
    JSON.stringify(snapshot).replaceAll('HeadlessChrome', 'Chrome'),
  )
  return evaluateClient({ snapshot: { ...windowed, proofs: answers } })
}

const everyReader = ['page', 'frame', 'worker'].flatMap((at) => [`${at}.stack`, `${at}.getter`])

const rewriteJson = `
  const { stringify } = JSON
  JSON.stringify = (...all) => stringify(...all)?.replace('"webdriver":true', '"webdriver":false')
    .replace('"webdriver_iframe":true', '"webdriver_iframe":false')`
const hideSource = `
  const { toString } = Function.prototype
  const lie = { toString() {
    return this === JSON.stringify || this === Function.prototype.toString
      ? 'function ' + this.name + '() { [native code] }' : toString.call(this)
  } }
  Function.prototype.toString = lie.toString`

describe('a script that runs before the SDK', () => {
  test('is not reported if there is none, and every console detects the driver', async () => {
    const { tamper, automation, environment } = await snapshotAfter()
    const genuine = { realm_available: true, foreign_primitives: [], realm_differences: [] }
    expect(tamper).toMatchObject(genuine)
    const driven = { console_readers: everyReader, cdp_runtime: true, webdriver: true }
    expect(automation).toMatchObject({ ...driven, webdriver_iframe: true })
    expect(environment.secure_context).toBe(true)
  })

  // Error trackers and blockers also wrap single functions. A patched `toString` counts only in frames.
  const alone = { page: 'wrapped_page_functions', 'every frame': 'wrapped_page_functions' }
  test.each([
    ['replaces JSON.stringify', rewriteJson, alone],
    [
      'replaces JSON.stringify and hides its source',
      `${rewriteJson}; ${hideSource}`,
      { ...alone, 'every frame': 'rewritten_primitives' },
    ],
    [
      'wraps JSON.stringify in a proxy',
      `JSON.stringify = new Proxy(JSON.stringify, { apply: (target, self, all) =>
        Reflect.apply(target, self, all)?.replace('"webdriver":true', '"webdriver":false') })`,
      alone,
    ],
  ])('%s: the webdriver flag and the name of the function are sent', async (_, text, signals) => {
    for (const of of scopes) {
      const snapshot = await snapshotAfter({ of, text })
      expect(snapshot.automation).toMatchObject({ webdriver: true, webdriver_iframe: true })
      expect(snapshot.tamper.foreign_primitives).toContain('JSON.stringify')
      const evaluation = evaluated(snapshot)
      expect(evaluation.score.verdict).toBe('bot')
      expect(slugs(evaluation)).toEqual(expect.arrayContaining(['webdriver_detected', signals[of]]))
    }
  })

  test('disables the console of the page: the frame detects the reader', async () => {
    const snapshot = await snapshotAfter({ of: 'page', text: 'console.debug = () => {}' })
    const { automation, tamper } = snapshot
    expect(automation).toMatchObject({ cdp_runtime: true, console_readers: everyReader.slice(2) })
    expect(tamper.foreign_primitives).toEqual(['console.debug'])
    expect(slugs(evaluated(snapshot))).toContain('developer_tools_detected')
  })

  test('disables the console of every frame: the worker detects the reader', async () => {
    const snapshot = await snapshotAfter({ of: 'every frame', text: 'console.debug = () => {}' })
    const seen = { cdp_runtime: true, console_readers: everyReader.slice(4) }
    expect(snapshot.automation).toMatchObject(seen)
    const evaluation = evaluated({ ...snapshot, automation: withoutFlag(snapshot) })
    expect(evaluation.score.verdict).not.toBe('human')
    expect(slugs(evaluation)).toContain('wrapped_page_functions')
  })

  const getter = `Object.getOwnPropertyDescriptor(Navigator.prototype, 'webdriver').get`
  test.each([
    [
      'defines the flag on navigator',
      `Object.defineProperty(navigator, 'webdriver', { get: () => false })`,
    ],
    [
      'defines the flag on the prototype',
      `Object.defineProperty(Navigator.prototype, 'webdriver', { get: () => false, configurable: true })`,
    ],
    ['deletes the flag', 'delete Navigator.prototype.webdriver'],
    [
      'wraps the getter in a proxy',
      `Object.defineProperty(Navigator.prototype, 'webdriver', { configurable: true, get: new Proxy(${getter}, {
        apply(target, self, all) { Reflect.apply(target, self, all); return false } }) })`,
    ],
    [
      'wraps the getter in a proxy and hides its source',
      `const fake = new Proxy(${getter}, {
        apply(target, self, all) { Reflect.apply(target, self, all); return false } })
      Object.defineProperty(Navigator.prototype, 'webdriver', { configurable: true, get: fake })
      const { toString } = Function.prototype
      Function.prototype.toString = new Proxy(toString, {
        apply: (target, self, all) => self === fake ? 'function get webdriver() { [native code] }'
          : Reflect.apply(target, self === Function.prototype.toString ? toString : self, all) })`,
    ],
  ])('%s: the session is a bot', async (_, text) => {
    for (const of of scopes) {
      const snapshot = await snapshotAfter({ of, text })
      if (of === 'page') expect(snapshot.automation.webdriver).toBe(true)
      const evaluation = evaluated(snapshot)
      expect(evaluation.score.verdict).toBe('bot')
      expect(slugs(evaluation)).toContain('webdriver_property_overridden')
    }
  })

  test('wraps the same functions as error trackers and frameworks: no risk signal', async () => {
    const text = `
      const wrap = (owner, name) => { const own = owner[name]; owner[name] = function (...all) { return own.apply(this, all) } }
      for (const name of ['fetch', 'setTimeout']) wrap(window, name)
      for (const name of ['debug', 'log', 'error']) wrap(console, name)
      wrap(EventTarget.prototype, 'addEventListener')
      wrap(XMLHttpRequest.prototype, 'send')
      wrap(Function.prototype, 'toString')`
    const snapshot = await snapshotAfter({ of: 'page', text })
    const logs = ['console.debug', 'console.log', 'console.error']
    const wrapped = [...logs, 'fetch', 'setTimeout', 'EventTarget.addEventListener']
    expect(snapshot.tamper).toMatchObject({
      foreign_primitives: ['Function.toString', ...wrapped, 'XMLHttpRequest.send'],
      patched_functions: [],
      realm_differences: [],
    })
    const tampering = evaluated(snapshot).fired.filter(
      ({ channel, role }) => channel === 'functions' && role === 'risk',
    )
    expect(tampering).toEqual([])
  })

  test('pretends to be another browser: the differences are named, but do not make it a bot', async () => {
    const text = `
      Object.defineProperty(Navigator.prototype, 'userAgent', { get: () => navigator.appVersion.replace(/^/, 'Mozilla/') })
      Object.defineProperty(navigator, 'hardwareConcurrency', { get: () => 77 })`
    const snapshot = await snapshotAfter({ of: 'page', text })
    const differing = ['frame.hardwareConcurrency', 'worker.hardwareConcurrency']
    expect(snapshot.tamper.realm_differences).toEqual(differing)
    expect(snapshot.tamper.foreign_primitives).toEqual(['navigator.userAgent'])
    const evaluation = evaluated({ ...snapshot, automation: withoutFlag(snapshot) })
    const named = ['rewritten_navigator', 'realm_differences']
    expect(slugs(evaluation)).toEqual(expect.arrayContaining(named))
    expect(evaluation.score.verdict).not.toBe('bot')
  })
})

/** Returns the values of a browser that hides the flag, with a driver that does not read the console. */
function withoutFlag({ automation }: Snapshot): Snapshot['automation'] {
  const hidden = { webdriver: false, webdriver_iframe: false, webdriver_own_property: false }
  return { ...automation, ...hidden, console_readers: [], cdp_runtime: false }
}

describe('the clean realm', () => {
  test.each([
    ['createElement throws', `document.createElement = () => { throw new Error('no') }`],
    [
      'contentWindow returns the page',
      `Object.defineProperty(HTMLIFrameElement.prototype, 'contentWindow', { get: () => window })`,
    ],
    [
      'appendChild and insertBefore do nothing',
      `Node.prototype.appendChild = Node.prototype.insertBefore = (child) => child`,
    ],
  ])('is opened even if %s', async (_, text) => {
    const { tamper, automation } = await snapshotAfter({ of: 'page', text })
    expect(tamper.realm_available).toBe(true)
    expect(automation.webdriver_iframe).toBe(true)
  })

  test('is reported as missing if the page blocks every way to open it, and the rest is sent', async () => {
    const text = `
      Node.prototype.appendChild = Node.prototype.insertBefore = (child) => child
      Element.prototype.insertAdjacentHTML = () => {}`
    const { tamper, automation, iframe } = await snapshotAfter({ of: 'page', text })
    expect(tamper).toMatchObject({ realm_available: false, foreign_primitives: [] })
    expect(automation).toMatchObject({ webdriver: true, webdriver_iframe: null })
    expect(automation.console_readers).toEqual(
      everyReader.filter((name) => !name.startsWith('frame')),
    )
    expect(iframe.available).toBeNull()
  })

  test('may be removed by the page without an effect on hand-offs', async () => {
    const { page } = await bench.open()
    await page.evaluate(`document.querySelector('iframe').remove()`)
    expect((await handOver(bench, page)).sessionId).toMatch(/^sid_/)
  })

  test('sends with its own fetch, which the page cannot observe', async () => {
    const text = `self.seen = []; const own = fetch; self.fetch = (...all) => (seen.push(all), own(...all))`
    const { page } = await bench.open({ script: inPage(text) })
    await handOver(bench, page)
    expect(await page.evaluate('seen.length')).toBe(0)
  })
})
