import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest'
import { eventually } from '../../support/eventually.ts'
import { bindingOf } from '../../support/gate-proof.ts'
import { needs } from '../../support/needs.ts'
import { createSdkBench, handOver, lastSnapshot, type SdkBench } from './sdk-page.ts'

const { describe, test } = needs('chromium')

let bench: SdkBench

let page: Page
let problems: string[]

const open: SdkBench['open'] = async (opening) => {
  const opened = await bench.open(opening)
  ;({ page, problems } = opened)
  return opened
}

beforeAll(async () => {
  bench = await createSdkBench()
})
beforeEach(() => open())
afterEach(() => expect(problems).toEqual([]))
afterAll(() => bench.close())

const key = () => bench.server.publishableKey

const eventsOf = (sessionId: string) =>
  bench.server.events().filter(({ data }) => 'session_id' in data && data.session_id === sessionId)

const countOf = (sessionId: string, eventType: string) =>
  eventsOf(sessionId).filter(({ type }) => type === eventType).length

describe('the client', () => {
  test('start returns the same client for the same key and endpoint', async () => {
    const same = await page.evaluate(`
      start({ publishableKey: '${key()}' }) === start({ publishableKey: '${key()}', endpoint: location.origin + '/' })
      && start({ publishableKey: '${key()}' }) !== start({ publishableKey: 'pk_test_other' })`)
    expect(same).toBe(true)
  })

  test('overlapping calls of getSession share one hand-off, and a later call makes another', async () => {
    const before = bench.server.handOffs()
    const [first, second] = await page.evaluate<{ sealedToken: string }[]>(`
      run({ publishableKey: '${key()}' }), Promise.all([client.getSession(), client.getSession()])`)
    expect(first).toEqual(second)
    expect(bench.server.handOffs() - before).toBe(1)
    const later = await handOver(bench, page)
    expect(later.sealedToken).not.toBe(first?.sealedToken)
  })

  test('waitForFingerprint resolves without verdict or visitor', async () => {
    const ready = await page.evaluate(`run({ publishableKey: '${key()}' }).waitForFingerprint()`)
    expect(ready).toEqual({
      ready: true,
      sessionId: expect.stringMatching(/^sid_/),
      timestamp: expect.any(Number),
    })
  })

  test('destroy makes calls reject, and the same key then starts a new client', async () => {
    const outcome = await page.evaluate(`(async () => {
      const first = run({ publishableKey: '${key()}' })
      await first.waitForFingerprint()
      first.destroy()
      const codeOf = (error) => error.code
      const calls = [first.getSession().catch(codeOf), first.waitForFingerprint().catch(codeOf)]
      return { codes: await Promise.all(calls), fresh: start({ publishableKey: '${key()}' }) !== first }
    })()`)
    expect(outcome).toEqual({ codes: ['client.destroyed', 'client.destroyed'], fresh: true })
    const reported = { name: 'ClientError', code: 'client.destroyed' }
    expect(await page.evaluate('errors')).toEqual([reported, reported])
  })
})

