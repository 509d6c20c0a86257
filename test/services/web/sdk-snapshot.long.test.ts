import type { Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, expect } from 'vitest'
import { bankNumberOf } from '../../../infra/challenges/bank.ts'
import { snapshotSchema } from '../../../schemas/observations.ts'
import { eventually } from '../../support/eventually.ts'
import { needs } from '../../support/needs.ts'
import {
  createSdkBench,
  handOver,
  lastSnapshot,
  observationsOf,
  type SdkBench,
} from './sdk-page.ts'

const { describe, test } = needs('chromium')

let bench: SdkBench

let page: Page

beforeAll(async () => {
  bench = await createSdkBench()
})
beforeEach(async () => {
  ;({ page } = await bench.open())
})
afterAll(() => bench.close())

describe('the snapshot', () => {
  /** Families that are not collected by tasks of their own. */
  const withoutTask = ['collection', 'proofs', 'native']
  /** Members that are null in a headless Chromium on a minimal machine. */
  const empty = [
    'audio.default_voice_lang',
    'automation.webdriver_worker',
    // Only SDKs before 0.2 send these.
    'proofs.challenge',
    'proofs.timing_nonce',
    /^webgpu\.(?!available)/,
    /^native$/,
  ]

  const missing = () =>
    nulls(lastSnapshot(bench.server)).filter(
      (path) => !empty.some((item) => (typeof item === 'string' ? item === path : item.test(path))),
    )

  // Retries, because on an overloaded machine a late part is null by design.
  test('has every value that Chromium has', async () => {
    await eventually(
      async () => {
        await handOver(bench, page)
        expect(missing()).toEqual([])
      },
      { timeoutMs: 40_000 },
    )
  }, 60_000)

  test('is the same after a reload, except for the proofs', async () => {
    await handOver(bench, page)
    const { proofs: firstProofs, ...first } = lastSnapshot(bench.server)
    await page.reload()
    await page.waitForSelector('html[data-ready]')
    await handOver(bench, page)
    const { proofs, ...second } = lastSnapshot(bench.server)
    for (const family of ['canvas', 'webgl', 'audio', 'fonts', 'engine', 'tamper'] as const)
      expect(second[family]).toEqual(first[family])
    expect(proofs.answer_mac).not.toBe(firstProofs.answer_mac)
    expect(proofs.engine_answers).toHaveLength(12)
  })

  test("answers the deployment's own questions in the hand-off, without an extra request", async () => {
    const before = observationsOf(bench.server).length
    await handOver(bench, page)
    const sent = observationsOf(bench.server).slice(before)
    const asked = sent.flatMap(({ engine_answers: answers = [] }) => answers)
    expect(sent.map((body) => [body.snapshot !== undefined, body.engine_answers?.length])).toEqual([
      [true, undefined],
      [false, 12],
    ])
    expect(asked.filter(({ id }) => bankNumberOf(id) === undefined)).toEqual([])
    expect(asked.filter(({ answer }) => answer === 'object null' || answer === '')).toEqual([])
  })

  test.each([
    ['1 ms, as in Firefox', 'Math.floor(now())', false],
    [
      '16.67 ms, as with fingerprinting protection',
      'Math.floor(now() / (50 / 3)) * (50 / 3)',
      true,
    ],
    ['0 ms, as if it stands still', '1000', null],
  ])('detects reduced timer precision with steps of %s', async (_, reading, expected) => {
    await page.evaluate(`(() => {
      const now = performance.now.bind(performance)
      // Reads the clock several times, because on a fast machine the SDK would otherwise see no step.
      performance.now = () => (now(), now(), now(), ${reading})
    })()`)
    await handOver(bench, page)
    expect(lastSnapshot(bench.server).tamper.timer_precision_reduced).toBe(expected)
  })

  test('reports only globals with the exact name of a driver global', async () => {
    await page.evaluate(`Object.assign(window, {
      app_state_JSON: 1, gtm_data_Object: 1, cdc_banner: 1, cdc_adoQpoasnfa76pfcZLmcfl_Array: 1 }), undefined`)
    await handOver(bench, page)
    expect(lastSnapshot(bench.server).automation.globals).toEqual([
      'cdc_adoQpoasnfa76pfcZLmcfl_Array',
    ])
  })

  test('starts when the page is idle, and runs each family in its own task on a slow machine', async () => {
    await page.evaluate(`(() => {
      let [elapsed, lastTask] = [0, -1]
      window.tasks = 0
      const { port1, port2 } = new MessageChannel()
      let task = 0
      port1.onmessage = () => (task++, port2.postMessage(null))
      port2.postMessage(null)
      const now = performance.now.bind(performance)
      performance.now = () => {
        if (task !== lastTask) window.tasks++
        lastTask = task
        return now() + (elapsed += 20)
      }
      window.requestIdleCallback = (begin, options) => {
        window.idle = options
        return setTimeout(begin)
      }
    })()`)
    await handOver(bench, page)
    expect(await page.evaluate('idle')).toEqual({ timeout: 100 })
    const families = Object.keys(snapshotSchema.parse({})).filter(
      (name) => !withoutTask.includes(name),
    )
    expect(await page.evaluate('tasks')).toBeGreaterThanOrEqual(families.length)
  })

  test('reports a failed part as blocked, not as late', async () => {
    await page.evaluate(`HTMLCanvasElement.prototype.getContext = () => null`)
    await handOver(bench, page)
    const { webgl, collection } = lastSnapshot(bench.server)
    expect(webgl.renderer).toBeNull()
    expect(collection.withheld).toContainEqual({ group: 'webgl', reason: 'blocked' })
    expect(collection.withheld.filter(({ reason }) => reason === 'late')).toEqual([])
  })

  test('is sent again with the next body if a part was late', async () => {
    await page.evaluate(`(() => {
      const { prototype } = OfflineAudioContext
      const render = prototype.startRendering
      const released = new Promise((resolve) => (window.release = resolve))
      prototype.startRendering = function () { return released.then(() => render.call(this)) }
      run({ publishableKey: '${bench.server.publishableKey}', waitMs: 1000 })
    })()`)
    await page.evaluate('client.waitForFingerprint()')
    const late = lastSnapshot(bench.server)
    expect(late.audio.hash).toBeNull()
    expect(late.collection.withheld).toContainEqual({ group: 'audio', reason: 'late' })
    await page.evaluate('release()')
    await page.evaluate('client.getSession()')
    const complete = lastSnapshot(bench.server)
    expect(complete.audio.hash).not.toBeNull()
    expect(complete.collection.withheld.map(({ group }) => group)).not.toContain('audio')
    expect(complete.proofs.answer_mac).toBe(late.proofs.answer_mac)
    const snapshots = observationsOf(bench.server).filter(
      ({ snapshot }) => snapshot?.proofs.answer_mac === late.proofs.answer_mac,
    )
    expect(snapshots).toHaveLength(2)
  })

  test('comes with the page URL, shortened to 2048 characters', async () => {
    await page.evaluate(`history.replaceState(null, '', '/page?' + 'q'.repeat(20_000)), undefined`)
    const opening = page.waitForRequest('**/v2/collect/sessions')
    await handOver(bench, page)
    expect((await opening).postDataJSON().page).toEqual({
      url: `${bench.server.url}/page`,
      referrer: null,
    })
  })
})

function nulls(value: unknown, path = ''): string[] {
  if (value === null) return [path]
  if (typeof value !== 'object') return []
  return Object.entries(value).flatMap(([name, item]) =>
    nulls(item, path ? `${path}.${name}` : name),
  )
}
