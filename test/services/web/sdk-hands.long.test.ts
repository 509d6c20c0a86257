import type { CDPSession, Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import type { Behavior } from '../../../schemas/observations.ts'
import { addBehavior } from '../../../services/scoring/session/observations.ts'
import { needs } from '../../support/needs.ts'
import { createSdkBench, handOver, observationsOf, type SdkBench } from './sdk-page.ts'

const { describe, test } = needs('chromium')

let bench: SdkBench

beforeAll(async () => {
  bench = await createSdkBench()
})
afterAll(() => bench.close())

/** Returns the behavior that the SDK sends after `act`. */
async function behaviorOf(act: (page: Page, cdp: CDPSession) => Promise<unknown>) {
  const { page } = await bench.open()
  const cdp = await page.context().newCDPSession(page)
  await handOver(bench, page)
  const before = observationsOf(bench.server).length
  await act(page, cdp)
  await handOver(bench, page)
  const sent = observationsOf(bench.server).slice(before)
  const behavior = sent
    .flatMap((observed) => observed.behavior ?? [])
    .reduce((total, next) => addBehavior(total, next))
  await cdp.detach()
  return behavior
}

/** Sends key events at the same time, so that only the browser adds a delay. */
const sendTogether = (cdp: CDPSession, events: (typeof down | typeof up)[]) =>
  Promise.all(events.map((event) => cdp.send('Input.dispatchKeyEvent', event)))
const key = { key: 'a', code: 'KeyA', windowsVirtualKeyCode: 65 }
const down = { ...key, type: 'keyDown', text: 'a' } as const
const up = { ...key, type: 'keyUp' } as const

/** Repeats `act` until `isDone`, because on a busy machine the browser may pause between events. */
async function repeatUntil(
  isDone: (behavior: Behavior) => boolean,
  act: Parameters<typeof behaviorOf>[0],
): Promise<Behavior> {
  let behavior = await behaviorOf(act)
  for (let repeats = 0; repeats < 8 && !isDone(behavior); repeats++)
    behavior = await behaviorOf(act)
  return behavior
}

describe('keys', () => {
  test('that follow each other, or a click, without a pause are counted', async () => {
    const { keyboard } = await repeatUntil(
      ({ keyboard }) => keyboard.hasty > 0 && keyboard.abutting >= 6,
      async (page, cdp) => {
        await page.hover('#name')
        await page.mouse.down()
        const { x, y } = { x: 60, y: 20 }
        const released = { type: 'mouseReleased', x, y, button: 'left', clickCount: 1 } as const
        await Promise.all([
          cdp.send('Input.dispatchMouseEvent', released),
          sendTogether(cdp, [down, up]),
        ])
        for (let repeats = 0; repeats < 6; repeats++) await sendTogether(cdp, [down, up, down, up])
      },
    )
    expect(keyboard).toMatchObject({ keys: 13, letters: 13, hasty: 1 })
    expect(keyboard.abutting).toBeGreaterThanOrEqual(6)
  })

  test('with pauses between them are not counted', async () => {
    const { keyboard } = await behaviorOf(async (page) => {
      await page.click('#name')
      await page.waitForTimeout(80)
      for (const letter of 'abc')
        await page.keyboard.press(letter).then(() => page.waitForTimeout(20))
    })
    expect(keyboard).toMatchObject({ keys: 3, letters: 3, hasty: 0, abutting: 0 })
  })

  test('that overlap do not count as abutting', async () => {
    const { keyboard } = await behaviorOf(async (page) => {
      await page.focus('#name')
      await page.keyboard.down('a')
      await page.keyboard.down('b')
      await page.keyboard.up('a')
      await page.keyboard.up('b')
    })
    expect(keyboard).toMatchObject({ rollovers: 1, abutting: 0 })
  })
})

describe('a pointer', () => {
  const pressAt = async (page: Page, x: number, y: number) => {
    await page.mouse.move(x, y)
    await page.mouse.down()
    await page.mouse.up()
  }

  test('that moves far in one event counts as a jump, but not when it enters the page', async () => {
    const { mouse } = await behaviorOf(async (page) => {
      await pressAt(page, 300, 300)
      // Several, because on a busy machine late events do not count.
      for (let presses = 0; presses < 5; presses++)
        await pressAt(page, presses % 2 ? 300 : 600, 300)
    })
    expect(mouse.presses).toBe(6)
    expect(mouse.jumps).toBeGreaterThanOrEqual(1)
    expect(mouse.jumps).toBeLessThanOrEqual(5)
  })

  test('that left the window, or moves step by step, does not jump', async () => {
    const { mouse } = await behaviorOf(async (page) => {
      await page.mouse.move(300, 300)
      await page.evaluate(`dispatchEvent(new Event('blur')), undefined`)
      await pressAt(page, 600, 300)
      await page.mouse.move(300, 300, { steps: 12 })
      await pressAt(page, 299, 300)
      await pressAt(page, 420, 300)
    })
    expect(mouse).toMatchObject({ presses: 3, jumps: 0 })
  })
})

describe('touches', () => {
  const screen = { screenWidth: 412, screenHeight: 915 }
  const phone = { width: 412, height: 839, deviceScaleFactor: 2.625, mobile: true, ...screen }

  test('that are injected are instant, have default contact, and are displaced', async () => {
    const { touch } = await repeatUntil(
      ({ touch }) => touch.instant > 0,
      async (_, cdp) => {
        await cdp.send('Emulation.setDeviceMetricsOverride', phone)
        await cdp.send('Emulation.setTouchEmulationEnabled', { enabled: true })
        const at = { x: 200, y: 400 }
        const send = (type: 'touchStart' | 'touchEnd', touchPoints: object[]) =>
          cdp.send('Input.dispatchTouchEvent', { type, touchPoints: touchPoints as [] })
        await Promise.all([send('touchStart', [at]), send('touchEnd', [])])
        await send('touchStart', [{ ...at, radiusX: 14, radiusY: 12, force: 0.4 }])
        await new Promise((resolve) => setTimeout(resolve, 60))
        await send('touchEnd', [])
        await cdp.send('Emulation.clearDeviceMetricsOverride')
      },
    )
    expect(touch).toMatchObject({ touches: 2, plain: 1, instant: 1, displaced: 2 })
  })
})

describe('a form', () => {
  const fill = (id: string) => `(() => {
    document.querySelector('${id}').value = 'of a script'
    document.querySelector('${id}').dispatchEvent(new InputEvent('input', { bubbles: true }))
  })()`

  test('filled by script has silent changes and uncaused focuses', async () => {
    const { form } = await behaviorOf(async (page) => {
      await page.evaluate(fill('#name'))
      await page.evaluate(`document.querySelector('#text').focus()`)
      await page.evaluate(fill('#text'))
    })
    expect(form).toMatchObject({ silent_changes: 2, unfocused_inputs: 1 })
    expect(form).toMatchObject({ focuses: 1, uncaused_focuses: 1 })
  })

  test('filled by mouse and keyboard has a cause for each change', async () => {
    const { form } = await behaviorOf(async (page) => {
      await page.click('#name')
      await page.keyboard.type('ada')
      await page.keyboard.press('Tab')
      await page.keyboard.type('please call')
    })
    expect(form).toMatchObject({ silent_changes: 0, unfocused_inputs: 0 })
    expect(form).toMatchObject({ focuses: 2, uncaused_focuses: 0 })
  })
})