describe('failures', () => {
  test('if the server is down, getSession rejects and onError reports it, without an uncaught error', async () => {
    const outcome = await page.evaluate(`
      run({ publishableKey: '${key()}', endpoint: 'http://127.0.0.1:9' })
        .getSession().then(() => 'handed over', (error) => error.code)`)
    expect(outcome).toBe('network')
    const reported = { name: 'CollectError', code: 'network' }
    await eventually(async () => expect(await page.evaluate('errors')).toContainEqual(reported))
  })

  test.each([
    ['no options', 'undefined'],
    ['null', 'null'],
    ['no key', '{}'],
    ['a key that is no string', '{ publishableKey: 7 }'],
    ['an endpoint that is no URL', "{ publishableKey: 'pk_test_x', endpoint: 'http://' }"],
    ['an endpoint that is no string', "{ publishableKey: 'pk_test_x', endpoint: {} }"],
    ['an endpoint that is not http', "{ publishableKey: 'pk_test_x', endpoint: 'javascript:0' }"],
  ])(
    'start with %s does not throw, but every call rejects, and onError reports the reason',
    async (_, options) => {
      const codes = await page.evaluate(`(async () => {
      const client = start(${options})
      const reported = new Promise((resolve) => client.onError(resolve))
      const calls = [reported, client.getSession().catch((e) => e), client.waitForFingerprint().catch((e) => e)]
      const errors = await Promise.all(calls)
      client.destroy()
      return errors.map(({ code }) => code)
    })()`)
      expect(codes).toEqual(Array.from({ length: 3 }, () => 'client.invalid_options'))
    },
  )

  test('an error of waitForFingerprint without a code gets one, and onError reports it', async () => {
    const code = await page.evaluate(`(async () => {
      window.btoa = () => { throw new Error('blocked') }
      return run({ publishableKey: '${key()}' }).waitForFingerprint().catch((error) => error.code)
    })()`)
    expect(code).toBe('client.failed')
    const reported = await page.evaluate<unknown[]>('errors')
    expect(reported.length).toBeGreaterThanOrEqual(2)
    expect(new Set(reported.map((error) => JSON.stringify(error)))).toEqual(
      new Set([JSON.stringify({ name: 'ClientError', code: 'client.failed' })]),
    )
  })

  test('an unknown key makes getSession reject with its error code', async () => {
    const code = await page.evaluate(`
      run({ publishableKey: 'pk_test_wrong' }).getSession().catch((error) => error.code)`)
    expect(code).toBe('auth.invalid_api_key')
  })

  test('if some APIs throw, the rest is still collected', async () => {
    await page.evaluate(`
      Object.defineProperty(HTMLCanvasElement.prototype, 'getContext', { value() { throw new Error('blocked') } })
      Object.defineProperty(window, 'OfflineAudioContext', { value: undefined })
      Object.defineProperty(window, 'localStorage', { get() { throw new Error('blocked') } })
      Object.defineProperty(window, 'indexedDB', { get() { throw new Error('blocked') } })`)
    const { sessionId } = await handOver(bench, page)
    expect(sessionId).toMatch(/^sid_/)
    const snapshot = lastSnapshot(bench.server)
    expect(snapshot.canvas.hash).toBeNull()
    expect(snapshot.audio.hash).toBeNull()
    expect(snapshot.storage).toMatchObject({ local_storage: false, indexed_db: false })
    expect(snapshot.navigator.user_agent).toContain('Chrome')
    expect(snapshot.tamper.patched_functions).toContain('HTMLCanvasElement.getContext')
  })

  test('without Web Crypto, a script computes the same results', async () => {
    await handOver(bench, page)
    const { canvas, audio } = lastSnapshot(bench.server)
    await open({
      script: `Object.defineProperty(Crypto.prototype, 'subtle', { get: () => undefined })`,
    })
    await handOver(bench, page)
    expect(lastSnapshot(bench.server)).toMatchObject({ canvas, audio })
  })

  test('if the CSP forbids workers, worker values are null, not false', async () => {
    await open({ path: '/strict' })
    await handOver(bench, page)
    const { worker, automation, iframe } = lastSnapshot(bench.server)
    expect(worker).toMatchObject({ available: null, user_agent: null })
    expect(automation.webdriver_worker).toBeNull()
    expect(iframe.available).toBe(true)
  })

  test('on a page that requires Trusted Types, there are no violations and no missing data', async () => {
    await open({
      path: '/trusted',
      script: `window.violations = []
        document.addEventListener('securitypolicyviolation', (event) => violations.push(event.sample || event.violatedDirective))`,
    })
    await handOver(bench, page)
    expect(await page.evaluate('violations')).toEqual([])
    const { worker, iframe, tamper } = lastSnapshot(bench.server)
    const available = [worker.available, iframe.available, tamper.iframe_srcdoc_proxy]
    expect(available).toEqual([true, true, false])
  })

  test('a session that the server has ended is replaced once, without an error', async () => {
    const first = await handOver(bench, page)
    let requests = 0
    const json = { error: { code: 'session.invalid_or_expired', message: 'over' } }
    await page.route('**/results', (route) =>
      requests++ === 0 ? route.fulfill({ status: 410, json }) : route.continue(),
    )
    const second = await handOver(bench, page)
    expect(second.sessionId).not.toBe(first.sessionId)
    expect(requests).toBe(2)
  })
})

describe('sessions and visitors', () => {
  test('a reload opens a new document of the same session, and a new tab a new session of the same browser', async () => {
    const first = await handOver(bench, page)
    await page.reload()
    await page.waitForSelector('html[data-ready]')
    const reloaded = await handOver(bench, page)
    expect(reloaded.sessionId).toBe(first.sessionId)
    expect(countOf(first.sessionId, 'DocumentOpened')).toBe(2)

    const next = await bench.openTab()
    const second = await handOver(bench, next.page)
    expect(second.sessionId).not.toBe(first.sessionId)
    expect(continuityOf(second.sessionId)).toEqual(continuityOf(first.sessionId))
    await next.page.close()
  })

  test('the browser is recognized if only one kind of storage is left', async () => {
    const first = await handOver(bench, page)
    for (const forget of ['localStorage.clear()', "indexedDB.deleteDatabase('tidegate')"]) {
      await bench.forgetCookies()
      await page.evaluate(`sessionStorage.clear(), ${forget}, undefined`)
      await page.reload()
      await page.waitForSelector('html[data-ready]')
      const next = await handOver(bench, page)
      expect(next.sessionId).not.toBe(first.sessionId)
      expect(continuityOf(next.sessionId)).toEqual(continuityOf(first.sessionId))
    }
  })
})

