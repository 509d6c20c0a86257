import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { type DrivenBrowser, openBrowser } from '../chromium.ts'
import type { Environment } from '../environment.ts'
import type { Measurement } from '../measurement.ts'
import { interleave, type Turns } from '../rounds.ts'
import { spreadOf } from '../stats.ts'

/** As the developer tools' "4x slowdown". */
const slowdown = 4
const settledMs = 500

/** What a page tells of one load. */
interface Load {
  /** Milliseconds of each task of its main thread that took over 50. */
  long: number[]
  /** Until the hand-off was answered. */
  doneMs: number
}

/**
 * The longest task of a page's main thread from its load until a hand-off, in Chromium at a fourth of its speed. Beside
 * it the same page with no more than an empty frame and a WebGL context, of which a browser does each in one piece.
 */
export async function measureMainThread(
  environment: Environment,
  turns: Turns,
): Promise<Measurement[]> {
  const server = await environment.startAllInOne()
  const { publishable_key } = (await environment.credentials()).live
  const browser = await openBrowser()
  const site = await startSite()
  const load = (script: string) => () => site.load(browser, script)
  try {
    const { sdk = [], floor = [] } = await interleave(turns, [
      { name: 'sdk', run: load(loadSdk(server.url, publishable_key)) },
      { name: 'floor', run: load(loadNothing) },
    ])
    const line = toLine(environment)
    return [
      {
        ...line('longest task of a page with the SDK', sdk),
        aim: { direction: 'at most', value: 50 },
      },
      line('longest task of a page with an empty frame and a WebGL context', floor),
    ]
  } finally {
    site.close()
    await browser.close()
    await server.stop()
  }
}

function toLine({ logName: log }: Environment) {
  return (name: string, loads: Load[]): Measurement => ({
    name: `${name}, at a fourth of the speed`,
    log,
    unit: 'ms',
    // The browser reports tasks of 50 ms and more.
    value: spreadOf(loads.map(({ long }) => Math.max(50, ...long))),
    details: {
      'tasks over 50 ms': loads.flatMap(({ long }) => long).length,
      loads: loads.length,
      'ms to the hand-off': spreadOf(loads.map(({ doneMs }) => doneMs)).median,
    },
  })
}

const loadSdk = (url: string, publishableKey: string) => `
  const { start } = await import('${url}/t.js')
  await start({ publishableKey: '${publishableKey}' }).getSession()`

const loadNothing = `
  const frame = document.createElement('iframe')
  frame.hidden = true
  document.body.append(frame)
  await new Promise((resolve) => setTimeout(resolve))
  document.createElement('canvas').getContext('webgl')`

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

/** A page of its own, which sends what it saw to where it came from. */
async function startSite() {
  let page = ''
  let told = Promise.withResolvers<string>()
  const server = createServer(async (request, response) => {
    if (request.url !== '/told') return response.setHeader('content-type', 'text/html').end(page)
    told.resolve(await text(request))
    return response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://localhost:${(server.address() as AddressInfo).port}/`
  return {
    async load(browser: DrivenBrowser, script: string): Promise<Load> {
      page = pageWith(script)
      told = Promise.withResolvers<string>()
      const opened = await browser.openPage(url, slowdown)
      const answer: Load | { failed: string } = JSON.parse(await told.promise)
      await opened.close()
      if ('failed' in answer) throw new Error(answer.failed)
      return answer
    },
    close: () => server.close(),
  }
}
