import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { displayNumber } from '../../../bench/detection/desktop.ts'
import { chromiumFile, createProfile, quietFlags } from '../../support/chromium.ts'
import { endChild } from '../../support/end-child.ts'

const messageOf = z.object({
  id: z.number().optional(),
  method: z.string().optional(),
  params: z.record(z.string(), z.unknown()).optional(),
  result: z.record(z.string(), z.unknown()).optional(),
  error: z.object({ message: z.string() }).optional(),
})

/** A Chromium window that poses as an Android phone, driven by the DevTools protocol without its Runtime domain. */
export interface EmulatedPhone {
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

/** Scripts that change what workers say, from the plainest to one that fails as the native getter does. */
export const replacedPlatforms = {
  'a getter': replaced(`() => 'Linux armv81'`),
  'a proxy': replaced(`new Proxy(native.get, { apply: () => 'Linux armv81' })`),
  'a proxy that throws as the native one': replaced(
    `new Proxy(native.get, {
      apply: (get, self, args) => self === navigator ? 'Linux armv81' : Reflect.apply(get, self, args),
    })`,
  ),
  'a property': `Object.defineProperty(navigator, 'platform', { get: () => 'Linux armv81' })`,
}

export async function openEmulatedPhone({
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
  throw new Error('Chromium ended before it listened')
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
