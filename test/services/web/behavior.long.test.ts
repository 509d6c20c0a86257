import { randomBytes } from 'node:crypto'
import type { CDPSession, Page } from 'playwright-core'
import { afterAll, beforeAll, expect } from 'vitest'
import type { RecordedEvent } from '../../../infra/event-store/event.ts'
import { noNetwork } from '../../../infra/ip/network.ts'
import { evolve, type SessionState } from '../../../services/scoring/session/state.ts'
import { behaviorSignals } from '../../../services/scoring/signals/behavior.ts'
import { evaluate } from '../../../services/scoring/signals/evaluate.ts'
import { webRoutes } from '../../../services/web/routes.ts'
import { createProfile, openHeadless, type Profile } from '../../support/chromium.ts'
import { eventually } from '../../support/eventually.ts'
import { createNumbers, movePointer, pause, pressKey, typeText } from '../../support/hand.ts'
import { needs } from '../../support/needs.ts'
import { type Desktop, openDesktop } from '../../support/window.ts'
import { type CollectServer, createCollectServer } from './collect-server.ts'

const { describe, test } = needs('chromium', 'desktop')

const seed = Date.now()
console.log(`seed ${seed}`)

const page = (key: string) => `<!doctype html><title>A shop</title>
<form><input id="name" autofocus><br><input id="email"><button>Send</button></form><p style="height: 5000px">Long</p>
<script type="module">
  import { start } from '/t.js'
  start({ publishableKey: '${key}' })
  document.querySelector('form').addEventListener('submit', (event) => event.preventDefault())
  document.documentElement.dataset.ready = 'yes'
</script>`

/** Signals that no person causes, and trust signals that only a person earns. */
const traces: string[] = behaviorSignals.map(({ slug }) => slug)
const trust = ['natural_pointer_movement', 'natural_typing']

let server: CollectServer
let profile: Profile
beforeAll(async () => {
  // The interval of real servers. On a busy machine, a tenth of it has too few events for a deviation.
  server = await createCollectServer({ batchIntervalMs: 2000 })
  await webRoutes(server.app, { random: randomBytes })
  server.app.get('/shop', { schema: { hide: true } }, async (_request, reply) =>
    reply.type('text/html').send(page(server.publishableKey)),
  )
  await server.listen()
  profile = await createProfile()
})
afterAll(async () => {
  await profile.remove()
  await server.close()
})

/** Returns the scoring state of the newest session, once it has at least `keys` key presses. */
async function lastState(keys: number): Promise<SessionState> {
  return eventually(
    () => {
      const state = newestState()
      expect(state?.behavior?.keyboard.keys).toBeGreaterThanOrEqual(keys)
      if (!state) throw new Error('no session')
      return state
    },
    { timeoutMs: 20_000, intervalMs: 200 },
  )
}

function newestState(): SessionState | undefined {
  const states = new Map<string, SessionState>()
  for (const event of server.events()) {
    if (!isSessionEvent(event)) continue
    states.set(event.data.session_id, evolve(states.get(event.data.session_id), event))
  }
  return [...states.values()].at(-1)
}

type SessionEvent = Extract<
  RecordedEvent,
  { type: 'SessionOpened' | 'DocumentOpened' | 'BatchReceived' }
>

function isSessionEvent(event: RecordedEvent): event is SessionEvent {
  return ['SessionOpened', 'DocumentOpened', 'BatchReceived'].includes(event.type)
}

function firedOf(state: SessionState, among: string[]): string[] {
  const { fired } = evaluate({ state, network: noNetwork.lookup(state.ip_address, 0) })
  return fired.map(({ slug }) => slug).filter((slug) => among.includes(slug))
}

