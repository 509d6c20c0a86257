import { afterAll, beforeAll, expect } from 'vitest'
import type { Snapshot } from '../../../schemas/observations.ts'
import { needs } from '../../support/needs.ts'
import { evaluateClient, slugs } from '../scoring/support/sessions.ts'
import { answers } from '../scoring/support/snapshots.ts'
import { createSdkBench, handOver, lastSnapshot, type SdkBench } from './sdk-page.ts'

/** A driver reaches every frame; a script of the page alone is the weaker case. */
const scopes: Script['of'][] = ['page', 'every frame']

const { describe, test } = needs('chromium')

let bench: SdkBench

beforeAll(async () => {
  bench = await createSdkBench()
})
afterAll(() => bench.close())

interface Script {
  /** The page alone, as by its own first script, or every frame, as by a driver. */
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

/** Without the marks of the browser under test that have nothing to do with the script. */
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

describe('a script before the SDK', () => {
  test('none: nothing is foreign, nothing differs, and the driver is seen by every reader', async () => {
    const { tamper, automation, environment } = await snapshotAfter()
    const genuine = { realm_available: true, foreign_primitives: [], realm_differences: [] }
    expect(tamper).toMatchObject(genuine)
    const driven = { console_readers: everyReader, cdp_runtime: true, webdriver: true }
    expect(automation).toMatchObject({ ...driven, webdriver_iframe: true })
    expect(environment.secure_context).toBe(true)
  })

  // One function alone is what error trackers and blockers do, too. That of sources counts in frames only.
  const alone = { page: 'wrapped_page_functions', 'every frame': 'wrapped_page_functions' }
  test.each([
    ['rewrites JSON.stringify', rewriteJson, alone],
    [
      'rewrites it and lies about its source',
      `${rewriteJson}; ${hideSource}`,
      { ...alone, 'every frame': 'rewritten_primitives' },
    ],
    [
      'puts a proxy around it',
      `JSON.stringify = new Proxy(JSON.stringify, { apply: (target, self, all) =>
        Reflect.apply(target, self, all)?.replace('"webdriver":true', '"webdriver":false') })`,
      alone,
    ],
  ])('%s: the flag arrives, and so does the name', async (_, text, signals) => {
    for (const of of scopes) {
      const snapshot = await snapshotAfter({ of, text })
      expect(snapshot.automation).toMatchObject({ webdriver: true, webdriver_iframe: true })
      expect(snapshot.tamper.foreign_primitives).toContain('JSON.stringify')
      const evaluation = evaluated(snapshot)
      expect(evaluation.score.verdict).toBe('bot')
      expect(slugs(evaluation)).toEqual(expect.arrayContaining(['webdriver_detected', signals[of]]))
    }
  })

  test('silences the console of the page: the frame sees the reader', async () => {
    const snapshot = await snapshotAfter({ of: 'page', text: 'console.debug = () => {}' })
    const { automation, tamper } = snapshot
    expect(automation).toMatchObject({ cdp_runtime: true, console_readers: everyReader.slice(2) })
    expect(tamper.foreign_primitives).toEqual(['console.debug'])
    expect(slugs(evaluated(snapshot))).toContain('developer_tools_detected')
  })

  test('silences the console of every frame: the worker sees the reader', async () => {
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
    ['takes the flag away', 'delete Navigator.prototype.webdriver'],
    [
      'puts a proxy around the getter',
      `Object.defineProperty(Navigator.prototype, 'webdriver', { configurable: true, get: new Proxy(${getter}, {
        apply(target, self, all) { Reflect.apply(target, self, all); return false } }) })`,
    ],
    [
      'puts a proxy around the getter and lies about every source',
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

  test('wraps what error trackers and frameworks wrap: no risk by that', async () => {
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

  test('answers as another browser: the differences have names, and it is no bot by that', async () => {
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

/** As from a browser that hides its flag and from a driver that never asks for the console. */
function withoutFlag({ automation }: Snapshot): Snapshot['automation'] {
  const hidden = { webdriver: false, webdriver_iframe: false, webdriver_own_property: false }
  return { ...automation, ...hidden, console_readers: [], cdp_runtime: false }
}

describe('the realm', () => {
  test.each([
    ['createElement gives no frames', `document.createElement = () => { throw new Error('no') }`],
    [
      'contentWindow answers the page',
      `Object.defineProperty(HTMLIFrameElement.prototype, 'contentWindow', { get: () => window })`,
    ],
    [
      'appendChild and insertBefore do nothing',
      `Node.prototype.appendChild = Node.prototype.insertBefore = (child) => child`,
    ],
  ])('is opened although %s', async (_, text) => {
    const { tamper, automation } = await snapshotAfter({ of: 'page', text })
    expect(tamper.realm_available).toBe(true)
    expect(automation.webdriver_iframe).toBe(true)
  })

  test('is not there where the page closes every way, which the snapshot says; the rest arrives', async () => {
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

  test('may be removed by the page, and the page goes on', async () => {
    const { page } = await bench.open()
    await page.evaluate(`document.querySelector('iframe').remove()`)
    expect((await handOver(bench, page)).sessionId).toMatch(/^sid_/)
  })

  test('sends by its own fetch, which the page cannot see into', async () => {
    const text = `self.seen = []; const own = fetch; self.fetch = (...all) => (seen.push(all), own(...all))`
    const { page } = await bench.open({ script: inPage(text) })
    await handOver(bench, page)
    expect(await page.evaluate('seen.length')).toBe(0)
  })
})
