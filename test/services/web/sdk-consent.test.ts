import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import { completenessOf } from '../../../services/scoring/session/completeness.ts'
import { eventually } from '../../support/eventually.ts'
import { needs } from '../../support/needs.ts'
import { createSdkBench, observationsOf, type SdkBench } from './sdk-page.ts'

const { test } = needs('chromium')

let bench: SdkBench

beforeAll(async () => {
  bench = await createSdkBench()
})
afterAll(() => bench.close())

const key = () => bench.server.publishableKey

/** Records every call that observes, stores or sends, in the page and its frames. */
const spy = `
  const calls = (top.calls ??= [])
  const note = (name) => calls.push(name)
  const watch = (holder, name, label = name) => {
    const found = holder && Object.getOwnPropertyDescriptor(holder, name)
    if (!found) return
    // Engine questions call some functions on wrong objects to get the error message. Ignore those calls.
    const isMeant = (on) => !holder.constructor || holder === window || on instanceof holder.constructor
    const watched = (code) => function (...args) {
      if (new.target || isMeant(this)) note(label)
      return new.target ? Reflect.construct(code, args) : code.apply(this, args)
    }
    if (typeof found.value === 'function') Object.defineProperty(holder, name, { ...found, value: watched(found.value) })
    else if (found.get) Object.defineProperty(holder, name, { ...found, get: watched(found.get) })
  }
  for (const name of ['fetch', 'Worker', 'AudioContext', 'OfflineAudioContext', 'XMLHttpRequest', 'WebSocket', 'localStorage', 'sessionStorage', 'indexedDB'])
    watch(window, name)
  watch(HTMLCanvasElement.prototype, 'getContext', 'canvas')
  watch(HTMLCanvasElement.prototype, 'toDataURL', 'canvas')
  watch(OffscreenCanvas.prototype, 'getContext', 'canvas')
  watch(CanvasRenderingContext2D.prototype, 'measureText', 'fonts')
  watch(Document.prototype, 'cookie')
  watch(Navigator.prototype, 'sendBeacon')
  for (const name of ['userAgent', 'hardwareConcurrency', 'plugins', 'languages', 'mediaDevices']) watch(Navigator.prototype, name, 'navigator')
  watch(window.MediaDevices?.prototype, 'enumerateDevices', 'devices')
  watch(window.SpeechSynthesis?.prototype, 'getVoices', 'voices')
  for (const name of ['width', 'colorDepth']) watch(Screen.prototype, name, 'screen')
  watch(EventTarget.prototype, 'addEventListener', 'listener')
`

const surface = ['canvas', 'AudioContext', 'OfflineAudioContext', 'fonts', 'devices', 'voices']

/** Opens a page that records its calls once the SDK is loaded. */
async function openSpied(): Promise<{ page: Page; sent: string[] }> {
  const sent: string[] = []
  const { page } = await bench.open({ script: spy })
  page.on('request', (request) => sent.push(request.url()))
  await page.evaluate('calls.length = 0')
  return { page, sent }
}

const callsOf = (page: Page) => page.evaluate<string[]>('[...new Set(calls)].sort()')

// Moves the pointer, types, hides and leaves the page, and waits longer than a snapshot takes.
async function useFor(page: Page): Promise<void> {
  await page.mouse.move(10, 10)
  await page.mouse.move(60, 80)
  await page.locator('#name').pressSequentially('Ada')
  await page.evaluate(`
    document.dispatchEvent(new Event('visibilitychange')), window.dispatchEvent(new Event('pagehide')),
    new Promise((resolve) => { let left = 40; const step = () => (left-- ? requestAnimationFrame(step) : resolve()); step() })`)
}

const storedIn = (page: Page) =>
  page.evaluate(`(async () => ({
    local: Object.keys(localStorage), session: Object.keys(sessionStorage),
    databases: (await indexedDB.databases()).map(({ name }) => name), cookie: document.cookie }))()`)

const nothingStored = { local: [], session: [], databases: [], cookie: '' }

test('before consent, nothing is sent, stored or called', async () => {
  const { page, sent } = await openSpied()
  const before = bench.server.events().length
  await page.evaluate(`void run({ publishableKey: '${key()}', consent: 'pending' })`)
  await useFor(page)
  const codes = await page.evaluate(`Promise.all([client.getSession(), client.waitForFingerprint()]
    .map((call) => call.catch((error) => error.code)))`)
  expect(codes).toEqual(['client.no_consent', 'client.no_consent'])
  expect(await page.evaluate('errors.map(({ code }) => code)')).toEqual(codes)
  expect(await callsOf(page)).toEqual([])
  expect(sent).toEqual([])
  expect(bench.server.events()).toHaveLength(before)
  expect(await storedIn(page)).toEqual(nothingStored)
})

