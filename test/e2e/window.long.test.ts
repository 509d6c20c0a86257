import { afterAll, beforeAll, expect } from 'vitest'
import { createProfile, type Profile } from '../support/chromium.ts'
import { eventually } from '../support/eventually.ts'
import { createNumbers, movePointer, pause, pressKey, typeText } from '../support/hand.ts'
import { needs } from '../support/needs.ts'
import { createRest } from '../support/rest.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'
import { type Desktop, openDesktop } from '../support/window.ts'

const { test } = needs('chromium', 'desktop')

let tidegate: RunningTidegate
let desktop: Desktop
let profile: Profile

beforeAll(async () => {
  tidegate = await startTidegate()
  desktop = await openDesktop()
  profile = await createProfile()
})
afterAll(async () => {
  await desktop.close()
  await profile.remove()
  await tidegate.stop()
})

/** On the screen, in the text above the form: the next Tab after a click here leads to the form's first field. */
const aboveForm = { x: 420, y: 340 }

test('Chromium in a window, used by hand, is not taken for a bot', async () => {
  const seed = Date.now()
  console.log(`seed ${seed}`)
  const next = createNumbers(seed)
  const rest = createRest(tidegate.baseUrl, tidegate.credentials.live.secret_key)
  const mark = `visit-${seed}`
  const find = async () => (await rest.searchSessions(mark))[0]

  await desktop.openWindow(`${tidegate.baseUrl}/demo?${mark}`, profile)
  await eventually(async () => expect(await find()).toBeDefined(), {
    timeoutMs: 40_000,
    intervalMs: 200,
  })

  await desktop.input([
    ...movePointer({ x: 700, y: 520 }, aboveForm, next),
    'click',
    '1',
    ...movePointer(aboveForm, { x: 900, y: 640 }, next),
    ...movePointer({ x: 900, y: 640 }, { x: 300, y: 560 }, next),
    ...pressKey('Tab', next),
    ...typeText('ada lovelace', next),
    ...pressKey('Tab', next),
    ...typeText('ada@example.com', next),
    ...pause(400),
    ...pressKey('Return', next),
  ])

  const final = await eventually(
    async () => {
      const session = await find()
      if (!session || session.latest_decision.is_provisional)
        throw new Error('there is no final decision yet')
      return session
    },
    { timeoutMs: 20_000, intervalMs: 200 },
  )
  const detail = await rest.session(final.id)
  const fired = detail.signals_fired.map(({ signal }) => signal)
  expect(final.latest_decision.verdict, `signals: ${fired.join(', ')}`).not.toBe('bot')
  expect(final.latest_decision.phase).toBe('behavioral')
  expect(detail.decision.automation_status).not.toBe('automated')
  expect(fired).not.toContain('webdriver_detected')
  expect(detail.analysis_coverage).toMatchObject({ browser: true, device: true, behavioral: true })
}, 120_000)
