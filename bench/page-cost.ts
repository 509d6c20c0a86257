import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { z } from 'zod'
import { buildSdk } from '../services/web/build-sdk.ts'
import { type DrivenBrowser, openBrowser } from './chromium.ts'
import { startEnvironment } from './environment.ts'
import { interleave } from './rounds.ts'
import { spreadOf } from './stats.ts'

// The cost of the browser SDK to a page, in turns with FingerprintJS and BotD in the same browser (`make page-cost`).

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '9' },
    /** How many times slower than this machine, comma-separated. */
    slowdowns: { type: 'string', default: '1,6' },
  },
})
const settledMs = 300

const told = z.union([
  z.object({ doneMs: z.number(), longMs: z.number() }),
  z.object({ failed: z.string() }),
])

interface Load {
  /** On the main thread: the length of its tasks, and its time of the processor. */
  tasksMs: number
  cpuMs: number
  /** The longest task, where one takes 50 ms or more. */
  longestMs: number
  doneMs: number
}

const peers = `
  import FingerprintJS from '@fingerprintjs/fingerprintjs'
  import { load } from '@fingerprintjs/botd'
  export const run = () => Promise.all([
    FingerprintJS.load({ monitoring: false }).then((agent) => agent.get()),
    load({ monitoring: false }).then((detector) => detector.detect()),
  ])`

async function bundlePeers(): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: peers, resolveDir: path.join(import.meta.dirname, 'page-peers') },
    bundle: true,
    minify: true,
    format: 'esm',
    legalComments: 'none',
    write: false,
  })
  return outputFiles[0]?.text ?? ''
}

const pageWith = (script: string) => `<!doctype html><title>Page</title><p>Text</p>
<script>
  let longMs = 0
  const note = (list) => { for (const { duration } of list.getEntries()) longMs = Math.max(longMs, duration) }
  new PerformanceObserver(note).observe({ type: 'longtask' })
  const tell = (told) => fetch('/told', { method: 'POST', body: JSON.stringify(told) })
</script>
<script type="module">
  try {
    ${script}
    const doneMs = performance.now()
    setTimeout(() => tell({ doneMs, longMs }), ${settledMs})
  } catch (error) {
    tell({ failed: String(error) })
  }
</script>`

/** Serves the scripts and a page that runs one of them and tells when it is done. */
async function startSite(scripts: Record<string, string>) {
  let page = ''
  let answer = Promise.withResolvers<string>()
  const server = createServer(async (request, response) => {
    const script = scripts[request.url ?? '']
    if (script !== undefined)
      return response.setHeader('content-type', 'text/javascript').end(script)
    if (request.url !== '/told') return response.setHeader('content-type', 'text/html').end(page)
    answer.resolve(await text(request))
    return response.end()
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://localhost:${(server.address() as AddressInfo).port}/`
  return {
    async load(browser: DrivenBrowser, slowdown: number, script: string): Promise<Load> {
      page = pageWith(script)
      answer = Promise.withResolvers<string>()
      const opened = await browser.openPage(url, slowdown)
      const outcome = told.parse(JSON.parse(await answer.promise))
      const { tasks, cpu } = await opened.busyMs()
      await opened.close()
      if ('failed' in outcome) throw new Error(outcome.failed)
      return { tasksMs: tasks, cpuMs: cpu, longestMs: outcome.longMs, doneMs: outcome.doneMs }
    },
    close: () => server.close(),
  }
}

function report(slowdown: number, loads: Record<string, Load[]>): void {
  const median = (name: string, field: keyof Load) =>
    spreadOf((loads[name] ?? []).map((load) => load[field])).median
  const net = (name: string, field: keyof Load) =>
    Math.round(median(name, field) - median('empty', field))
  for (const name of ['ours', 'theirs']) {
    const longest = Math.round(median(name, 'longestMs'))
    console.log(
      `${slowdown}x ${name}: main thread ${net(name, 'tasksMs')} ms (CPU ${net(name, 'cpuMs')} ms), done after ${net(name, 'doneMs')} ms, longest task ${longest ? `${longest} ms` : 'below 50 ms'}`,
    )
  }
}

const sdk = await buildSdk()
const theirs = await bundlePeers()
for (const [name, code] of Object.entries({ ours: sdk, theirs }))
  console.log(`${name}: ${gzipSync(code, { level: 9 }).length} bytes gzipped`)
const environment = await startEnvironment(undefined)
const server = await environment.startAllInOne()
const { publishable_key: publishableKey } = (await environment.credentials()).live
const browser = await openBrowser()
const site = await startSite({ '/theirs.js': theirs })
const startSdk = `const { start } = await import('${server.url}/t.js')
  await start(${JSON.stringify({ publishableKey })}).getSession()`
try {
  for (const slowdown of flags.slowdowns.split(',').map(Number)) {
    const load = (script: string) => () => site.load(browser, slowdown, script)
    const variants = [
      { name: 'empty', run: load('') },
      { name: 'ours', run: load(startSdk) },
      { name: 'theirs', run: load(`await (await import('/theirs.js')).run()`) },
    ]
    report(slowdown, await interleave({ rounds: Number(flags.rounds), warmUps: 1 }, variants))
  }
} finally {
  site.close()
  await browser.close()
  await server.stop()
  await environment.stop()
}
