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
  /** Answered when a document is opened, and by apps. */
  const notAsked = ['collection', 'proofs', 'native']
  /** Members for which a headless Chromium on a bare machine has no value. */
  const empty = [
    'audio.default_voice_lang',
    'automation.webdriver_worker',
    // Only SDKs before 0.2 give these back.
    'proofs.challenge',
    'proofs.timing_nonce',
    /^webgpu\.(?!available)/,
    /^native$/,
  ]

  const missing = () =>
    nulls(lastSnapshot(bench.server)).filter(
      (path) =>
        !empty.some((known) => (typeof known === 'string' ? known === path : known.test(path))),
    )

  // A family that is late on an overloaded machine is null by design.
  test('has a value wherever Chromium has one', async () => {
    await eventually(
      async () => {
        await handOver(bench, page)
        expect(missing()).toEqual([])
      },
      { timeoutMs: 40_000 },
    )
  }, 60_000)

  test('is the same the next time, apart from the proofs', async () => {
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

  test("answers the deployment's own questions with the hand-off, and without a request of its own", async () => {
    const before = observationsOf(bench.server).length
    await handOver(bench, page)
    const sent = observationsOf(bench.server).slice(before)
    const asked = sent.flatMap(({ engine_answers: answers = [] }) => answers)
    expect(sent.map((one) => [one.snapshot !== undefined, one.engine_answers?.length])).toEqual([
      [true, undefined],
      [false, 12],
    ])
    expect(asked.filter(({ id }) => bankNumberOf(id) === undefined)).toEqual([])
    expect(asked.filter(({ answer }) => answer === 'object null' || answer === '')).toEqual([])
  })

  test.each([
    ['1 ms, as in every Firefox', 'Math.floor(now())', false],
    [
      '16.67 ms, as with resistance to fingerprinting',
      'Math.floor(now() / (50 / 3)) * (50 / 3)',
      true,
    ],
    ['nothing, as where it stands still', '1000', null],
  ])('of a clock in steps of %s', async (_, reading, expected) => {
    await page.evaluate(`(() => {
      const now = performance.now.bind(performance)
      // A browser that rounds reads its clock more slowly; too quick a machine would see no step in so many reads.
      performance.now = () => (now(), now(), now(), ${reading})
    })()`)
    await handOver(bench, page)
    expect(lastSnapshot(bench.server).tamper.timer_precision_reduced).toBe(expected)
  })

  test('has of globals only those with the exact marks of a driver', async () => {
    await page.evaluate(`Object.assign(window, {
      app_state_JSON: 1, gtm_data_Object: 1, cdc_banner: 1, cdc_adoQpoasnfa76pfcZLmcfl_Array: 1 }), undefined`)
    await handOver(bench, page)
    expect(lastSnapshot(bench.server).automation.globals).toEqual([
      'cdc_adoQpoasnfa76pfcZLmcfl_Array',
    ])
  })

  test('begins in an idle moment, and has a task for each family where each step takes long', async () => {
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
      (name) => !notAsked.includes(name),
    )
    expect(await page.evaluate('tasks')).toBeGreaterThanOrEqual(families.length)
  })

  test('calls blocked what failed, and not late', async () => {
    await page.evaluate(`HTMLCanvasElement.prototype.getContext = () => null`)
    await handOver(bench, page)
    const { webgl, collection } = lastSnapshot(bench.server)
    expect(webgl.renderer).toBeNull()
    expect(collection.withheld).toContainEqual({ group: 'webgl', reason: 'blocked' })
    expect(collection.withheld.filter(({ reason }) => reason === 'late')).toEqual([])
  })

  test('goes again with the next body once all is there, where a part was late', async () => {
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
    const whole = lastSnapshot(bench.server)
    expect(whole.audio.hash).not.toBeNull()
    expect(whole.collection.withheld.map(({ group }) => group)).not.toContain('audio')
    expect(whole.proofs.answer_mac).toBe(late.proofs.answer_mac)
    const snapshots = observationsOf(bench.server).filter(
      ({ snapshot }) => snapshot?.proofs.answer_mac === late.proofs.answer_mac,
    )
    expect(snapshots).toHaveLength(2)
  })

  test('comes with an address of at most 2048 characters, however long that of the page is', async () => {
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