test('after refused consent nothing is sent, and later consent starts with later input', async () => {
  const { page, sent } = await openSpied()
  await page.evaluate(`void run({ publishableKey: '${key()}', consent: 'pending' })`)
  await page.evaluate(`client.consent(false), client.consent('true'), client.consent()`)
  await useFor(page)
  // Refused consent deletes what an earlier page stored, without creating a database.
  expect(await callsOf(page)).toEqual(['indexedDB', 'localStorage', 'sessionStorage'])
  expect(await storedIn(page)).toEqual(nothingStored)
  expect(sent).toEqual([])
  const { sessionId } = await page.evaluate<{ sessionId: string }>(
    'client.consent(true), client.getSession()',
  )
  expect(sessionId).toMatch(/^sid_/)
  expect(await callsOf(page)).toEqual(
    expect.arrayContaining(['canvas', 'fetch', 'navigator', 'listener']),
  )
  // Text that was typed before consent is not counted.
  expect(observationsOf(bench.server).at(-1)?.behavior?.keyboard.events ?? 0).toBe(0)
})

test('withdrawn consent stops the SDK and deletes stored data, and can be given again', async () => {
  const { page, problems } = await bench.open()
  await page.evaluate(`run({ publishableKey: '${key()}' }).getSession()`)
  expect(await storedIn(page)).toMatchObject({ databases: ['tidegate'] })
  const code = await page.evaluate(
    `client.consent(false), client.getSession().catch((error) => error.code)`,
  )
  expect(code).toBe('client.no_consent')
  await eventually(async () => expect(await storedIn(page)).toEqual(nothingStored))
  const after = bench.server.events().length
  await useFor(page)
  expect(bench.server.events()).toHaveLength(after)
  const again = await page.evaluate<{ sessionId: string }>(
    `client.consent(true), client.getSession()`,
  )
  expect(again.sessionId).toMatch(/^sid_/)
  expect(problems).toEqual([])
})

test('if consent is withdrawn during the first snapshot, it is neither sent nor stored', async () => {
  const { page } = await bench.open()
  const before = bench.server.plaintexts().length
  const answered = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  await page.route('**/v2/collect/sessions', async (route) => {
    const response = await route.fetch()
    asked.resolve()
    await answered.promise
    await route.fulfill({ response })
  })
  await page.evaluate(
    `window.call = run({ publishableKey: '${key()}' }).getSession().catch(({ code }) => code), 0`,
  )
  await asked.promise
  await page.evaluate('client.consent(false)')
  answered.resolve()
  expect(await page.evaluate('call')).toBe('client.no_consent')
  await useFor(page)
  expect(bench.server.plaintexts()).toHaveLength(before)
  expect(await storedIn(page)).toEqual(nothingStored)
})

test.each([["consent: 'peding'"], ['consent: true'], ['consent: null'], ["mode: 'tiny'"]])(
  'start with %s fails, and starts nothing',
  async (option) => {
    const { page, sent } = await openSpied()
    const code = await page.evaluate(
      `run({ publishableKey: '${key()}', ${option} }).getSession().catch((error) => error.code)`,
    )
    expect(code).toBe('client.invalid_options')
    expect(await callsOf(page)).toEqual([])
    expect(sent).toEqual([])
  },
)

test('the minimal mode uses no canvas, graphics, audio, fonts or devices, and reports its mode', async () => {
  const { page } = await openSpied()
  await page.evaluate(`run({ publishableKey: '${key()}', mode: 'minimal' }).getSession()`)
  const calls = await callsOf(page)
  expect(calls.filter((call) => surface.includes(call))).toEqual([])
  expect(calls).toEqual(expect.arrayContaining(['fetch', 'navigator', 'Worker']))
  const snapshot = observationsOf(bench.server).findLast((sent) => sent.snapshot)?.snapshot
  expect(snapshot?.collection.mode).toBe('minimal')
  const sent = { platform: 'web', isMinimal: true, engine: 'blink' } as const
  const complete = completenessOf({ ...sent, snapshot: snapshot ?? null })
  expect(complete).toEqual({ missing: [], withheld: [] })
  for (const family of ['canvas', 'webgl', 'webgpu', 'fonts', 'media', 'audio'] as const)
    for (const value of Object.values(snapshot?.[family] ?? { none: 1 }))
      expect([null, [], {}]).toContainEqual(value)
  expect(snapshot?.worker).toMatchObject({ available: true, webgl_renderer: null })
  expect(snapshot?.iframe).toMatchObject({ available: true, webgl_renderer: null })
  expect(snapshot?.proofs).toMatchObject({
    canvas_challenge_hash: null,
    answer_mac: expect.any(String),
  })
})
