import { mkdtempSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

export interface Recorder {
  /** What the server is started with. */
  env: Record<string, string>
  /** The files of which `flow` ran a function that an idle server, and the same server before and after, does not run. */
  record(flow: () => Promise<void>): Promise<string[]>
  close(): void
}

/** How long an idle server is watched: longer than the longest of its timers that matter. */
const idleMs = 3000

/** Records which of the project's files one flow runs in a server process. */
export function createRecorder(): Recorder {
  const folder = mkdtempSync(path.join(tmpdir(), 'tidegate-flow-'))
  const socket = path.join(folder, 's')
  const hook = new URL('./record-hook.ts', import.meta.url).href
  const idle = new Set<string>()

  async function watchIdle(): Promise<void> {
    await take(socket)
    await delay(idleMs)
    for (const line of await take(socket)) idle.add(line)
  }

  return {
    env: { FROM_SOURCE: '1', RECORD_SOCKET: socket, NODE_OPTIONS: `--import=${hook}` },
    async record(flow) {
      await watchIdle()
      await flow()
      const ran = await take(socket)
      await watchIdle()
      const files = ran
        .filter((line) => !idle.has(line))
        .map((line) => line.slice(0, line.indexOf(':')))
      return [...new Set(files)].sort()
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}

function take(socketPath: string): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>()
  const asked = request({ socketPath, path: '/' }, (response) => {
    const parts: Buffer[] = []
    response.on('data', (part: Buffer) => parts.push(part))
    response.on('end', () => {
      const text = Buffer.concat(parts).toString()
      if (response.statusCode === 200) resolve(text.split('\n').filter(Boolean))
      else reject(new Error(text))
    })
  })
  asked.on('error', reject)
  asked.end()
  return promise
}
