import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, expect } from 'vitest'
import { z } from 'zod'
import { displayNumber } from '../../../bench/detection/desktop.ts'
import { addBehavior } from '../../../services/scoring/session/observations.ts'
import { chromiumFile, createProfile, quietFlags } from '../../support/chromium.ts'
import { endChild } from '../../support/end-child.ts'
import { eventually } from '../../support/eventually.ts'
import { needs } from '../../support/needs.ts'
import type { CollectServer } from '../web/collect-server.ts'
import { createPageServer, lastSnapshot, observationsOf } from '../web/sdk-page.ts'
import { evaluateClient, slugs } from './support/sessions.ts'
import * as clients from './support/snapshots.ts'
import { taught } from './support/taught.ts'

const messageOf = z.object({
  id: z.number().optional(),
  method: z.string().optional(),
  params: z.record(z.string(), z.unknown()).optional(),
  result: z.record(z.string(), z.unknown()).optional(),
  error: z.object({ message: z.string() }).optional(),
})

/** A Chromium window that poses as an Android phone, driven by the DevTools protocol without its Runtime domain. */
interface EmulatedPhone {
  open(url: string): Promise<void>
  evaluate(expression: string): Promise<unknown>
  tap(x: number, y: number): Promise<void>
  close(): Promise<void>
}

interface Disguise {
  /** Runs in each page and frame before any other script. */
  inPages?: string
  /** Runs in each worker before any other script. */
  inWorkers?: string
  flags?: string[]
}

const userAgent =
  'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Mobile Safari/537.36'
const metrics = {
  width: 412,
  height: 785,
  screenWidth: 412,
  screenHeight: 915,
  deviceScaleFactor: 2.625,
  mobile: true,
  screenOrientation: { type: 'portraitPrimary', angle: 0 },
}
const hints = {
  brands: [
    { brand: 'Google Chrome', version: '156' },
    { brand: 'Chromium', version: '156' },
    { brand: 'Not.A/Brand', version: '99' },
  ],
  fullVersion: '156.0.8078.108',
  platform: 'Android',
  platformVersion: '15.0.0',
  model: 'Pixel 8',
  mobile: true,
  architecture: '',
  bitness: '',
  wow64: false,
}
const replaced = (get: string) => `
  const { prototype } = WorkerNavigator
  const native = Object.getOwnPropertyDescriptor(prototype, 'platform')
  Object.defineProperty(prototype, 'platform', { ...native, get: ${get} })`

/** Scripts that change the platform in workers, from the simplest to one that throws like the native getter. */
const replacedPlatforms = {
  'a getter': replaced(`() => 'Linux armv81'`),
  'a proxy': replaced(`new Proxy(native.get, { apply: () => 'Linux armv81' })`),
  'a proxy that throws like the native getter': replaced(
    `new Proxy(native.get, {
      apply: (get, self, args) => self === navigator ? 'Linux armv81' : Reflect.apply(get, self, args),
    })`,
  ),
  'a property': `Object.defineProperty(navigator, 'platform', { get: () => 'Linux armv81' })`,
}

async function openEmulatedPhone({
  inPages,
  inWorkers,
  flags = [],
}: Disguise): Promise<EmulatedPhone> {
  const profile = await createProfile()
  const screen = spawn(
    'Xvfb',
    ['-displayfd', '3', '-screen', '0', '1400x1050x24', '-nolisten', 'tcp'],
    {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe'],
    },
  )
  const env = { ...process.env, DISPLAY: `:${await displayNumber(screen)}` }
  const debugging = ['--remote-debugging-port=0', '--disable-blink-features=AutomationControlled']
  const args = [
    ...quietFlags,
    ...debugging,
    `--user-data-dir=${profile.dir}`,
    ...flags,
    'about:blank',
  ]
  const browser = spawn(chromiumFile(), args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  const send = await connect(await addressOf(browser), inWorkers)
  const { targetInfos } = z
    .object({ targetInfos: z.array(z.object({ targetId: z.string(), type: z.string() })) })
    .parse(await send('Target.getTargets'))
  const targetId = targetInfos.find(({ type }) => type === 'page')?.targetId
  const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true })
  const inPage = (method: string, params: object = {}) => send(method, params, sessionId)
  await inPage('Page.enable')
  await inPage('Target.setAutoAttach', {
    autoAttach: true,
    waitForDebuggerOnStart: true,
    flatten: true,
  })
  await inPage('Emulation.setDeviceMetricsOverride', metrics)
  await inPage('Emulation.setTouchEmulationEnabled', { enabled: true, maxTouchPoints: 5 })
  await inPage('Emulation.setUserAgentOverride', {
    userAgent,
    platform: 'Linux armv81',
    userAgentMetadata: hints,
  })
  if (inPages) await inPage('Page.addScriptToEvaluateOnNewDocument', { source: inPages })
  return {
    async open(url) {
      await inPage('Page.navigate', { url })
    },
    async evaluate(expression) {
      const { result } = await inPage('Runtime.evaluate', {
        expression,
        awaitPromise: true,
        returnByValue: true,
      })
      return z.object({ value: z.unknown() }).parse(result).value
    },
    async tap(x, y) {
      const touch = (type: string, points: object[]) =>
        inPage('Input.dispatchTouchEvent', { type, touchPoints: points })
      await touch('touchStart', [{ x, y, radiusX: 18 + (x % 7), radiusY: 16, force: 0.4 }])
      await new Promise((resolve) => setTimeout(resolve, 40 + (x % 30)))
      await touch('touchEnd', [])
    },
    async close() {
      await endChild(browser)
      await endChild(screen)
      await profile.remove()
    },
  }
}

