import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { z } from 'zod'
import type { DrivenBrowser } from './chromium.ts'

/** One load of a page. Times are milliseconds. */
export interface PageLoad {
  /** The length of each task of the main thread that took 50 or more. */
  long: number[]
  /** From the load until the script was done. */
  doneMs: number
  /** Of all tasks of the main thread: their length, and their processor time. */
  tasksMs: number
  cpuMs: number
}

const toldByPage = z.union([
  z.object({ doneMs: z.number(), long: z.array(z.number()) }),
  z.object({ failed: z.string() }),
])

// Tasks that a script leaves behind count, too.
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

/** Serves files of scripts, and a page that runs one script and reports how long its tasks took. */
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
    /** Loads the page with the script in a browser that is `slowdown` times slower. Throws what the script throws. */
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

/** The script of a page that starts the SDK of the server and hands off. */
export const handOffScript = (serverUrl: string, publishableKey: string): string => `
  const { start } = await import('${serverUrl}/t.js')
  await start({ publishableKey: '${publishableKey}' }).getSession()`
