import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import type { DrivenBrowser } from './chromium.ts'

/** Timings of a page load, in milliseconds. */
export interface PageLoad {
  /** Durations of the main thread's tasks of 50 ms or more. */
  long: number[]
  /** Time from the load until the script was done. */
  doneMs: number
  /** Total duration of all tasks of the main thread, and their CPU time. */
  tasksMs: number
  cpuMs: number
}

const toldByPage = z.union([
  z.object({ doneMs: z.number(), long: z.array(z.number()) }),
  z.object({ failed: z.string() }),
])

// Includes tasks that run after the script.
const settledMs = 500

const pageWith = (script: string) => `<!doctype html><title>Page</title><p>Text</p>
<script>
  const long = []
  const note = (list) => { for (const { duration } of list.getEntries()) long.push(duration) }
  new PerformanceObserver(note).observe({ type: 'longtask' })
  const tell = (told) => fetch('/told', { method: 'POST', body: JSON.stringify(told) })
</script>
<script type="module">
  try {
    ${script}
    const doneMs = performance.now()
    setTimeout(() => tell({ long, doneMs }), ${settledMs})
  } catch (error) {
    tell({ failed: String(error) })
  }
</script>`

/** Serves script files, and a page that runs a script and reports the durations of its tasks. */
export async function startPageSite(files: Record<string, string> = {}) {
  let page = ''
  let answer = Promise.withResolvers<string>()
  const server = createServer(async (request, response) => {
    const file = files[request.url ?? '']
    if (file !== undefined) return response.setHeader('content-type', 'text/javascript').end(file)
    if (request.url !== '/told') return response.setHeader('content-type', 'text/html').end(page)
    answer.resolve(await text(request))
    return response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://localhost:${(server.address() as AddressInfo).port}/`
  return {
    /** Loads the page with the script in a browser slowed by `slowdown`. Throws if the script throws. */
    async load(browser: DrivenBrowser, slowdown: number, script: string): Promise<PageLoad> {
      page = pageWith(script)
      answer = Promise.withResolvers<string>()
      const opened = await browser.openPage(url, slowdown)
      const told = toldByPage.parse(JSON.parse(await answer.promise))
      const { tasks: tasksMs, cpu: cpuMs } = await opened.busyMs()
      await opened.close()
      if ('failed' in told) throw new Error(told.failed)
      return { ...told, tasksMs, cpuMs }
    },
    close: () => server.close(),
  }
}

/** Returns a script that starts the server's SDK and hands off. */
export const handOffScript = (serverUrl: string, publishableKey: string): string => `
  const { start } = await import('${serverUrl}/t.js')
  await start({ publishableKey: '${publishableKey}' }).getSession()`