function continuityOf(sessionId: string): string | undefined {
  const opened = eventsOf(sessionId).find(({ type }) => type === 'SessionOpened')
  return opened?.type === 'SessionOpened' ? opened.data.continuity_id : undefined
}

describe('behavior', () => {
  const planted = 'Xyzzy-plugh-42'

  test('is sent as timings and counts, never as text', async () => {
    const { sessionId } = await handOver(bench, page)
    const before = bench.server.plaintexts().length
    await page.mouse.move(10, 10)
    await page.mouse.move(200, 40, { steps: 8 })
    await page.click('#name')
    await page.keyboard.type(planted, { delay: 5 })
    await page.keyboard.press('Backspace')
    await page.fill('#text', planted)
    await page.evaluate(`document.querySelector('button').click()`)
    await page.mouse.wheel(0, 400)
    await page.keyboard.press('Tab')
    await handOver(bench, page)
    const sent = bench.server.plaintexts().slice(before)
    expect(bench.server.plaintexts().join('\n')).not.toContain(planted)
    const behaviors = sent.map((text) => JSON.parse(text).behavior).filter(Boolean)
    const total = (family: string, name: string) =>
      behaviors.reduce((sum, behavior) => sum + behavior[family][name], 0)
    expect(total('keyboard', 'keys')).toBeGreaterThanOrEqual(planted.length)
    expect(total('keyboard', 'corrections')).toBe(1)
    expect(total('mouse', 'moves')).toBeGreaterThanOrEqual(8)
    expect(total('mouse', 'clicks')).toBe(2)
    expect(total('mouse', 'untrusted')).toBe(1)
    // A click by script does not count as an activation.
    expect(total('mouse', 'activations')).toBe(1)
    expect(total('form', 'submits')).toBe(1)
    // `page.fill` changes the text without a key press.
    expect(total('form', 'silent_changes')).toBe(1)
    expect(total('scroll', 'wheel')).toBeGreaterThanOrEqual(1)
    expect(eventsOf(sessionId).length).toBeGreaterThan(0)
  })

  test('counts the activation of a button without a pointer, as by a screen reader', async () => {
    await handOver(bench, page)
    const before = bench.server.plaintexts().length
    await page.evaluate(
      `addEventListener('keydown', (event) => event.stopImmediatePropagation(), true)`,
    )
    await page.locator('button').press('Enter')
    await handOver(bench, page)
    const [sent] = bench.server.plaintexts().slice(before)
    const { mouse } = JSON.parse(sent ?? '').behavior
    expect(mouse).toMatchObject({ events: 0, clicks: 0, activations: 1 })
  })

  test('a hand-off has the binding that was passed to getSession', async () => {
    const before = bench.server.handOffs()
    const tokens = await page.evaluate<string[]>(`
      run({ publishableKey: '${key()}' }), Promise.all([
        client.getSession({ binding: 'form 1' }), client.getSession({ binding: 'form 2' }),
        client.getSession({ binding: 'form 1' }), client.getSession({ binding: 5 }), client.getSession(null),
      ]).then((all) => all.map(({ sealedToken }) => sealedToken))`)
    expect(new Set(tokens).size).toBe(3)
    expect(bench.server.handOffs() - before).toBe(3)
    const bindings = bench.server.plaintexts().map((text) => JSON.parse(text).binding)
    expect(bindings.filter(Boolean)).toEqual(['form 1', 'form 2'].map(bindingOf))
  })

  test('is sent in batches at the interval of the server, and only after input', async () => {
    const { sessionId } = await handOver(bench, page)
    const batches = () => countOf(sessionId, 'BatchReceived')
    const before = batches()
    await page.mouse.move(50, 50, { steps: 5 })
    await eventually(async () => expect(batches()).toBe(before + 1))
  })

  test('a page from the back/forward cache continues its document', async () => {
    const { sessionId } = await handOver(bench, page)
    const batches = () => countOf(sessionId, 'BatchReceived')
    await page.evaluate(
      `dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true })), undefined`,
    )
    const before = batches()
    await page.evaluate(
      `dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true })), undefined`,
    )
    await page.mouse.move(80, 60, { steps: 5 })
    await eventually(async () => expect(batches()).toBeGreaterThan(before))
    expect(countOf(sessionId, 'DocumentOpened')).toBe(1)
  })

  test('unsent input is sent when the page is left', async () => {
    const { sessionId } = await handOver(bench, page)
    // Without timers, only leaving the page sends a batch.
    await page.evaluate('setTimeout = () => 0, undefined')
    await page.mouse.move(50, 50, { steps: 5 })
    const before = eventsOf(sessionId).length
    await page.goto('about:blank')
    await eventually(async () => expect(eventsOf(sessionId).length).toBe(before + 1))
  })
})
