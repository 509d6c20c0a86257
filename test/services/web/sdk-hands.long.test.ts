import type { CDPSession, Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import type { Behavior } from '../../../schemas/observations.ts'
import { addBehavior } from '../../../services/scoring/session/observed.ts'
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
    .flatMap((one) => one.behavior ?? [])
    .reduce((known, more) => addBehavior(known, more))
  await cdp.detach()
  return behavior
}

/** Sent together, so that nothing but the browser is between them. */
const together = (cdp: CDPSession, events: (typeof down | typeof up)[]) =>
  Promise.all(events.map((event) => cdp.send('Input.dispatchKeyEvent', event)))
const key = { key: 'a', code: 'KeyA', windowsVirtualKeyCode: 65 }
const down = { ...key, type: 'keyDown', text: 'a' } as const
const up = { ...key, type: 'keyUp' } as const

/** On a busy machine the browser itself takes breaks, so that events did not follow at once. Then they come again. */
async function atOnce(
  followed: (behavior: Behavior) => boolean,
  act: Parameters<typeof behaviorOf>[0],
): Promise<Behavior> {
  let behavior = await behaviorOf(act)
  for (let again = 0; again < 8 && !followed(behavior); again++) behavior = await behaviorOf(act)
  return behavior
}

describe('keys', () => {
  test('that follow at once, on each other and on a press, are counted', async () => {
    const { keyboard } = await atOnce(
      ({ keyboard: k }) => k.hasty > 0 && k.abutting >= 6,
      async (page, cdp) => {
        await page.hover('#name')
        await page.mouse.down()
        const { x, y } = { x: 60, y: 20 }
        const released = { type: 'mouseReleased', x, y, button: 'left', clickCount: 1 } as const
        await Promise.all([
          cdp.send('Input.dispatchMouseEvent', released),
          together(cdp, [down, up]),
        ])
        for (let repeats = 0; repeats < 6; repeats++) await together(cdp, [down, up, down, up])
      },
    )
    expect(keyboard).toMatchObject({ keys: 13, letters: 13, hasty: 1 })
    expect(keyboard.abutting).toBeGreaterThanOrEqual(6)
  })

  test('that rest between each other are not', async () => {
    const { keyboard } = await behaviorOf(async (page) => {
      await page.click('#name')
      await page.waitForTimeout(80)
      for (const letter of 'abc')
        await page.keyboard.press(letter).then(() => page.waitForTimeout(20))
    })
    expect(keyboard).toMatchObject({ keys: 3, letters: 3, hasty: 0, abutting: 0 })
  })

  test('that overlap do not abut', async () => {
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

  test('that is far away at once jumps, and one that comes into the page does not', async () => {
    const { mouse } = await behaviorOf(async (page) => {
      await pressAt(page, 300, 300)
      // On a busy machine an event may be late, and does not count.
      for (let presses = 0; presses < 5; presses++)
        await pressAt(page, presses % 2 ? 300 : 600, 300)
    })
    expect(mouse.presses).toBe(6)
    expect(mouse.jumps).toBeGreaterThanOrEqual(1)
    expect(mouse.jumps).toBeLessThanOrEqual(5)
  })

  test('that was out of sight, or moves as hands do, does not', async () => {
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

  test('without a finger last no time, have no size, and lie beside their place', async () => {
    const { touch } = await atOnce(
      ({ touch: t }) => t.instant > 0,
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

  test('that script fills is told by what has the focus', async () => {
    const { form } = await behaviorOf(async (page) => {
      await page.evaluate(fill('#name'))
      await page.evaluate(`document.querySelector('#text').focus()`)
      await page.evaluate(fill('#text'))
    })
    expect(form).toMatchObject({ silent_changes: 2, unfocused_inputs: 1 })
    expect(form).toMatchObject({ focuses: 1, uncaused_focuses: 1 })
  })

  test('in which somebody presses and types has a cause for each', async () => {
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