describe('real mouse and keyboard input', () => {
  let desktop: Desktop
  let owner: Profile
  beforeAll(async () => {
    desktop = await openDesktop()
    owner = await createProfile()
  })
  afterAll(async () => {
    await desktop.close()
    await owner.remove()
  })

  test('fires no automation signal and earns trust', async () => {
    const next = createNumbers(seed)
    await desktop.openWindow(`${server.url}/shop`, owner)
    const opened = { timeoutMs: 40_000, intervalMs: 200 }
    await eventually(() => expect(newestState()?.snapshot).toBeTruthy(), opened)
    await desktop.input([
      ...movePointer({ x: 700, y: 520 }, { x: 900, y: 640 }, next),
      ...movePointer({ x: 900, y: 640 }, { x: 300, y: 560 }, next),
      'mousedown',
      '1',
      ...pause(60 + next() * 40),
      'mouseup',
      '1',
      ...Array.from({ length: 5 }, () => ['click', '5', ...pause(0.05 + next() * 80)]).flat(),
      ...Array.from({ length: 8 }, () => ['click', '4', ...pause(0.05 + next() * 80)]).flat(),
      ...movePointer({ x: 300, y: 560 }, { x: 640, y: 480 }, next),
      ...pressKey('Tab', next),
      ...typeText('ada lovelace', next),
      ...pressKey('Tab', next),
      ...typeText('ada@example.com', next),
    ])
    const state = await lastState(20)
    expect(firedOf(state, traces), JSON.stringify(state.behavior)).toEqual([])
    expect(firedOf(state, trust), JSON.stringify(state.behavior)).toEqual(trust)
  }, 120_000)
})

describe('input by software', () => {
  async function use(act: (page: Page, cdp: CDPSession) => Promise<void>, keys: number) {
    const context = await openHeadless(profile)
    try {
      const tab = await context.newPage()
      await tab.goto(`${server.url}/shop`)
      await tab.waitForSelector('html[data-ready]')
      await act(tab, await context.newCDPSession(tab))
      return await lastState(keys)
    } finally {
      await context.close()
    }
  }

  test('through the debugging protocol fires a signal for each kind of event', async () => {
    const state = await use(async (tab, cdp) => {
      const mouse = { x: 30, y: 30, button: 'left', clickCount: 1 } as const
      for (const type of ['mouseMoved', 'mousePressed', 'mouseReleased'] as const)
        await cdp.send('Input.dispatchMouseEvent', { ...mouse, type })
      for (const text of 'some text')
        await cdp.send('Input.dispatchKeyEvent', { type: 'char', text })
      for (const deltaY of [40, 90, 170, 60, 210]) await tab.mouse.wheel(0, deltaY)
      await tab.click('button')
      await tab.fill('#name', 'Grace Hopper')
      await tab.fill('#email', 'grace@example.com')
      const down = { type: 'keyDown', key: 'q', code: 'KeyQ', text: 'q' } as const
      await cdp.send('Input.dispatchKeyEvent', down)
      // Many keys, because a timestamp may be whole by chance.
      await tab.keyboard.type('Abcdefghijkl')
    }, 13)
    const expected = [
      'pressed_without_pressure',
      'unsynchronized_input_clock',
      'uneven_wheel_notches',
      'capitals_without_shift',
      'malformed_key_events',
      'text_inserted_at_once',
    ]
    const fired = firedOf(state, traces)
    expect(fired, JSON.stringify(state.behavior)).toEqual(expect.arrayContaining(expected))
    expect(state.behavior?.keyboard.unkeyed).toBe('some text'.length)
    expect(firedOf(state, trust)).toEqual([])
  }, 60_000)

  test('that imitates a person earns no trust', async () => {
    const next = createNumbers(seed)
    const state = await use(async (tab) => {
      for (let i = 0; i < 60; i++) {
        await tab.mouse.move(100 + i * 6 + next() * 5, 200 + Math.sin(i / 8) * 90 + next() * 5)
        await tab.waitForTimeout(4 + next() * 12)
      }
      await tab.click('#name')
      for (const key of 'ada lovelace') {
        await tab.keyboard.press(key, { delay: 40 + next() * 60 })
        await tab.waitForTimeout(20 + next() * 90)
      }
      await tab.keyboard.press('Shift+A')
      await tab.keyboard.press('Backspace')
    }, 14)
    expect(firedOf(state, trust), JSON.stringify(state.behavior)).toEqual([])
  }, 60_000)
})