async function addressOf(browser: ChildProcess): Promise<string> {
  if (!browser.stderr) throw new Error('the browser has no output')
  for await (const line of createInterface(browser.stderr)) {
    const address = /^DevTools listening on (ws:\S+)/.exec(line)?.[1]
    if (address) {
      browser.stderr.resume()
      return address
    }
  }
  throw new Error('Chromium exited before it listened')
}

type Send = (
  method: string,
  params?: object,
  sessionId?: unknown,
) => Promise<Record<string, unknown>>

async function connect(address: string, inWorkers: string | undefined): Promise<Send> {
  const socket = new WebSocket(address)
  const waiting = new Map<number, PromiseWithResolvers<Record<string, unknown>>>()
  let last = 0
  const send: Send = (method, params = {}, sessionId) => {
    const answer = Promise.withResolvers<Record<string, unknown>>()
    waiting.set(++last, answer)
    socket.send(JSON.stringify({ id: last, method, params, sessionId }))
    return answer.promise
  }
  socket.onmessage = ({ data }) => {
    const { id, method, params, result, error } = messageOf.parse(JSON.parse(String(data)))
    if (id !== undefined) {
      if (error) waiting.get(id)?.reject(new Error(error.message))
      else waiting.get(id)?.resolve(result ?? {})
    }
    if (method !== 'Target.attachedToTarget') return
    const { sessionId } = params ?? {}
    if (inWorkers)
      void send('Runtime.evaluate', { expression: `{${inWorkers}}` }, sessionId).catch(() => {})
    void send('Runtime.runIfWaitingForDebugger', {}, sessionId).catch(() => {})
  }
  await once(socket, 'open')
  return send
}

const { it } = needs('chromium', 'desktop')

let server: CollectServer
beforeAll(async () => {
  server = await createPageServer()
})
afterAll(() => server.close())

const deployments = {
  taught,
  fresh: { ...taught, progress: () => ({ isLearned: false, visitors: 3, needed: 20 }) },
}

/** Returns the verdicts on everything received so far, with correct answers to the engine questions. */
function verdicts(behavior?: object) {
  const snapshot = lastSnapshot(server)
  const { user_agent: userAgent } = snapshot.navigator
  const clientHints = { 'sec-ch-ua-platform': '"Android"', 'sec-ch-ua-mobile': '?1' }
  const client = {
    snapshot: { ...snapshot, proofs: clients.proofsOf(userAgent ?? '') },
    clientHints,
  }
  return Object.values(deployments).map((learned) => {
    const evaluation = evaluateClient(client, { learned, ...(behavior ? { behavior } : {}) })
    return { verdict: evaluation.score.verdict, fired: slugs(evaluation) }
  })
}

// Disables graphics, because the software renderer of a machine without a card would give it away.
const flags = [
  '--disable-gpu',
  '--disable-3d-apis',
  '--window-position=0,0',
  '--window-size=412,915',
]

it.each(Object.entries(replacedPlatforms))(
  "an emulated phone that replaces the workers' platform with %s is never human, on load or with input",
  async (_, inWorkers) => {
    const phone = await openEmulatedPhone({ inWorkers, flags })
    try {
      await phone.open(`${server.url}/page`)
      await eventually(async () =>
        expect(await phone.evaluate('document.documentElement.dataset.ready')).toBe('yes'),
      )
      const before = observationsOf(server).length
      await phone.evaluate(
        `run({ publishableKey: '${server.publishableKey}' }).getSession().then(() => 1)`,
      )
      const { navigator, worker, tamper } = lastSnapshot(server)
      expect([navigator.platform, worker.platform]).toEqual(['Linux armv81', 'Linux armv81'])
      expect(tamper.foreign_primitives).toEqual(['worker.navigator.platform'])
      for (const { verdict, fired } of verdicts()) {
        expect([verdict, fired]).not.toEqual(['human', fired])
        expect(fired).toContain('phone_with_computer_parts')
      }
      for (let taps = 0; taps < 6; taps++) await phone.tap(60 + taps * 41, 40 + taps * 57)
      await phone.evaluate('client.getSession().then(() => 1)')
      const behavior = observationsOf(server)
        .slice(before)
        .flatMap((sent) => sent.behavior ?? [])
        .reduce((known, more) => addBehavior(known, more))
      expect(behavior.touch.touches).toBe(6)
      for (const { verdict, fired } of verdicts(behavior)) {
        expect([verdict, fired]).not.toEqual(['human', fired])
        expect(fired).not.toContain('natural_touch')
      }
    } finally {
      await phone.close()
    }
  },
)
