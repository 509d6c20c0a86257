import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { z } from 'zod'
import { chromiumFile, createProfile, quietFlags } from '../test/support/chromium.ts'

/** Headless Chromium without the scripts of a driver, which would be measured, too. */
export interface DrivenBrowser {
  /** Opens a URL in a fresh profile with a slowed CPU. */
  openPage(url: string, slowdown: number): Promise<DrivenPage>
  close(): Promise<void>
}

export interface DrivenPage {
  /** Returns the milliseconds that the main thread has worked so far, as wall-clock and CPU time. */
  busyMs(): Promise<{ tasks: number; cpu: number }>
  /** Returns once the new document exists. */
  navigate(url: string): Promise<void>
  /** Evaluates an expression in the page and returns its value, awaited. */
  evaluate(expression: string): Promise<unknown>
  close(): Promise<void>
}

const evaluationOf = z.object({
  result: z.object({ value: z.unknown() }),
  exceptionDetails: z.unknown().optional(),
})
const metricsOf = z.object({ metrics: z.array(z.object({ name: z.string(), value: z.number() })) })

const answerOf = z.object({
  id: z.number(),
  result: z.record(z.string(), z.unknown()).optional(),
  error: z.object({ message: z.string() }).optional(),
})

export async function openBrowser(): Promise<DrivenBrowser> {
  const profile = await createProfile()
  const flags = [
    '--headless',
    '--disable-gpu',
    '--remote-debugging-port=0',
    `--user-data-dir=${profile.dir}`,
  ]
  const program = spawn(chromiumFile(), [...quietFlags, ...flags], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const send = await connect(await addressOf(program.stderr))
  return {
    async openPage(url, slowdown) {
      const { browserContextId } = await send('Target.createBrowserContext')
      const { targetId } = await send('Target.createTarget', {
        url: 'about:blank',
        browserContextId,
      })
      const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true })
      await send('Emulation.setCPUThrottlingRate', { rate: slowdown }, sessionId)
      await send('Performance.enable', {}, sessionId)
      const navigate = async (url: string) => void (await send('Page.navigate', { url }, sessionId))
      await navigate(url)
      return {
        navigate,
        async evaluate(expression) {
          const options = { expression, awaitPromise: true, returnByValue: true }
          const evaluated = evaluationOf.parse(await send('Runtime.evaluate', options, sessionId))
          const { result, exceptionDetails } = evaluated
          if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails))
          return result.value
        },
        async busyMs() {
          const { metrics } = metricsOf.parse(await send('Performance.getMetrics', {}, sessionId))
          const ms = (name: string) =>
            1000 * (metrics.find((metric) => metric.name === name)?.value ?? Number.NaN)
          return { tasks: ms('TaskDuration'), cpu: ms('ThreadTime') }
        },
        close: async () => void (await send('Target.disposeBrowserContext', { browserContextId })),
      }
    },
    async close() {
      const ended = once(program, 'exit')
      program.kill()
      await ended
      await profile.remove()
    },
  }
}

async function addressOf(output: NodeJS.ReadableStream): Promise<string> {
  for await (const line of createInterface(output)) {
    const address = /^DevTools listening on (ws:\S+)/.exec(line)?.[1]
    if (address) return address
  }
  throw new Error('Chromium ended before it listened')
}

type Send = (
  method: string,
  params?: object,
  sessionId?: unknown,
) => Promise<Record<string, unknown>>

/** Client of the Chrome DevTools Protocol, which matches JSON requests and responses by number. */
async function connect(address: string): Promise<Send> {
  const socket = new WebSocket(address)
  const waiting = new Map<number, PromiseWithResolvers<Record<string, unknown>>>()
  socket.onmessage = ({ data }) => {
    const message = answerOf.safeParse(JSON.parse(data)).data
    const asked = message && waiting.get(message.id)
    if (message?.error) asked?.reject(new Error(message.error.message))
    else asked?.resolve(message?.result ?? {})
  }
  await once(socket, 'open')
  let last = 0
  return (method, params = {}, sessionId) => {
    const asked = Promise.withResolvers<Record<string, unknown>>()
    waiting.set(++last, asked)
    socket.send(JSON.stringify({ id: last, method, params, sessionId }))
    return asked.promise
  }
}
